"""Which SEBs of a run to time: strata, designs, and the list that a program reads."""
