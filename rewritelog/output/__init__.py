"""Output folders that are complete or do not exist, and output files.

- `folders`: a folder written under a temporary name, and renamed when it is complete
- `lock`: the lock on an output folder, which also detects processes that have died
- `files`: files written in pieces, copied and flushed, or checked beforehand and replaced
"""
