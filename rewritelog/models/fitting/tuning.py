"""The numbers that decide between functions, each with what it decides.

`benchmarks.accuracy` measures how they serve, and docs/measurements/accuracy.md has its figures.
What a family knows of its own terms beforehand, such as the probabilities of exponents, stands with
the family. So do guards against rounding, and limits of time and memory with what they limit.
"""

import numpy as np

# From so many samples on one family is selected, and changes of slope are sought densely. With
# fewer, several families are averaged, and intervals of sums are wider, since the choice of terms
# adds an error that held-out samples do not show.
ENOUGH = 60

# ---- Samples

FEWEST_TO_VALIDATE = 4  # with fewer there is no cross-validation, and prior weights alone count
FEWEST_IN_A_CLASS = 8  # a class with fewer is predicted by the function of all samples
MOST_FITTED = 1 << 16  # coefficients are fitted to at most so many samples: more tell nothing new
MOST_SELECTED_WITH = 2048  # families are selected with at most these
MOST_CHOSEN_WITH = 700  # a family chooses among many terms with at most so many of these

# The scale of a time below this share of the median is that share, and that of a time of 0, which
# rounding makes, is the median itself.
LEAST_SHARE_OF_MEDIAN = 1e-3

# A short outlier is shorter than expected by at least this factor, and by so many robust standard
# deviations of the logarithms. With few samples, less than `FEWEST_PER_NUMBER` for each regressor,
# it cannot be told from an effect of the parameters.
SHORT, SHORT_BY_DEVIATIONS = 5.0, 8.0

# ---- Candidate terms

MOST_CROSSES = 500  # with more products of two functions only parameters themselves are multiplied
MOST_FOR_TRIPLES = 9  # the most parameters with which products of three of them are candidates
DEEPEST = 64.0  # a parameter up to this may be the depth of a tree, times exponential, or a code
FEWEST_DEPTHS = 3  # an exponential shows at so many values, the largest among them,
DEPTHS = 12  # that are within this of the largest
MOST_VALUES = 8  # a parameter with at most so many distinct values may have a term for each

# Quantiles at which a threshold or a change of slope may be. With 0.93 too, a jump at the size of
# the last cache is found more often, but a hash join that becomes slower there is taken for one: 79
# instead of 20 % beyond the range.
KNOTS = (0.15, 0.3, 0.5, 0.7, 0.85)
EXPONENTS = (-3.0, 4.0)  # the least and the largest exponent of a power law
STEEPEST = 4.0  # steeper slopes, d log T / d log p, count as this
FEW_TERMS = 4  # a sum of so many terms is understood at a glance

# Penalty per unit of growth, added to n log(χ²/n): −2 log of a prior probability that falls by the
# factor e with each unit.
PRICE_OF_GROWTH = 2.0

# ---- Products, and terms with the shapes of programs

# All partial products of at most so many factors are candidates; of more only single ones, pairs
# and the whole product.
MOST_FACTORS = 6

# With so many samples of so many distinct points factors may have squares of logarithms. On 300
# random functions of Extra-P's normal form the median error four steps beyond the range is 6.9
# instead of 11.8 % with them. On a kernel of 13 lines it would be 30 instead of 24 %.
ENOUGH_FOR_SQUARES = 20, 7

SIMPLER = 0.003  # a further factor, a fraction or a logarithm has to lower the error by this share
HINGES = (0.25, 0.5, 0.75)  # quantiles of a parameter at which a loop may begin or end
MOST_PARAMETERS_PAIRED = 5  # terms of several parameters use those most correlated with the times
MOST_TERMS_BRANCHED = 6  # so many terms of other families are multiplied by branches, thresholds

# ---- Families in logarithms

# The quantiles at which breaks may be, with at most so many parameters and at least `ENOUGH`
# samples. With fewer samples powers are the only smooth factors.
DENSE_KNOTS, MOST_DENSELY_BROKEN = tuple(np.linspace(0.1, 0.9, 17).tolist()), 4

# At least so many samples, and this share of them, lie on either side of a break.
FEWEST_BEYOND, LEAST_BEYOND = 5, 0.05

# The break of a chosen term is moved past at most this share of the samples, to one of so many
# positions.
NEAR_BREAK, MOST_POSITIONS = 0.15, 48
ALIGNMENTS = (2, 4, 8, 16)  # calls with multiples of these may be faster, as of a vector's width
FALLING = -0.1  # with a lower rank correlation, and enough samples, 1/p may grow below the range
LEAST_EXPONENT = 1e-3  # smaller exponents of a power law count as 0

# The constant part is one of these shares of this quantile of the times. A larger one has to lower
# the error by `LEAST_GAIN_OF_CONSTANT`; the rest counts as at least `LEAST_REST` of each time.
CONSTANT_SHARES, SHORTEST_QUANTILE = (0.0, 0.4, 0.7, 0.9, 1.0), 0.05
LEAST_GAIN_OF_CONSTANT, LEAST_REST = 0.05, 0.05

MOST_POWER_LAWS = 3  # a sum has at most so many
MOST_PARAMETERS_OF_LAWS = 12  # with more parameters there is one power law only
FEWEST_PER_NUMBER = 3  # samples for each exponent and factor of a sum, or regressor of a constant
LEAST_EFFECT = 0.1  # an exponent is 0 if its factor changes by less than this over the samples

# ---- Averaged products: so many, none with less than this share of the largest probability

MOST_AVERAGED, LEAST_PROBABILITY = 5, 0.05

# ---- The choice of a family

ENOUGH_FOR_BREAKS = 20  # with fewer a change of slope, a second power law or 1/p is hardly known
POWER_LAW_PRIOR_WEIGHT, AVERAGE_PRIOR_WEIGHT = 8.0, 16.0  # of families with prior distributions
LARGEST_ERROR = 2.0  # larger errors count as this, so that no single sample decides
CLEARLY = 1.0  # a less simple family has to be better by so many standard errors of the difference
LEAST_GAIN = 0.02  # and by this share of the error: with many samples any gain is significant
FEW_TO_COMPARE = 12  # errors of fewer samples mean little, so that prior weights count too
EXACT = 1e-5  # predictions with a smaller mean error leave nothing to average
SHARE_OF_CODES = 0.5  # parameters that leave more of the error of the median time may be codes
NEARLY_AS_GOOD = 2.0  # families with errors up to this multiple of the least are in a mixture

# ---- Corrections

FEWEST_CORRECTED = 20  # with fewer samples there is no correction
CLEARLY_CODES = 2.0  # few values are codes if that makes the residuals e² times as probable

# Nor is there one if the held-out error of the formula is below the first number, with little to
# gain, or if that of a corrected formula is above the second: such samples are too noisy to learn
# from.
GOOD_ENOUGH, TOO_POOR = 0.02, 0.4
# A correction has to lower the held-out error by the first share, or by √(m/samples) if that is
# more; m is the number of parameters over the second number, at least 1. Lengths are learnt from
# the samples that are then held out: without √(m/samples), the noise of ten parameters and more
# would be corrected for half of the kernels.
LEAST_GAIN_CORRECTED, LENGTHS_LIKE_ONE = 0.05, 4

# If the best trial has more than the first multiple of the formula's error, corrections are given
# up; more than the second, if there are more samples than it learnt from: 1,000 take linear layers
# of a GPU from 6.7 to 6.1 %, where 500 are as good as the formula, which was fitted to 1,000.
MOST_TRIED, MOST_TRIED_WITH_FEWER = 0.99, 1.15
WORTH_REFINING = 1.25  # corrections with errors up to this multiple of the least learn from all
NEARLY_AS_GOOD_CORRECTED = 1.05  # a longer formula has to be better by more than this factor
LONGEST = 60.0  # an input of a greater length, in standard deviations, has no effect
FAINT = 0.2  # a part of the covariance below this share of the noise, as deviations, is left out
NEIGHBOURS = 7  # a residual is compared with the median of so many nearest ones, itself among them

# Residuals further above those of their neighbours than so many robust standard deviations, but at
# least `LEAST_LIMIT`, count as that far above, and `SHORTER` times as far below.
LARGEST_RESIDUAL, LEAST_LIMIT = 5.0, 0.1

# In the process a value may be so many deviations above what the others say of it, and this many
# times as far below it: disturbances lengthen times, and few shorten them. Over 46 kernels the
# error is 6.55 % with an equal distance, and 6.50 % so.
FARTHEST, SHORTER = 4.0, 3.0

# Whole-number parameters with at least so many values have wasted parts of tiles. That a parameter
# has its least value, 0 or 1, is an input if so many samples, and this share of all, have it, among
# so many values: short lengths tell fewer apart. Errors of numpy's sorts and sums: 18.7 to 12.7 %.
MANY_VALUES = 32
FEWEST_AT_LEAST, SHARE_AT_LEAST, FEWEST_SIZES = 5, 0.01, 17

# Waves have at most so many workers. So many samples have more than one wave, in which the share of
# idle workers and the residuals have at least this deviation.
MOST_WORKERS, FEWEST_IN_WAVES, LEAST_DEVIATION = 256, 50, 1e-3

# To be tried as inputs, waves and divisors need a correlation with the residuals of this many
# standard errors: measured kernels without waves have up to 6, batched matrix products of an A100
# 14 with its 108 processors, and half of this with any other number. To be taken, they have to
# lower the held-out error by this share, or by the last number over √samples if that is more: on
# those by half of it, in 60 to 120 samples without waves by up to 14 %. Primes do so for Fourier
# transforms of odd lengths: 36 to 7 %.
CLEAR_INPUT, LEAST_GAIN_OF_INPUTS, GAIN_BY_CHANCE = 3.5, 0.1, 2.0
MOST_SOUGHT_WITH, MOST_COMPARED = 300, 8  # so many samples show the clearest, compared with all

# ---- Sums

# Σ measured / Σ predicted calibrates a function of at least so many samples; residuals beyond so
# many robust standard deviations are left out: one of them can shift a sum by 2 %.
FEWEST_CALIBRATED, OUTLIER = 30, 6.0

# The retransformation is the mean of the samples' ratios, each weighed by its predicted time to
# this power: 1 is the ratio of the sums, which a few long calls determine, 0 the mean of the
# ratios. On held-out lines of 31 kernels 0.75 was off least. It needs so many samples.
SIZE_WEIGHT, FEWEST_FOR_TOTAL = 0.75, 8

# If there are on average so many samples at a sample's point, itself among them, the ratios are
# those to the predictions of the fit itself, and not of fits without the point.
OFTEN = 2.0

# A retransformation counts as expected if its squared distance from that is below the first number
# of variances, as it is above the second number, and in part between them. One interrupted call
# moves it by about one standard error, so that this does not count. With 2 and 4 sums of 31 kernels
# were off by a mean factor of 1.065 (two thirds of the lines) and 1.123 (5 %), now 1.045 and 1.107.
UNCERTAIN, CERTAIN = 1.5, 3.0

# The logarithm of the expected one of a fit that is not calibrated is at most this. With 1 in its
# place the logarithms of sums of 52 kernels were too small by 0.37, 0.14 and 0.16 on average after
# 8, 12 and 20 lines, with this by 0.16, 0.07 and 0.13.
MOST_EXPECTED = 1.0

# ---- Beyond the range

# In a trial families are fitted to the samples below this quantile of a parameter, and tested on
# those above it, for at most so many parameters with at least this rank correlation.
FEWEST_FOR_TRIAL, LARGE_FROM, MOST_TRIALS, LEAST_CORRELATION = 12, 0.75, 2, 0.3

# A family's share falls with this power of the product of its errors in trial and cross-validation.
POWER_OF_ERRORS = 9.0
PRIOR_OF_SELECTED = 3.0  # that of the family that was selected within the range
LEAST_PART = 0.05  # families with less than this share of the largest weight have none
LARGEST_LOG_ERROR = 5.0  # larger errors, as differences of logarithms, count as this
WITHIN = 0.8  # the power at the edge is measured from this share of the largest value to it

# A power beside a constant may go on growing if it has this share of the time at the edge, and the
# parameter so many values in the upper half of its range: with fewer it may be a change of slope.
# It is none if the error in the trial is at most this multiple of that of held-out samples: threads
# of which only the largest two take longer have a multiple of 10 and more, powers of five doubled
# sizes up to 5.5. On 600 random functions of Extra-P's normal form with 4 to 8 sizes a parameter
# the median error four steps beyond the range is 42 instead of 51 % with this, and that of 50
# rooflines 49 instead of 47 %.
LEAST_GROWING, FEWEST_IN_UPPER_HALF, GOOD_TRIAL = 0.2, 4, 6.0
AGREEMENT = 0.05  # it has to tell the time at half of the edge to this share of that at the edge

# The logarithm of a correction fades with this power of the edge over the parameter. At once (1),
# errors of made kernels at twice their range are 1.17 instead of 1.14, of codes 3 instead of 1.7.
FADING = 0.25

# Where a function is not above 0, the prediction is at least this share of that at the edge.
LEAST_SHARE_OF_TIME = 0.01

# ---- Intervals

ENOUGH_RATIOS = 20  # among so many one lies beyond each end of a 90 % interval
WIDER_WITH_FEW = 0.2  # how much wider, as a share of the width in logarithms, with half as many

# Points count equally in intervals if there are more of them than this multiple of (Σ k)² / Σ k²,
# where k is the number of samples of a point; else samples do, so that none is left out. So it is
# in the draw of the samples that a fit is given.
UNEVEN = 2.0

# Intervals widen per unit of `distance` at least at this rate, since functions reach less far in a
# trial than in use; a smaller distance in a trial counts as `NEAREST`, so that noise is not divided
# by nearly 0. Without a trial they widen at `UNKNOWN_RATE`.
LEAST_RATE, MOST_RATE, NEAREST, UNKNOWN_RATE = 0.1, 1e6, 0.1, 1.0

# ---- Measured times beside the fit

DETERMINED = 0.5  # from this weight of the measured time on a prediction counts as an exact match
FEWEST_REPLICATES = 8  # with fewer repeated samples their variance is unknown
VARIANCE_RATIOS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, np.inf)  # λ, as it may be
