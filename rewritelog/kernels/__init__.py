"""Compiled loops over the bytes of a block: loads, the walk, the remapping, names and sums.

Kernels know arrays and the layout's numbers. They open nothing, raise nothing and allocate little:
what is wrong comes back as a fault, which `rewritelog.logs` turns into an error with its place.
"""
