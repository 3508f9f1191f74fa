"""Chakra execution traces: one file of protobuf messages for each rank.

`declaration` says which fields messages have, `faults` what is said of damage; `stream` reads files
in parts, `nodes` gives the nodes of a part as columns, and `traces` opens a set of files.
"""
