"""The differences of two log sets: `pairs` aligns blocks, `run` is the job, `report` its result."""
