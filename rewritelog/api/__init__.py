"""What the Python interface returns besides the reports of commands.

- `logs`: logs and traces, opened, and their tables as pandas DataFrames
- `fitted`: models fitted to timings
- `regressor`: one event's fit with scikit-learn's conventions
- `params`: the param records of a run
- `pages`: the HTML pages of reports
"""
