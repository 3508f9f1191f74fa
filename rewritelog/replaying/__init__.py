"""The predicted run time of the whole program: replays, lost cycles and sweeps."""
