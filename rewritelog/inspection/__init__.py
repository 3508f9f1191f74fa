"""What logs hold: `info` for a set as a whole, `dump` for every field of a timeline."""
