"""The conversion of a block, by moves of runs of bytes."""
