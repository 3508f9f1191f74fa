"""The correction of a formula: a factor for what it leaves, smooth or with steps.

T = formula(p) · exp(c(p)), c being the mean of a Gaussian process over the parameters, given the
logarithms of measured over predicted times: universal kriging with the formula as its trend
(Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 2.7). Far from the samples c
is 0, and the formula alone predicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from rewritelog.arrays import Flags, Floats, Ints, distinct, median
from rewritelog.models.equal_rows import grouped
from rewritelog.models.fitting.process import (
    MOST_LEARNT_FROM,
    MOST_STEPS,
    STEPS_FROM_SIMILAR,
    Conditioning,
    Kernel,
    Process,
    learn,
)
from rewritelog.models.form import Form, NotNegative

FEWEST = 50
"""With fewer samples there is no correction."""

MOST_POINTS = 1000
"""The samples between which a correction interpolates are at most this many."""

InputKind: TypeAlias = Literal["log", "arsinh", "aligned", "32", "64", "128", "256"]

STEPS: tuple[InputKind, ...] = ("32", "64", "128", "256", "aligned")
"""Sizes of tiles that kernels divide a parameter into, the last of which is partly wasted; and
whether it is a multiple of powers of two."""

MOST_ALIGNED = 16
"""Multiples of higher powers of two fill the vectors of a processor no better."""

MANY_VALUES = 32
"""Steps of tiles are looked for in whole-number parameters with at least this many values."""

FEW_VALUES = 8
"""A parameter with three to this many values may be a code, whose order means nothing."""

LONGEST = 60.0
"""An input with a greater length, in standard deviations, has no effect, and is left out."""

LARGEST = 5.0
"""Residuals of more than this many robust standard deviations count as this many."""

LEAST_LIMIT = 0.1
"""Residuals up to this size count as they are, however small the others."""


class Inputs(Form, frozen=True):
    """What the process knows of a row of parameters: sizes, wasted parts of tiles, alignment."""

    parameters: Ints
    """The parameter of each input, counted from 1, shape (inputs,)."""
    kinds: Annotated[tuple[InputKind, ...], Meta(min_length=1)]
    """`log`, `arsinh`, `aligned`, or the size of a tile."""
    units: Floats
    """What the parameter is divided by before its arsinh is taken, shape (inputs,)."""
    centres: Floats
    deviations: Floats
    """Each input has these subtracted, and is divided by these, shape (inputs,)."""

    @classmethod
    def of(cls, params: Floats) -> Inputs:
        """Return the inputs for these samples, those that vary among them."""
        parameters, kinds, units = list[int](), list[InputKind](), list[float]()
        for number, values in enumerate(params.T, 1):
            if not np.ptp(values):
                continue
            middle = median(np.abs(values))
            size: InputKind = "log" if values.min() > 0 else "arsinh"
            mine = [size, *_step_kinds(values)]
            parameters += [number] * len(mine)
            kinds += mine
            units += [middle if middle > 0 else 1.0] * len(mine)
        unscaled = cls(
            np.array(parameters, dtype=np.int64),
            tuple(kinds),
            np.array(units),
            np.zeros(len(kinds)),
            np.ones(len(kinds)),
        )
        columns = unscaled.columns(params)
        deviations = columns.std(axis=0)
        varying = np.flatnonzero(deviations > 1e-9)
        scaled = replace(unscaled, centres=columns.mean(axis=0), deviations=deviations)
        return scaled.part(varying)

    def part(self, some: Ints) -> Inputs:
        """Return the inputs with these indices."""
        return Inputs(
            self.parameters[some],
            tuple(self.kinds[index] for index in some),
            self.units[some],
            self.centres[some],
            self.deviations[some],
        )

    def columns(self, params: Floats) -> Floats:
        """Return the inputs of each row, shape (rows, inputs)."""
        columns = np.empty((len(params), len(self.kinds)))
        with np.errstate(all="ignore"):  # a model file may hold extreme numbers
            for index, kind in enumerate(self.kinds):
                values = params[:, self.parameters[index] - 1]
                columns[:, index] = _input(kind, values, float(self.units[index]))
            return np.asarray((columns - self.centres) / self.deviations)


def _step_kinds(values: Floats) -> list[InputKind]:
    """Return the kinds of inputs that have steps in this parameter."""
    if (values < 1).any() or (values != np.rint(values)).any():
        return []
    if len(distinct(values)) < MANY_VALUES:
        return []
    return [*STEPS]


def _input(kind: InputKind, values: Floats, unit: float) -> Floats:
    """Return the input of this kind for each value of its parameter."""
    if kind == "arsinh":
        return np.asarray(np.arcsinh(values / unit))
    if kind == "log":
        return np.log(np.maximum(values, unit * 1e-9))
    whole = np.clip(np.rint(values), 1.0, 2.0**52)
    if kind == "aligned":
        return np.asarray(np.log2(np.gcd(whole.astype(np.int64), MOST_ALIGNED)))
    tile = float(kind)
    return np.asarray(np.log(np.ceil(whole / tile) * tile / whole))


@dataclass(frozen=True)
class Similarity:
    """Which rows of parameters have similar residuals: what a correction is conditioned with."""

    inputs: Inputs
    kernel: Kernel

    @classmethod
    def learnt(cls, params: Floats, logs: Floats, similar: Similarity | None = None) -> Similarity:
        """Return the similarity that makes these residuals most probable.

        `logs` are the logarithms of measured over predicted times, shape (samples,); at least one
        parameter varies. The search begins at that of residuals of another formula, `similar`.
        """
        inputs = Inputs.of(params)
        points, limited = inputs.columns(params), within_reach(logs)
        if similar is not None:
            start = similar.kernel
            return cls(inputs, learn(points, limited, start.codes, start, steps=STEPS_FROM_SIMILAR))
        kernel = learn(points, limited, np.zeros(len(inputs.kinds), dtype=np.bool_))
        codes = _codes(kernel, points, params[:, inputs.parameters - 1])
        if codes.any():
            kernel = learn(points, limited, codes, kernel)
        return cls(inputs, kernel)

    def refined(self, params: Floats, logs: Floats) -> Similarity:
        """Return the similarity learnt from more of the samples, without idle inputs."""
        points, kernel = self.inputs.columns(params), self.kernel
        kernel = learn(
            points, within_reach(logs), kernel.codes, kernel, MOST_LEARNT_FROM, MOST_STEPS
        )
        lengths = np.minimum(kernel.smooth_lengths, kernel.rough_lengths)
        used = np.flatnonzero(lengths <= max(LONGEST, float(lengths.min())))
        return Similarity(self.inputs.part(used), kernel.part(used))

    def conditioned(self, params: Floats, *logs: Floats) -> list[tuple[Correction, Floats]]:
        """Return the correction for each of several formulas' residuals at some samples.

        There are at most `MOST_POINTS` samples. Each correction comes with the logarithm of the
        factor at each sample of a correction without that sample.
        """
        conditioning = Conditioning(self.kernel, self.inputs.columns(params))
        corrections = []
        for limited in map(within_reach, logs):
            process, without = conditioning.given(limited)
            most = float(np.abs(limited).max())
            correction = Correction(self.inputs, self.kernel, most, params, process.weights)
            corrections.append((correction, without))
        return corrections


class Correction(Form, frozen=True, dict=True):
    """The factor by which a formula's seconds are multiplied."""

    inputs: Inputs
    kernel: Kernel
    most: NotNegative
    """The logarithms of factors lie between this and its negative."""
    params: Floats
    """The parameters of the samples that it interpolates between, shape (samples, parameters)."""
    weights: Floats
    """`Process.weights` for each of these samples."""

    @cached_property
    def process(self) -> Process:
        """The process, which has a point for each of the samples."""
        return Process(self.kernel, self.inputs.columns(self.params), self.weights)

    @property
    def codes(self) -> tuple[int, ...]:
        """The parameters whose values are taken as codes without order, counted from 1."""
        return tuple(self.inputs.parameters[self.kernel.codes].tolist())

    @property
    def parameters(self) -> tuple[int, ...]:
        """The parameters that it depends on, counted from 1."""
        return tuple(dict.fromkeys(self.inputs.parameters.tolist()))

    def factors(self, params: Floats) -> Floats:
        """Return each row's factor; equal rows are predicted once."""
        factors = np.ones(len(params))
        usable = np.flatnonzero(np.isfinite(params).all(axis=1))
        if not len(usable):
            return factors
        _, order, first = grouped(params[usable])
        rows = params[usable[order[first]]]
        with np.errstate(all="ignore"):
            means = self.process.mean(self.inputs.columns(rows))
        means = np.where(np.isfinite(means), means, 0.0)
        of_rows = np.exp(np.clip(means, -self.most, self.most))
        factors[usable[order]] = of_rows[np.cumsum(first) - 1]
        return factors


def within_reach(logs: Floats) -> Floats:
    """Return residuals, outliers among them limited."""
    middle = median(logs)
    reach = max(LARGEST * 1.4826 * median(np.abs(logs - middle)), LEAST_LIMIT)
    return np.asarray(np.clip(logs, middle - reach, middle + reach))


def _codes(kernel: Kernel, points: Floats, values: Floats) -> Flags:
    """Return which inputs are codes: few values, each unlike even its neighbours in order."""
    codes = np.zeros(points.shape[1], dtype=np.bool_)
    for index, column in enumerate(points.T):
        if 3 <= len(distinct(values[:, index])) <= FEW_VALUES:
            gap = float(np.diff(distinct(column)).min())
            codes[index] = kernel.smooth_lengths[index] < gap
    return codes
