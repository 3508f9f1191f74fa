"""Synthetic log sets of any size, which violate no rule of `check`."""
