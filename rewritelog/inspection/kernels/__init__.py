"""What a block holds, counted in one pass."""
