"""The differences of two log sets: `run` is the job, `records` has blocks, `report` the result."""
