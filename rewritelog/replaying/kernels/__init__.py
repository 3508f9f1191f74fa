"""The compiled loops of a replay: columns out of a block, links, the replay, and what it shows."""
