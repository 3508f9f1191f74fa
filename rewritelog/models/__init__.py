"""Duration models: timings in, seconds for each row of parameters out; arrays only.

`base` is the contract of a model, `options` what the built-in ones may be told, `registry` finds
them and outsiders' by name, and `checks` guards what they return. `expressions` and `formulas`
read what users write about their kernels. `outside` (regressors of others, as `module:Class`) and
`coefficients` (a fit made elsewhere) need no fit of ours. `constant`, `least_squares` and
`sampled` are the built-in models; `basis` (the terms), `regression` (one event's fit),
`fit_report` (the fit in words) and `exact` (means of identical parameters) serve the latter two.
`sampling` chooses rows that are worth timing: how many of each event (`allocation`), by optimal
`design` and `coverage` of the distinct `points`, and how often (`replicates`).
`model_file` and `json_document` write a fit down and read it back; `from_file` is the model of such
a file.
"""
