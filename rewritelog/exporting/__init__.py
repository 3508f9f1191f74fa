"""Logs in the formats of other tools: `run` chooses, `contents` streams what all of them write."""
