"""How long the whole program takes with its SEBs' durations: replay, lost cycles, sweeps."""
