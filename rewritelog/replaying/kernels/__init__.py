"""The compiled loops of replays: extraction of columns, links, the replay, and its analysis."""
