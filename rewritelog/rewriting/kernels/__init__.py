"""The rewrite of a block: what goes in and out, the remapping of times, the pass over the bytes."""
