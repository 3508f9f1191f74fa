"""Models apart from a rewrite: which SEBs of a run to time, fits, and what they are worth.

- `records`: the param records of a whole run as columns
- `strata`: the records by event, number of parameters and category, with what is timed already
- `sample`: the choice among them, and the list that it becomes
- `sample_report`: what was chosen, and how well it spans the run
- `fit`: a model fitted to timing lines, its diagnostics, and the file that it is written to
- `predictions`: the records of text files, each with the time that a model file predicts
- `predict`: these predictions, a line each
- `verify`: a model file against timing lines
- `splits`: which timing lines a model is fitted to, and which it is then tried on
- `compare`: several models on the same splits
- `scores`: how far predicted times are from measured ones
"""
