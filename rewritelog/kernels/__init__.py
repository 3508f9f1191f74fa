"""Compiled loops over the bytes of a block: loads, the walk, brackets, names and sums.

Kernels work on arrays with the offsets of a layout. They open no files, raise no errors and
allocate little: damage is returned as a fault, which `rewritelog.logs` turns into an error with its
location.
"""
