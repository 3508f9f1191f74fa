"""Timing lines of files, and the other texts that models are made with."""
