"""The Python interface of `rewritelog`: functions and classes that accept convenient types.

- `arguments`: conversion of paths, tables and options from all accepted types
- `frames`: tables as pandas DataFrames
- `timings`: timing lines, read from files or made from arrays
- `fitted`: models fitted to them
- `regressor`: one event's fit with scikit-learn's conventions
- `params`: the param records of a run
- `jobs`: the commands as functions
- `runs`: the commands about whole runs: `replay`, `sweep`, `lost_cycles`, `export`
- `pictures`: `timeline`, `page` and `explore`
"""
