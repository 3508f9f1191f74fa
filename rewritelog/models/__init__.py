"""Duration models: timings in, seconds for each row of parameters out; arrays only.

- `base`: the contract of a model; `registry`: models of this package and of third parties, by name
- `fitted`: a fitted model with its name, as all jobs use it; it checks what the model returns
- `fitting`, `exact_matches`: how terms are fitted, and usual times of identical parameters used
- `auto`, `sampled`, `least_squares`, `counters`: models that fit terms; `term_model`: their base
- `outside` (regressors as `module:Class`), `coefficients` (fits made elsewhere), `constant`: others
- `fitted_events`: the fits of all events; `fit_report`: their description
- `expressions`, `formulas`: what users write about kernels, with known forms in `kinds.toml`
- `located_toml`, `wording`: the lines of users' mistakes, and messages in users' words
- `form`: what is stored of a fit, and its JSON; `model_file`: that as a file
- `metrics`: measures of error; `parallel`: fits in processes
"""
