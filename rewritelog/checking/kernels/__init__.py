"""The check of a block: the rules that a SEB can violate, and the pass over the bytes."""
