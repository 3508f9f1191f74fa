"""Gaussian processes: what a correction interpolates with, and how its lengths are learnt.

A process has a smooth and a rough part, with a length for each input. C. Rasmussen and C. Williams,
Gaussian Processes for Machine Learning (2006): predictions 2.2, Matérn covariances and lengths for
each input 4.2 and 5.1, marginal likelihood 5.4, held-out predictions in closed form 5.4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from msgspec import Meta, structs
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats, Ints, median
from rewritelog.core import DistinctPoints, core
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.regression import robust_deviations
from rewritelog.models.fitting.samples import random_rows
from rewritelog.models.fitting.waves import TILES, Tile, Waves
from rewritelog.models.form import Form, NotNegative, defect, require_shape

FIRST_LEARNT_FROM, STEPS, STEPS_FROM_SIMILAR = 256, 30, 10
"""Lengths and deviations are first learnt from this many points in this many steps, or in fewer
steps from those of a process for nearly the same values. A process that is used learns them again
from all points, since few points show little of what depends on many inputs."""

LAST_STEP = 2e-4
"""The search with all points ends with a step that lowers the cost by less than this share."""

STEEPNESS, STEEPEST = 4.0, 1e3
"""A search changes each logarithm in units of 1/√(the first number + the size of its first slope):
what matters most has the steepest slope, and without units it would be changed far too much at
first. Slopes above the second number, as of a start with far too little noise, count as that."""

BLOCK = 250
"""The time of a step grows with the cube of the number of points. Twice this many or more are
divided into blocks of near points, which are taken as independent of each other."""

SMALL_TRIANGLE = 32
"""Triangles of fewer than twice so many rows are inverted by one call of LAPACK."""

LIKELY_LENGTH, LENGTH_DEVIATION = 0.7, 1.5
"""Mean and deviation of the normal prior of a length's logarithm: the usual length is exp(0.7), two
standard deviations of the input."""

LEAST_NOISE = 1e-3
"""The least deviation of the noise, as a share of that of the values."""

ROUNDS = 20
"""The rounds in which values far from what the others say of them are limited."""

_LOG_LENGTHS = (-4.0, 7.0)
_LOG_DEVIATIONS = (-7.0, 2.0)
"""Bounds in the search for lengths and deviations; the latter relative to that of the values."""

TRIED_POINTS, MOST_POINTS = 500, 1000
"""A correction interpolates between at most so many samples: where formulas are compared, and in
the one that is used."""

Divisor: TypeAlias = Literal["twos", "prime"]

DIVISORS: tuple[Divisor, ...] = get_args(Divisor)
"""What divides a parameter: its power of two, which aligns memory and vectors, and its largest
prime factor, which a Fourier transform has to take at once."""

MOST_TWOS = 4096
"""A larger power of two counts as this."""

_NUMBERS, _BELOW_ROOT = np.arange(2, 1000)[:, None], np.arange(2, 32)
_NO_MULTIPLES = ((_NUMBERS % _BELOW_ROOT != 0) | (_NUMBERS == _BELOW_ROOT)).all(axis=1)
PRIMES = _NUMBERS[_NO_MULTIPLES, 0].tolist()
"""Primes below 1,000. What is left without these counts as a prime."""

InputKind: TypeAlias = Literal["log", "arsinh", "least", Tile, Divisor, "waves"]

SIZES: tuple[InputKind, ...] = ("log", "arsinh", "least")
"""The kinds of inputs that say how large a parameter is; others are wasted parts of tiles or
waves."""

POSITIVE = ("deviations", "smooth_lengths", "rough_lengths")
"""The fields that have to be above 0: divisors, or with logarithms."""


class CovarianceFunction(Form, frozen=True):
    """A covariance function: a smooth part (Matérn-5/2), a rough part (Matérn-1/2) and noise."""

    codes: Flags
    """Inputs whose values are equal or different, but neither near nor far, shape (inputs,)."""
    smooth_lengths: Floats
    rough_lengths: Floats
    """Shape (inputs,)."""
    smooth: NotNegative
    rough: NotNegative
    noise: NotNegative
    """Standard deviations."""

    @property
    def scales(self) -> tuple[Floats, Floats]:
        """The factors of squared distances in the smooth and the rough part, shape (inputs,)."""
        return 5.0 / self.smooth_lengths**2, 1.0 / self.rough_lengths**2

    def part(self, indices: Ints) -> CovarianceFunction:
        """Return the function of the inputs with these indices."""
        return replace(
            self,
            codes=self.codes[indices],
            smooth_lengths=self.smooth_lengths[indices],
            rough_lengths=self.rough_lengths[indices],
        )

    @property
    def variance(self) -> float:
        """The variance at a point, noise included."""
        return self.smooth**2 + self.rough**2 + self.noise**2

    def matrix(self, points: Floats) -> Floats:
        """Return the covariances, noise included, of points of the shape (points, inputs)."""
        from scipy.spatial.distance import pdist  # noqa: PLC0415 - heavy

        coordinates, inputs = _coordinates(points, self.codes)
        scaled = (coordinates * np.sqrt(scales[inputs]) for scales in self.scales)
        smooth, rough = (pdist(of_part, "sqeuclidean") for of_part in scaled)
        return self.matrix_of_pairs(_matern_5_2(smooth)[0], _matern_1_2(rough)[0])

    def matrix_of_pairs(self, smooth: Floats, rough: Floats) -> Floats:
        """Return the covariances of all points, given those of pairs, each part's deviation 1."""
        from scipy.spatial.distance import squareform  # noqa: PLC0415 - heavy

        matrix = np.asarray(squareform(self.smooth**2 * smooth + self.rough**2 * rough))
        np.fill_diagonal(matrix, self.variance)
        return matrix

    def means(self, points: Floats, weights: Floats, rows: Floats) -> Floats:
        """Return the mean at each row, given weights at points; its bits depend on no other row.

        Points and rows have the shapes (points, inputs) and (rows, inputs).
        """
        means = np.zeros(len(rows))
        idle = (0, -len(points) % core.PROCESS_LANES)  # points whose weight is 0
        deviations = self.smooth, self.rough
        for deviation, scales, is_rough in zip(deviations, self.scales, (False, True), strict=True):
            if deviation:
                units = np.where(self.codes, 1.0, np.sqrt(scales))
                arrays = (
                    rows * units,
                    np.where(self.codes, scales, 0.0),
                    np.pad((points * units).T, ((0, 0), idle)),
                    np.pad(weights * deviation**2, idle),
                )
                with np.errstate(over="ignore"):  # infinitely far, or a mean that is not finite
                    of_rows, squares, of_points, of_weights = (a.astype("f4", "C") for a in arrays)
                inputs, is_wide = points.shape[1], True
                core.process_add_means(
                    of_rows, inputs, squares, is_rough, is_wide, of_points, of_weights, means
                )
        return means


class Inputs(Form, frozen=True):
    """What a process computes with for a row of parameters: sizes, and wasted parts of tiles.

    Programs often treat the least size, such as one column, in a way of its own.
    """

    parameters: Ints
    """The parameter of each input, counted from 1, shape (inputs,); the number after the last one
    is that of the formula's seconds."""
    kinds: Annotated[tuple[InputKind, ...], Meta(min_length=1)]
    """`log`, `arsinh`, `least`, the size of a tile, a divisor, or `waves`, whose parameter is the
    first of theirs."""
    units: Floats
    """What the parameter is divided by before its arsinh is taken, or its least value, shape
    (inputs,)."""
    centres: Floats
    deviations: Floats
    """Each input is standardised: less its centre, over its deviation; shape (inputs,)."""
    waves: Waves | None = None
    """Those of the input of that kind."""

    def __post_init__(self) -> None:
        if ("waves" in self.kinds) != (self.waves is not None):
            raise defect("is missing" if self.waves is None else "is no input", ".waves")
        divided = [kind != "least" for kind in self.kinds]
        if len(self.units) == len(divided) and not (self.units[divided] > 0).all():
            raise defect("must be above 0", ".units")

    @classmethod
    def of(
        cls, params: Floats, waves: Waves | None = None, divisors: Sequence[Divisor] = ()
    ) -> Inputs:
        """Return the inputs that vary among these samples, scaled to standard deviations of 1.

        With `waves`, the share of idle workers is one. Parameters that give wasted parts of tiles
        give these `divisors` too.
        """
        parameters, kinds, units = list[int](), list[InputKind](), list[float]()
        for number, values in enumerate(params.T, 1):
            if not np.ptp(values):
                continue
            middle = median(np.abs(values)) or 1.0
            kinds_of_values = _kinds(values, divisors)
            parameters += [number] * len(kinds_of_values)
            kinds += kinds_of_values
            units += [
                float(values.min()) if kind == "least" else middle for kind in kinds_of_values
            ]
        if waves is not None:
            parameters.append(int(waves.parameters[0]))
            kinds.append("waves")
            units.append(1.0)
        unscaled = cls(
            np.array(parameters, dtype=np.int64),
            tuple(kinds),
            np.array(units),
            np.zeros(len(kinds)),
            np.ones(len(kinds)),
            waves,
        )
        columns = unscaled.columns(params)
        deviations = columns.std(axis=0)
        varying = np.flatnonzero(deviations > 1e-9)
        scaled = replace(unscaled, centres=columns.mean(axis=0), deviations=deviations)
        return scaled.part(varying)

    def part(self, indices: Ints) -> Inputs:
        """Return the inputs with these indices."""
        kinds = tuple(self.kinds[index] for index in indices)
        return Inputs(
            self.parameters[indices],
            kinds,
            self.units[indices],
            self.centres[indices],
            self.deviations[indices],
            self.waves if "waves" in kinds else None,
        )

    def columns(self, params: Floats) -> Floats:
        """Return the inputs of each row, shape (rows, inputs)."""
        columns = np.empty((len(params), len(self.kinds)))
        with np.errstate(all="ignore"):  # a model file may hold extreme numbers
            for index, kind in enumerate(self.kinds):
                if kind == "waves" and self.waves is not None:
                    columns[:, index] = self.waves.idle(params)
                    continue
                values = params[:, self.parameters[index] - 1]
                columns[:, index] = _input(kind, values, float(self.units[index]))
            return np.asarray((columns - self.centres) / self.deviations)


def _kinds(values: Floats, divisors: Sequence[Divisor]) -> list[InputKind]:
    """Return the kinds of inputs that a parameter with these values has."""
    least, distinct = values.min(), len(np.unique(values))
    kinds: list[InputKind] = ["log" if least > 0 else "arsinh"]
    at_least = np.count_nonzero(values == least)
    enough = max(tuning.FEWEST_AT_LEAST, tuning.SHARE_AT_LEAST * len(values))
    if least in (0, 1) and at_least >= enough and distinct >= tuning.FEWEST_SIZES:
        kinds.append("least")
    if distinct >= tuning.MANY_VALUES and least >= 1 and (values == np.rint(values)).all():
        # of a tile wider than every value all but the value is wasted: the logarithm once more
        kinds += (*(tile for tile in TILES if int(tile) < values.max()), *divisors)
    return kinds


def _input(kind: InputKind, values: Floats, unit: float) -> Floats:
    """Return the input of this kind for each value of its parameter."""
    if kind == "arsinh":
        return np.asarray(np.arcsinh(values / unit))
    if kind == "log":
        return np.log(np.maximum(values, unit * 1e-9))
    if kind == "least":
        return np.asarray(values <= unit, dtype=np.float64)
    whole = np.fmax(np.fmin(np.rint(values), 2.0**52), 1.0)  # 1 or more, even of NaN
    if kind == "twos":
        bits = whole.astype(np.int64)
        return np.asarray(np.log(np.minimum(bits & -bits, MOST_TWOS)))
    if kind == "prime":
        return np.asarray(np.log(_largest_primes(whole.astype(np.int64))))
    tile = float(kind)
    return np.asarray(np.log(np.ceil(whole / tile) * tile / whole))


def _largest_primes(whole: Ints) -> Ints:
    """Return the largest prime factor of each number, which is at least 1."""
    rest, of_row = np.unique(whole, return_inverse=True)
    largest = np.ones_like(rest)
    for prime in PRIMES:
        if prime**2 > rest.max(initial=1):
            break
        while (is_multiple := rest % prime == 0).any():
            largest[is_multiple] = prime
            rest[is_multiple] //= prime
    return np.maximum(largest, rest)[of_row]


class Process(Form, frozen=True, rename={"covariance": "kernel"}):
    """A Gaussian process, given the residuals at some samples."""

    inputs: Inputs
    covariance: CovarianceFunction
    weights: Floats
    """The weight of each sample (`conditioned`)."""

    def __post_init__(self) -> None:
        for place, part in ((".inputs", self.inputs), (".kernel", self.covariance)):
            for key, values in structs.asdict(part).items():
                if isinstance(values, np.ndarray):
                    require_shape(f"{place}.{key}", values, len(self.inputs.kinds))
                if key in POSITIVE and not (values > 0).all():
                    raise defect("must be above 0", f"{place}.{key}")


class Correction(Form, frozen=True):
    """The factor on a formula's seconds."""

    most: NotNegative
    """The logarithms of factors lie between this and its negative."""
    process: Process

    @classmethod
    def of(cls, logs: Floats, process: Process) -> Correction:
        """Return the correction by a process given the residuals `logs`."""
        return cls(float(np.abs(logs).max()), process)

    @property
    def codes(self) -> tuple[int, ...]:
        """The parameters whose values are taken as codes without order, counted from 1."""
        codes = self.process.inputs.parameters[self.process.covariance.codes]
        return tuple(np.unique(codes).tolist())

    def factors(self, table: Floats, points: Floats) -> Floats:
        """Return the factor of each row, whose bits depend on no other row.

        `table` has the parameters and seconds of the rows (`with_seconds`), `points` the inputs of
        the samples, shape (samples, inputs).
        """
        process = self.process
        with np.errstate(all="ignore"):
            columns = process.inputs.columns(table)
            means = process.covariance.means(points, process.weights, columns)
        means = np.where(np.isfinite(table).all(axis=1) & np.isfinite(means), means, 0.0)
        return np.asarray(np.exp(np.clip(means, -self.most, self.most)))


def _matern_5_2(squares: Floats) -> tuple[Floats, Floats]:
    """Return the covariance, and its negative derivative by half the squared distance."""
    distances = np.sqrt(squares)
    falling = np.exp(-distances)
    slope = (1 + distances) * falling
    return slope + squares / 3 * falling, slope / 3


def _matern_1_2(squares: Floats) -> tuple[Floats, Floats]:
    distances = np.sqrt(squares)
    falling = np.exp(-distances)
    return falling, falling / np.maximum(distances, 1e-12)


def _coordinates(points: Floats, codes: Flags) -> tuple[Floats, Ints]:
    """Return the points' coordinates, in which different values of a code have the distance 1.

    A code becomes as many coordinates as it has values. Also return the input of each coordinate.
    The coordinates have the shape (points, coordinates).
    """
    columns, inputs = list[Floats](), list[int]()
    for index, (column, is_code) in enumerate(zip(points.T, codes.tolist(), strict=True)):
        of_input = [column]
        if is_code:
            of_input = [(column == value) * math.sqrt(0.5) for value in np.unique(column)]
        columns += of_input
        inputs += [index] * len(of_input)
    return np.column_stack(columns), np.array(inputs)


def conditioned(
    covariance: CovarianceFunction, points: Floats, distinct: DistinctPoints, *values: Floats
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield the weights of the points, given each of several sets of values there.

    Weights are the inverse covariance times the values. With them come the mean at each point,
    without any value of that point (`distinct` says which points are the same), and the values as
    they count. One that is more than `FARTHEST` deviations above what all others say of it, or
    `SHORTER` times as far below, counts as that far from it, so that a disturbed measurement hardly
    affects its surroundings.
    """
    inverse = _inverse(covariance.matrix(points))
    precisions = np.diag(inverse)
    limited = plain = np.array(values)
    for _ in range(ROUNDS):
        errors = limited @ inverse / precisions
        deviations = np.maximum(precisions**-0.5, robust_deviations(errors, 0.0)[:, None])
        means, reach = limited - errors, tuning.FARTHEST * deviations
        limited = np.clip(plain, means - tuning.SHORTER * reach, means + reach)
    weights = limited @ inverse
    if len(distinct) < len(points):
        inverse = _inverse_of_means(covariance, points, distinct)
    means = np.array([distinct.means(limited_set) for limited_set in limited])
    without = (means - means @ inverse / np.diag(inverse))[:, distinct.point_of_row]
    yield from zip(weights, without, limited, strict=True)


def _inverse_of_means(
    covariance: CovarianceFunction, points: Floats, distinct: DistinctPoints
) -> Floats:
    """Return the inverse covariance of the means of the values at each point.

    The noise of a mean of k values has 1/k of the variance. The means hold all that the values say
    of other points.
    """
    matrix = covariance.matrix(points[distinct.rows.first])
    matrix -= np.diag(covariance.noise**2 * (1 - 1 / distinct.counts))
    return _inverse(matrix)


def learn(
    points: Floats,
    values: Floats,
    codes: Flags,
    start: CovarianceFunction | None = None,
    most: int = FIRST_LEARNT_FROM,
    steps: int = STEPS,
    least_step: float = 1e-9,
) -> tuple[CovarianceFunction, float]:
    """Return the covariance function that makes the values most probable, and −log of how much.

    `points` has the shape (points, inputs), each input with a standard deviation near 1. At most
    `most` of them count; the search begins at the lengths and deviations of `start`, takes at most
    so many `steps`, and ends with one that lowers the cost by a smaller share than `least_step`.
    Probabilities are those of blocks of near points (composite likelihood: C. Varin, N. Reid and
    D. Firth, Statistica Sinica 21, 2011).
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - heavy

    rows = random_rows(len(points), most)
    points, values = points[rows], values[rows]
    rms = float(np.sqrt(np.mean(values**2))) or 1.0
    inputs = points.shape[1]
    lengths = np.full((2, inputs), math.exp(LIKELY_LENGTH))
    deviations = np.array([0.7, 0.4, 0.4])
    if start is not None:
        lengths = np.stack((start.smooth_lengths, start.rough_lengths))
        deviations = np.array([start.smooth, start.rough, start.noise]) / rms
    first = np.log(np.concatenate((*lengths, deviations)))
    blocks = _blocks(points / lengths.min(axis=0), np.arange(len(points)), len(points) // BLOCK)
    posterior = _NegativeLogPosterior(points, values / rms, codes, blocks)
    least_noise = (math.log(LEAST_NOISE), _LOG_DEVIATIONS[1])
    bounds = np.array([*[_LOG_LENGTHS] * (2 * inputs), *[_LOG_DEVIATIONS] * 2, least_noise])
    first = np.clip(first, *bounds.T)
    at_first = posterior.cost(first)
    units = 1 / np.sqrt(STEEPNESS + np.minimum(np.abs(at_first[1]), STEEPEST))

    def scaled_cost(shifts: Floats) -> tuple[float, Floats]:
        cost, slopes = posterior.cost(first + shifts * units) if shifts.any() else at_first
        return cost, slopes * units

    optimum = minimize(
        scaled_cost,
        np.zeros(len(first)),
        jac=True,
        method="L-BFGS-B",
        bounds=(bounds - first[:, None]) / units[:, None],
        options={"maxiter": steps, "ftol": least_step},
    )
    covariance = posterior.covariance(first + optimum.x * units)
    smooth, rough, noise = (
        rms * deviation for deviation in (covariance.smooth, covariance.rough, covariance.noise)
    )
    return replace(covariance, smooth=smooth, rough=rough, noise=noise), float(optimum.fun)


def _factor_and_inverse(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the Cholesky factor and the inverse, of which only the lower triangles count.

    Raise `LinAlgError` if the matrix, which is overwritten, is not positive definite.
    """
    from scipy.linalg import lapack  # noqa: PLC0415 - heavy

    factor, failed = lapack.dpotrf(matrix.T, lower=True, overwrite_a=True)
    if failed:
        raise np.linalg.LinAlgError("the covariances are not positive definite")
    inverse = factor.copy(order="F")
    _invert_triangle(inverse)
    return factor, lapack.dlauum(inverse, lower=True, overwrite_c=True)[0]


def _invert_triangle(lower: Floats) -> None:
    """Replace a lower triangle by its inverse, by halves: products are faster than `dtrtri`."""
    from scipy.linalg import blas, lapack  # noqa: PLC0415 - heavy

    half = len(lower) // 2
    if half < SMALL_TRIANGLE:
        lower[:] = lapack.dtrtri(lower, lower=True)[0]
        return
    first, below, last = lower[:half, :half], lower[half:, :half], lower[half:, half:]
    _invert_triangle(first)
    _invert_triangle(last)
    product = blas.dtrmm(1.0, first, below, side=True, lower=True)
    below[:] = blas.dtrmm(-1.0, last, product, lower=True)


def _inverse(matrix: Floats) -> Floats:
    """Return the whole inverse of a symmetric matrix, which is overwritten."""
    lower = _factor_and_inverse(matrix)[1]
    return np.asarray(lower + np.tril(lower, -1).T)


def _blocks(points: Floats, rows: Ints, count: int) -> Iterator[Ints]:
    """Yield these rows of points in `count` blocks, divided along what varies most in each."""
    if count <= 1:
        yield rows
        return
    widest = int(points[rows].std(axis=0).argmax())
    rows = rows[np.argsort(points[rows, widest], kind="stable")]
    less = count // 2
    middle = len(rows) * less // count
    yield from _blocks(points, rows[:middle], less)
    yield from _blocks(points, rows[middle:], count - less)


class _Block(NamedTuple):
    """Distinct points whose values tell of each other; those of one point count by their mean."""

    coordinates: Floats
    """Shape (points, coordinates)."""
    values: Floats
    """The mean value at each point."""
    counts: Ints
    """The number of values at each point."""
    square: float
    """The sum of the squared differences of the values from these means: noise alone."""

    @classmethod
    def of(cls, coordinates: Floats, values: Floats) -> _Block:
        """Return the block of points, some of which may be the same, with a value each."""
        distinct = DistinctPoints.of_rows(coordinates)
        means = distinct.means(values)
        square = float(((values - means[distinct.point_of_row]) ** 2).sum())
        return cls(distinct.params, means, distinct.counts, square)


class _NegativeLogPosterior:
    """The cost of a covariance function: −log of the posterior of lengths and deviations."""

    def __init__(
        self, points: Floats, values: Floats, codes: Flags, blocks: Iterable[Ints]
    ) -> None:
        self.codes = codes
        coordinates, self.inputs = _coordinates(points, codes)
        self.blocks = [_Block.of(coordinates[rows], values[rows]) for rows in blocks]

    def covariance(self, logs: Floats) -> CovarianceFunction:
        sizes = np.exp(logs)
        smooth, rough, noise = sizes[-3:].tolist()
        lengths = sizes[:-3].reshape(2, -1)
        return CovarianceFunction(self.codes, lengths[0], lengths[1], smooth, rough, noise)

    def cost(self, logs: Floats) -> tuple[float, Floats]:
        """Return the cost and its gradient by the logarithms of lengths and deviations."""
        covariance = self.covariance(logs)
        from_usual = (logs[:-3] - LIKELY_LENGTH) / LENGTH_DEVIATION
        cost = 0.5 * float(from_usual @ from_usual)
        slopes = np.append(from_usual / LENGTH_DEVIATION, [0.0, 0.0, 0.0])
        for block in self.blocks:
            try:
                cost_of_block, slopes_of_block = self._cost_of_block(covariance, block)
            except np.linalg.LinAlgError:
                return 1e10, np.zeros(len(logs))
            cost += cost_of_block
            slopes += slopes_of_block
        return cost, slopes

    def _cost_of_block(self, covariance: CovarianceFunction, block: _Block) -> tuple[float, Floats]:
        """Return what a block adds to the cost and to its gradient.

        The probability of n values at a point is that of their mean, whose noise has the n-th part
        of the variance, and that of their differences from it.
        """
        from scipy.linalg import blas, lapack  # noqa: PLC0415 - heavy
        from scipy.spatial.distance import squareform  # noqa: PLC0415 - heavy

        coordinates, values, counts, square = block

        def squares(scales: Floats) -> Floats:
            """Return the scaled squared distances of pairs, faster but less exact than `pdist`."""
            scaled = coordinates * np.sqrt(scales[self.inputs])
            sizes, ones = np.einsum("ij,ij->i", scaled, scaled), np.ones(len(scaled))
            products = np.column_stack((scaled, sizes, ones)) @ (
                np.column_stack((-2 * scaled, ones, sizes)).T
            )
            of_pairs = squareform(products, checks=False)
            return np.asarray(np.maximum(of_pairs, 0.0, out=of_pairs))

        def by_length(by_square: Floats) -> Floats:
            """Return the gradient by scales, given that by the squared distances of pairs."""
            by_pair = squareform(by_square)
            products = np.einsum("ij,ij->j", by_pair @ coordinates, coordinates)
            of_coordinates = by_pair.sum(axis=0) @ coordinates**2 - products
            return np.asarray(np.bincount(self.inputs, of_coordinates), dtype=np.float64)

        smooth_scales, rough_scales = covariance.scales
        smooth, rough = _matern_5_2(squares(smooth_scales)), _matern_1_2(squares(rough_scales))
        matrix = covariance.matrix_of_pairs(smooth[0], rough[0])
        variance, repetitions = covariance.noise**2, int(counts.sum()) - len(counts)
        averaged_out = 1 - 1 / counts  # this share of the variance of the noise
        matrix.flat[:: len(counts) + 1] -= variance * averaged_out
        factor, inverse = _factor_and_inverse(matrix)
        weights = lapack.dpotrs(factor, values, lower=True)[0]
        cost = 0.5 * float(values @ weights) + float(np.log(np.diag(factor)).sum())
        cost += 0.5 * (square / variance + float(np.log(counts).sum()))
        cost += repetitions * math.log(covariance.noise)
        # ½ tr((K⁻¹ − ααᵀ) ∂K) for each length and deviation; pairs count twice
        difference = blas.dsyr(-1.0, weights, lower=True, a=inverse, overwrite_a=True)
        pairs = squareform(difference.T, checks=False)
        ends = 0.5 * float(np.trace(difference))
        of_noise = ends - 0.5 * float(averaged_out @ np.diag(difference))
        by_deviation = [
            2 * covariance.smooth**2 * (ends + float(pairs @ smooth[0])),
            2 * covariance.rough**2 * (ends + float(pairs @ rough[0])),
            2 * variance * of_noise - square / variance + repetitions,
        ]
        return cost, np.concatenate(
            (
                by_length(pairs * smooth[1]) * smooth_scales * covariance.smooth**2,
                by_length(pairs * rough[1]) * rough_scales * covariance.rough**2,
                by_deviation,
            )
        )
