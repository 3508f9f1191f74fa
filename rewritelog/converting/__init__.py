"""Log sets in another log version or byte order."""
