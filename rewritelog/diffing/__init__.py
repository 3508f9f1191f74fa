"""What two log sets differ in: `pairs` brings them side by side, `run` compares, `report` says."""
