"""Output folders that are complete or do not exist, and output files.

- `folders`: a folder written under a temporary name, and renamed when it is complete; its lock,
  which also detects processes that have died
- `files`: files written in pieces, copied and flushed, or checked beforehand and replaced
"""
