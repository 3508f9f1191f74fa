"""What the Python interface takes and returns, besides the reports of commands.

- `arguments`: conversion of paths and tables from all accepted types
- `frames`: tables as pandas DataFrames
- `timings`: timing lines, read from files or made from arrays
- `fitted`: models fitted to them
- `regressor`: one event's fit with scikit-learn's conventions
- `logs`: log sets
- `params`: the param records of a run
- `pages`: the HTML pages of reports
"""
