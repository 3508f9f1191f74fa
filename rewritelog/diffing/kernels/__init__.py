"""The compiled comparison of two blocks, field by field, in one pass."""
