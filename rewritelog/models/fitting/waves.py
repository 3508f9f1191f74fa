"""Waves of blocks: so many workers take a block of work each, and the last wave leaves some idle.

The processors of a GPU compute a matrix product in tiles, and threads share the iterations of a
loop: a call takes the time of whole waves (NVIDIA, Matrix Multiplication Background User's Guide,
"Wave Quantization").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from operator import itemgetter
from typing import Literal, TypeAlias, get_args

import numpy as np
from msgspec.structs import replace

from rewritelog.arrays import Floats, Ints
from rewritelog.models.fitting import tuning
from rewritelog.models.fitting.samples import random_rows
from rewritelog.models.form import Count, Form, defect, require_shape

Tile: TypeAlias = Literal["64", "128", "256"]

TILES: tuple[Tile, ...] = get_args(Tile)
"""Sizes of tiles that kernels divide a parameter into, the last of which is partly wasted."""


class Waves(Form, frozen=True):
    """The blocks of a call, Π ceil(p/tile), and how many of them run at a time."""

    parameters: Ints
    """The parameters p, counted from 1."""
    tiles: Ints
    """What each is divided by, shape (parameters,)."""
    workers: Count
    """The number of blocks in a wave."""
    multiplier: Count = 0
    """The parameter that multiplies this number, such as that of threads; 0 for none."""

    def __post_init__(self) -> None:
        require_shape(".tiles", self.tiles, len(self.parameters))
        if not len(self.parameters):
            raise defect("must not be empty", ".parameters")
        for path, least in ((".tiles", self.tiles.min()), (".workers", self.workers)):
            if least < 1:
                raise defect("must be above 0", path)

    def blocks(self, params: Floats) -> Floats:
        """Return the number of blocks of each row."""
        return np.asarray(np.ceil(_counts(params, self.parameters) / self.tiles).prod(axis=1))

    def idle(self, params: Floats) -> Floats:
        """Return log(w/b) of each row: w blocks fill its waves, which have b."""
        blocks, workers = self.blocks(params), np.full(len(params), float(self.workers))
        if self.multiplier:
            workers *= _counts(params, self.multiplier)
        return np.asarray(np.log(np.ceil(blocks / workers) * workers / blocks))


def _counts(params: Floats, numbers: Ints | int) -> Floats:
    """Return the values of whole-number parameters, counted from 1."""
    return np.maximum(np.rint(params[:, numbers - 1]), 1.0)


@np.errstate(all="ignore")  # extreme parameters may overflow
def find_waves(params: Floats, logs: Floats, numbers: Sequence[int]) -> Waves | None:
    """Return the waves whose idle workers explain most of the residuals; None without clear ones.

    `logs` are logarithms of measured over predicted times, shape (samples,), and `numbers` the
    parameters, counted from 1, that may count blocks or workers. The clearest waves of some of the
    samples are compared with all.
    """
    if len(logs) < tuning.FEWEST_IN_WAVES:
        return None
    limited, rows = within_reach(logs), random_rows(len(logs), tuning.MOST_SOUGHT_WITH)
    possible = list(_possible(params, numbers))
    few, of_few = params[rows], limited[rows]
    found = np.array([_clearest(waves, others, few, of_few)[0] for waves, others in possible])
    clearest = np.argsort(-found, kind="stable")[: tuning.MOST_COMPARED]
    clear = [possible[index] for index in clearest if found[index] > tuning.CLEAR_INPUT]
    compared = [_clearest(waves, others, params, limited) for waves, others in clear]
    return max(compared, key=itemgetter(0))[1] if compared else None


def within_reach(logs: Floats) -> Floats:
    """Return residuals less their mean, those far from most limited."""
    reach = max(tuning.LARGEST_RESIDUAL * float(np.median(np.abs(logs))), tuning.LEAST_LIMIT)
    limited = np.clip(logs, -reach, reach)
    return np.asarray(limited - limited.mean())


def _possible(params: Floats, numbers: Sequence[int]) -> Iterator[tuple[Waves, Ints]]:
    """Yield waves with one worker, and the parameters that may be the number of workers instead.

    At most two parameters are tiled, with sizes of which one is at most twice the other, and at
    most two are not. Some values of a tiled parameter have two tiles or more.
    """
    sizes = dict[int, tuple[int, ...]]()
    for number in numbers:
        values = params[:, number - 1]
        if values.min() >= 1 and (values == np.rint(values)).all():
            tiles = (tile for tile in map(int, TILES) if 2 * tile <= values.max())
            sizes[number] = (1, *tiles)
    for count in (1, 2, 3):
        for chosen in combinations(sizes, count):
            for divisors in product(*map(sizes.__getitem__, chosen)):
                tiled = [size for size in divisors if size > 1]
                alike = not tiled or max(tiled) <= 2 * min(tiled)
                if len(tiled) <= 2 and count - len(tiled) <= 2 and alike:
                    others = [number for number in sizes if number not in chosen]
                    waves = Waves(np.array(chosen), np.array(divisors), 1)
                    yield waves, np.array(others, dtype=np.int64)


def _clearest(waves: Waves, multipliers: Ints, params: Floats, logs: Floats) -> tuple[float, Waves]:
    """Return how clear waves are (`_significance`), and these with the clearest number of workers.

    It is a number up to `MOST_WORKERS`, or one of these parameters.
    """
    blocks, workers = waves.blocks(params), np.arange(1.0, tuning.MOST_WORKERS + 1)
    of_numbers = _significance(blocks, logs, workers[:, None])
    of_parameters = _significance(blocks, logs, _counts(params, multipliers).T)
    significance = np.append(of_numbers, of_parameters)
    index = int(significance.argmax())
    if index < len(workers):
        best = replace(waves, workers=int(workers[index]))
    else:
        best = replace(waves, multiplier=int(multipliers[index - len(workers)]))
    return float(significance[index]), best


def _significance(blocks: Floats, logs: Floats, workers: Floats) -> Floats:
    """Return how far the correlation of residuals and idle workers is above 0, in standard errors.

    `workers` has a row for each of several assumptions, with one number or that of each sample; the
    mean of the residuals is near 0, as single precision requires. The correlation is that of the
    samples with more than one wave. With one, a call takes the same time however many blocks it
    has, which a smooth correction can tell.
    """
    of_blocks, of_logs, of_workers = (
        values.astype(np.float32) for values in (blocks, logs, workers)
    )
    counted = (of_blocks > of_workers).astype(np.float32)
    idle = of_blocks / of_workers
    np.ceil(idle, out=idle)
    idle *= of_workers
    idle *= 1 / of_blocks
    idle -= 1
    idle *= counted
    powers = np.column_stack((np.ones_like(of_logs), of_logs, of_logs**2))
    counts, sums, squares = (counted @ powers).T
    means = idle.sum(axis=1) / counts
    of_both = idle @ of_logs / counts - means * sums / counts
    of_idle = np.einsum("ij,ij->i", idle, idle) / counts - means**2
    variance = squares / counts - (sums / counts) ** 2
    significance = of_both / np.sqrt(of_idle * variance / counts)
    varying = np.minimum(of_idle, variance) > tuning.LEAST_DEVIATION**2
    return np.where((counts >= tuning.FEWEST_IN_WAVES) & varying, significance, 0.0)
