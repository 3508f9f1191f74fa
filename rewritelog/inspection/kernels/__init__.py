"""The compiled survey of a block, in one pass."""
