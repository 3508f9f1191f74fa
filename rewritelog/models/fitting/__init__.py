"""How one event's times become a function of its parameters that a person can read.

- `samples`: the usable samples of an event, with the weight of each
- `strays`: lines far too short, whose weight would draw any fit to them
- `candidates`: terms that the parameters suggest, and the shape of a product of all of them
- `selection`: which terms are taken, forward by BIC, with or without a sign constraint
- `solving`: the coefficients of chosen terms, weighted and robust, over any number of samples
- `function`: what comes out, a sum of terms with coefficients; it predicts, and can be written down
- `families`: the kinds of function, each from samples to a function
- `choosing`: the best family by cross-validation, and what held-out samples say of it
- `diagnosis`: how far a fit is to be trusted
- `event_fit`: an event's fit with all of that, by classes where its formula has them
"""
