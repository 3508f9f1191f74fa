"""The contents of logs: `info` summarises a log set, `dump` shows every field of a timeline."""
