"""Timing lines read from files, and the other files that models need."""
