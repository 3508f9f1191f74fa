"""The bgTrace format, and log sets on disk.

`declaration` defines the format with construct, and derives offsets; `heads` reads what precedes
timelines, `blocks` their bytes, `records` what is in them, and `params` param files.
"""
