"""Log formats: a folder for each."""
