"""What `rewritelog` offers to Python: functions and classes that take whatever is natural.

- `arguments`: paths, tables and options in every form that is accepted, made into one
- `frames`: tables as pandas DataFrames
- `display`: reports in one line, and in notebooks
- `timings`: timing lines, read from files or made of arrays
- `fitted`: models fitted to them
- `regressor`: one event's fit with scikit-learn's conventions
- `params`: the param records of a run
- `jobs`: the commands as functions
"""
