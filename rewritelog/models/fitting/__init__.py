"""How one event's times become a function of its parameters that a person can read.

- `samples`: the usable samples of an event, with the weight of each
- `short_outliers`: times far too short, whose weight would draw any fit to them
- `candidates`: terms that the parameters suggest, and products of them
- `columns`: the values of terms over samples, and which of them are independent
- `solving`: the coefficients of chosen terms, weighted and robust, over any number of samples
- `selection`: which terms are taken, forward by BIC, with or without a sign constraint
- `product_shape`: the powers of a product of all parameters
- `function`: what comes out, a sum of terms with coefficients, and its bounds
- `calibration`: the factor that makes the sum of its predictions right
- `families`: the kinds of function, each a choice of terms
- `polynomial`: the family of the least-squares model
- `cross_validation`: the best family by its predictions of samples that it was not fitted to
- `diagnosis`, `intervals`, `leverage`, `dropped`: how far a fit is to be trusted, what it left out
- `event_fit`: an event's fit with all of that, by classes where its formula has them
- `single_terms`: functions of one term in one parameter, for a person to look at
- `one_sample`: the fit of a single sample, which leaves nothing to choose
- `pipeline`: all steps of a fit, top down
"""
