"""Log sets on disk: summary, timeline files, blocks, and tables of their records."""
