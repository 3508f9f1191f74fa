"""Validation of a log set: rules, checks of heads, blocks and params, and the report."""
