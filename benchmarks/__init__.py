"""Measures rewritelog against a plain copy of the same files: `python -m benchmarks`.

- `process`: commands run as whole processes, timed in turns
- `logs`: the logs and texts to measure with, made when they are needed and removed at the end
- `results`: rows, tables, the machine's name, and their place in the docs
- `whole_runs`, `texts_and_fits`, `starting`, `profiling`: the measurements: rows or tables
- `forms`: lines in every form of the grammar
- `child_…`: what has processes of its own
- `programs`: bracketed programs, measured last and in this process
- `accuracy`, `faults`, `figures`, `replaying`, `scaling`, `study`: for other pages of the docs

The process that measures imports neither numpy nor rewritelog, and stays small: on Linux the peak
memory of a process that was just started counts that of the one that started it.
"""
