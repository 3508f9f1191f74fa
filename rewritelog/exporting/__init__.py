"""Export to the formats of other tools: `run` is the job, `contents` streams the contents."""
