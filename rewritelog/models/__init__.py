"""Duration models: timings in, seconds for each row of parameters out; arrays only.

`base` is the contract of a model, `options` declares the options of the built-in ones, `registry`
finds them and third parties' by name, and `checks` validates what they return. `expressions` and
`formulas` read what users write about their kernels. `fitting` is the one engine of all models that
fit: `auto`, `least_squares`, `counters` and `sampled` are configurations of it, `fitted_events` its
result for all events and `fit_report` that in words. `outside` (regressors of others, as
`module:Class`), `coefficients` (a fit made elsewhere) and `constant` need no fit of ours.
`exact_times` and `exact_matches` are means of identical parameters, `distinct_points` those
parameters. `model_file` and `json_document` write a fit down and read it back; `from_file` is the
model of such a file. `kernels` holds the compiled search for terms.
"""
