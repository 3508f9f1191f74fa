"""Duration models: timings in, seconds for each row of parameters out; arrays only.

`base` is the contract of a model, `options` what the built-in ones may be told, `registry` finds
them and outsiders' by name, and `checks` guards what they return. `constant`, `least_squares` and
`sampled` are the built-in models; `basis` (the terms), `regression` (one event's fit),
`fit_report` (the fit in words) and `exact` (means of identical parameters) serve the latter two.
"""
