"""What is wrong with a log set: the rules, the heads, the blocks, the params, and the report."""
