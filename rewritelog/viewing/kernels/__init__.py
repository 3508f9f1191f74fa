"""The SEBs of a block, gathered into the cells and bars of a picture."""
