"""The jobs beside the rewrite: info, dump, convert and synth."""
