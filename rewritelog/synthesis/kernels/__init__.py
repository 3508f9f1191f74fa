"""The compiled generator of synthetic timelines: SEBs in closed form, and their bytes."""
