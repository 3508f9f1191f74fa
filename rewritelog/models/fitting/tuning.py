"""The numbers that decide between functions, each with what it decides.

`benchmarks.accuracy` measures how they serve, and docs/measurements/accuracy.md has its figures.
What a family knows of its own terms beforehand, such as the probabilities of exponents, stands with
the family. So do guards against rounding, and limits of time and memory with what they limit.
"""

from __future__ import annotations

import numpy as np

ENOUGH = 60
"""With at least this many samples one family is selected, and changes of slope are sought densely.

With fewer, several families are averaged, and intervals of sums are wider, since the choice of
terms adds an error that held-out samples do not show.
"""


# Samples

FEWEST_TO_VALIDATE = 4
"""With fewer samples there is no cross-validation, and the simplest family is taken."""

FEWEST_IN_A_CLASS = 8
"""A class with fewer samples is predicted by the function of all samples."""

MOST_SELECTED_WITH = 2048
"""Families and terms are selected with at most this many samples; coefficients use all of them."""

LEAST_SHARE_OF_MEDIAN = 1e-3
"""A time below this share of the median has this share as its scale.

The scale of a time of 0, which is the result of rounding, is the median itself.
"""

FEWEST_FOR_SHORT_OUTLIERS = 8
"""With fewer samples a short outlier cannot be distinguished from the function."""

SHORT = 3.0
"""A short outlier is shorter than expected by at least this factor …"""

SHORT_BY_SPREADS = 6.0
"""… and by this many robust standard deviations of the logarithms."""


# Candidate terms

MOST_CROSSES = 500
"""Products of two functions are candidates only if there are at most this many of them; otherwise
only the products of two parameters themselves are."""

MOST_FOR_TRIPLES = 9
"""Products of three parameters are candidates only if there are at most this many parameters."""

DEEPEST = 64.0
"""A parameter up to this may be the depth of a tree, with which times grow exponentially."""

MOST_VALUES = 8
"""A parameter with at most this many distinct values may have a term for each."""

KNOTS = (0.15, 0.3, 0.5, 0.7, 0.85)
"""Quantiles of a parameter at which a threshold may be, or an exponent may change."""

EXPONENTS = (-3.0, 4.0)
"""The least and the largest exponent of a power law."""

PRICE_OF_GROWTH = 2.0
"""Penalty per unit of growth, added to n log(χ²/n): −2 log of a prior probability that falls by the
factor e with each unit."""

MOST_FACTORS = 6
"""All partial products of at most this many factors are candidates; of more factors, only single
ones, pairs and the whole product."""

STEEPEST = 4.0
"""Steeper slopes, d log T / d log p, count as this."""

FEW_TERMS = 4
"""A sum of so many terms is understood at a glance."""


# Products, and terms with the shapes of programs

SIMPLER = 0.003
"""A further factor, a fractional exponent or a logarithm has to lower the error by this share."""

HINGES = (0.25, 0.5, 0.75)
"""Quantiles of a parameter at which a loop may begin or end."""

MOST_PARAMETERS_PAIRED = 5
"""Terms of several parameters are made of at most this many, those most correlated with times."""

MOST_TERMS_BRANCHED = 6
"""At most this many of the terms of other families are multiplied by branches and thresholds."""


# Families in logarithms

DENSE_KNOTS = tuple(np.linspace(0.1, 0.9, 17).tolist())
MOST_DENSELY_BROKEN = 4
"""`DENSE_KNOTS` are used for at most `MOST_DENSELY_BROKEN` parameters and at least `ENOUGH`
samples; with fewer there are no smooth factors but powers either."""

FEWEST_BEYOND = 5
LEAST_BEYOND = 0.05
"""At least this many samples, and this share of them, lie on either side of a break."""

ALIGNMENTS = (2, 4, 8, 16)
"""Calls with multiples of these may be faster, as of a vector's width."""

NEAR_BREAK = 0.15
"""The break of a chosen term is moved past at most this share of the samples …"""

MOST_POSITIONS = 48
"""… to one of at most this many positions."""

LEAST_EXPONENT = 1e-3
"""Smaller exponents of the ridge power law count as 0."""

CONSTANT_SHARES = (0.0, 0.4, 0.7, 0.9, 1.0)
SHORTEST_QUANTILE = 0.05
"""The constant part is one of these shares of this quantile of the times."""

LEAST_GAIN_OF_CONSTANT = 0.05
"""A larger constant part must lower the error by this share."""

LEAST_REST = 0.05
"""The rest counts as at least this share of each time, before there is a fit."""

FEWEST_PER_REGRESSOR = 3
"""With fewer samples for each regressor a constant part is not sought."""

MOST_POWER_LAWS = 3
"""A sum of power laws has at most this many."""

MOST_PARAMETERS_OF_LAWS = 12
"""With more parameters there is one power law only."""

FEWEST_PER_NUMBER = 3
"""A sum of power laws needs at least this many samples for each exponent and factor."""

LEAST_EFFECT = 0.1
"""An exponent counts as 0 if its factor changes by less than this share over the samples."""

LEAST_DIFFERENCE = 0.1
"""Two power laws whose exponents all differ by less than this count as one."""


# Averaged products

MOST_AVERAGED = 5
LEAST_PROBABILITY = 0.05
"""At most so many products are averaged, and none with less than this share of the probability of
the most probable one."""


# The choice of a family

ENOUGH_FOR_BREAKS = 20
"""With fewer samples a change of slope cannot be distinguished from noise."""

RIDGE_PRIOR_WEIGHT = 8.0
AVERAGE_PRIOR_WEIGHT = 16.0
"""Prior weights of the ridge power law and of averaged products, which have prior distributions."""

EXACT_POWER = 0.01
"""That one power fits three samples within this relative error is no coincidence."""

LARGEST_ERROR = 2.0
"""Larger errors count as this, so that no single sample decides on the family."""

CLEARLY = 1.0
"""A less simple family has to be better by this many standard errors of the difference."""

LEAST_GAIN = 0.02
"""It also has to lower the error by this share: with many samples any gain is significant."""

FEW_TO_COMPARE = 12
"""The errors of fewer samples mean little, so that the prior weights of families count too."""

NEARLY_AS_GOOD = 2.0
"""Families with errors of up to this multiple of the least have weights in a mixture."""


# Corrections

FEWEST_CORRECTED = 50
"""With fewer samples there is no correction."""


GOOD_ENOUGH, TOO_POOR = 0.02, 0.5
"""A formula with a smaller held-out error is not corrected, since there is little to gain; nor is
one with a larger error, whose samples are too noisy to learn from."""

LEAST_GAIN_CORRECTED = 0.05
"""A correction has to be better by `CLEARLY`, and to lower the held-out error by this share."""

NEARLY_AS_GOOD_CORRECTED = 1.05
"""A longer formula is taken if its error with a correction is less by more than this factor."""

FEW_VALUES = 8
"""A parameter with three to this many values may be a code, whose order means nothing."""

LONGEST = 60.0
"""An input with a greater length, in standard deviations, has no effect, and is left out."""

NEIGHBOURS = 7
"""A residual is compared with the median of those of so many nearest samples, itself among them."""

LARGEST_RESIDUAL = 5.0
"""Residuals further from it than this many robust standard deviations count as this far."""

LEAST_LIMIT = 0.1
"""Residuals up to this far from it count as they are, however near the others."""


# Beyond the range

FEWEST_FOR_TRIAL = 12
"""With fewer samples there is no trial."""

LARGE_FROM = 0.75
"""In a trial families are fitted to the samples below this quantile of a parameter, and tested on
those above it."""

MOST_TRIALS = 2
"""Trials are made for at most this many parameters, those most correlated with the time."""

LEAST_CORRELATION = 0.3
"""There is no trial for a parameter whose rank correlation with the time is smaller."""

POWER_OF_ERRORS = 9.0
"""A family's share falls with this power of the product of its errors in trial and
cross-validation."""

PRIOR_WEIGHT_OF_OWN = 3.0
"""Prior weight of the family that was selected within the range."""

LEAST_PART = 0.05
"""Families with less weight than this share of the largest have no share."""

LARGEST_LOG_ERROR = 5.0
"""Larger errors, as differences of logarithms, count as this."""

EXACT_FIT = 0.01
"""A fit with a held-out mean relative error below this is extrapolated as it is."""

UNTRIED_WEIGHT = 0.25
"""Share in the growth, where no trial was possible, of the family with the most prior weight."""

WITHIN = 0.8
"""The power at the edge of the range is measured between this share of the largest value and it."""

LEAST_SHARE_OF_TIME = 0.01
"""No prediction above the range is below this share of the shortest measured time. Where a
function has no value above 0, it counts as no less than this share of its value at the edge."""


# Intervals

ENOUGH_RATIOS = 20
"""Among this many ratios one lies beyond each end of a 90 % interval."""

WIDER_WITH_FEW = 0.25
"""How much wider intervals are, as a share of their logarithmic width, with half as many ratios."""

LEAST_RATE = 0.1
"""Intervals widen at least at this rate: in a trial functions reach less far than in use."""

NEAREST = 0.1
"""A smaller distance counts as this in a trial, whose noise is not divided by nearly 0."""

UNKNOWN_RATE = 1.0
"""How fast intervals widen beyond the range, per unit of `distance` in logarithms, where too few
samples allowed a trial extrapolation to measure it."""


# Two kinds of calls

FEWEST_FOR_MODES = 20
"""With fewer ratios two modes cannot be distinguished from one."""

LEAST_SHARE_OF_MODE = 0.05
"""A smaller share of the calls is no mode, but counts as interrupted."""

LEAST_EXPLAINED = 0.8
"""Least share of the variance of the logarithms that the division explains; the best division of a
normal distribution explains 2/π = 0.64."""

LEAST_FACTOR = 1.2
"""Least quotient of the centres of the two modes."""


# Measured times beside the fit

DETERMINED = 0.5
"""A prediction with at least this weight on the measured mean counts as an exact match."""

FEWEST_AGAIN = 8
"""With fewer repeated samples their variance is unknown."""

VARIANCE_RATIOS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, np.inf)
"""The values of λ, the ratio of variances, among which the best one is chosen."""
