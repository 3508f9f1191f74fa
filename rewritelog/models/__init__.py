"""Duration models: timings in, seconds for each row of parameters out; arrays only.

`base` is the contract of a model, `registry` finds those of this package and of third parties by
name. `fitted` is a fitted model with its name, which all jobs work with: it checks what the model
returns. `expressions` and `formulas` parse what users write about their kernels, for
which `kinds.toml` has known forms; `located_toml` finds the lines of their mistakes.
`fitting` is the engine of all models that fit terms: `auto`, `least_squares`, `counters` and
`sampled` are configurations of it, which share what is in `engine`; `fitted_events` holds the fits
of all events, `fit_report` describes them. `outside` (regressors of third parties, as
`module:Class`), `coefficients` (a fit made elsewhere) and `constant` do without it. `exact_matches`
are mean times of identical parameters. `form` declares what is stored of a fit and makes JSON of
it, `model_file` writes that to a file and reads it back.
"""
