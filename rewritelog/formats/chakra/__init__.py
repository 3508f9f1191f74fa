"""Chakra execution traces: one file of protobuf messages for each rank.

`nodes` gives the nodes of a part of a file as columns; `traces` opens and writes sets of files.
"""
