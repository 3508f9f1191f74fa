"""The compiled rewrite of a block: data structures, mapping of times, the pass over the bytes."""
