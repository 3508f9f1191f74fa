"""The brackets of a block, found by the rule that all kernels share."""
