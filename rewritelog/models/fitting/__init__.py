"""Fits: from the timed samples of one event to a readable function of its parameters.

- `pipeline`: all steps of a fit, top down; a good place to start reading
- `tuning`: the numbers that decide between functions, each with what it decides
- `samples`: the usable samples of an event, with the weight of each
- `short_outliers`: implausibly short times, whose relative weight would dominate any fit
- `candidates`: candidate terms for the given parameters, and products of them
- `design`: the samples of a fit with its candidate terms, whose values are computed once
- `columns`: the values of terms over samples, and which of these columns are independent
- `regression`: the solver, the robust loss and the criterion that all regressions share
- `solving`: the coefficients of chosen terms, weighted and robust, for any number of samples
- `selection`: stepwise selection of terms by BIC, with or without a sign constraint
- `product_shape`: the powers of a product of all parameters
- `function`: fitted functions: sums of terms with coefficients, their bounds, and mixtures
- `calibration`: the factor that makes the sum of the predictions equal the measured sum
- `families`, `logarithmic`, `power_sums`, `program_terms`, `averaged_products`: the kinds of
  function, each a way to choose terms
- `log_terms`, `constant_part`: the regressors of families in logarithms, and their regressand
- `polynomial`: the family of the least-squares model
- `automatic`: the families among which the model `auto` chooses
- `cross_validation`: the choice of a family by its predictions of held-out samples
- `extrapolation`: predictions beyond the range of the samples
- `diagnosis`, `intervals`, `leverage`, `dropped`: how reliable a fit is, and what it left out
- `modes`: two kinds of calls that no parameter tells apart
- `event_fit`: the complete fit of an event, with one function for each class of its formula
- `single_terms`: functions of one term in one parameter, for inspection
- `one_sample`: the fit of a single sample, which leaves nothing to choose
"""
