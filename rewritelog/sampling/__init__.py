"""The choice of SEBs to time: strata, designs, and the list that an instrumented program reads."""
