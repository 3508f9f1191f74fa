"""Log sets on disk: summary, timeline files, blocks, and the columns of what they hold."""
