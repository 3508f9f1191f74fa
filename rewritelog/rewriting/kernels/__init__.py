"""The rewrite of a block: its inputs and outputs, the mapping of times, the pass over the bytes."""
