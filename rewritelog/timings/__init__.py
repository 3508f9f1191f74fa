"""Timing lines and params read from files, and the other files that models need."""
