"""Models apart from a rewrite: which SEBs of a run to time.

- `records`: the param records of a whole run as columns
- `strata`: the records by event, number of parameters and category, with what is timed already
- `sample`: the choice among them, and the list that it becomes
- `sample_report`: what was chosen, and how well it spans the run
"""
