"""Fits: from the timed samples of one event to a readable function of its parameters.

- `pipeline`: all steps of a fit, top down; a good place to start reading
- `tuning`: the numbers that decide between functions, each with what it decides
- `samples`: the usable samples of an event, with the weight of each; implausibly short times
- `design`: the parameters, candidate terms and their products, with values that are computed once
- `bases`: the ways to choose terms, a module for each kind of function
- `families`: the kinds of function among which the model `auto` chooses
- `selection`: stepwise selection of terms by BIC, with or without a sign constraint
- `regression`: the solver, the robust loss and the criterion that all regressions share
- `solving`: the coefficients of chosen terms, weighted and robust, calibrated to the measured sum
- `function`: fitted functions: sums of terms with coefficients, and mixtures
- `validation`: the choice of a family by its predictions of held-out samples
- `extrapolation`: predictions beyond the range of the samples
- `correction`, `process`: a factor for what the formula does not explain, if that helps
- `diagnosis`: how reliable a fit is, its intervals, and the terms that it left out
- `event_fit`: the complete fit of an event, with one function for each class of its formula
- `single_terms`: functions of one term in one parameter, for inspection
"""
