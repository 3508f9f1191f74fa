"""What the Python interface returns besides the reports of commands.

- `logs`: logs and traces, opened, their param records, and tables as pandas DataFrames
- `fitted`: models fitted to timings
- `regressor`: one event's fit with scikit-learn's conventions
- `pages`: the HTML pages of reports
"""
