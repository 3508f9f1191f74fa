"""The compiled check of a block: its data structures, and the pass over the bytes."""
