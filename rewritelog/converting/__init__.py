"""Conversion of log sets to other log versions and byte orders."""
