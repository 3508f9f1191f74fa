"""Kernels that turn the SEBs of a block into the cells and bars of a figure."""
