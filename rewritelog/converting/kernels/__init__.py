"""The compiled conversion of a block, by moves of byte ranges."""
