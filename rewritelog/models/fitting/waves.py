"""Waves of blocks: so many workers take a block of work each, and the last wave leaves some idle.

The processors of a GPU compute a matrix product in tiles, and threads share the iterations of a
loop: a call takes the time of whole waves (NVIDIA, Matrix Multiplication Background User's Guide,
"Wave Quantization").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
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

    def __post_init__(self) -> None:
        require_shape(".tiles", self.tiles, len(self.parameters))
        if not len(self.parameters):
            raise defect("must not be empty", ".parameters")
        for path, least in ((".tiles", self.tiles.min()), (".workers", self.workers)):
            if least < 1:
                raise defect("must be above 0", path)

    def blocks(self, params: Floats) -> Floats:
        """Return the number of blocks of each row."""
        sizes = np.maximum(np.rint(params[:, self.parameters - 1]), 1.0)
        return np.asarray(np.ceil(sizes / self.tiles).prod(axis=1))

    def idle(self, params: Floats) -> Floats:
        """Return log(w/b) of each row: w blocks fill its waves, which have b."""
        blocks = self.blocks(params)
        return np.asarray(np.log(np.ceil(blocks / self.workers) * self.workers / blocks))


@np.errstate(all="ignore")  # extreme parameters may overflow
def find_waves(params: Floats, logs: Floats, numbers: Sequence[int]) -> Waves | None:
    """Return the waves whose idle workers explain most of the residuals; None without clear ones.

    `logs` are logarithms of measured over predicted times, shape (samples,), and `numbers` the
    parameters, counted from 1, that may count the blocks. Some of the samples decide what these
    are, and all of them the number of workers.
    """
    if len(logs) < tuning.FEWEST_IN_WAVES:
        return None
    reach = max(tuning.LARGEST_RESIDUAL * float(np.median(np.abs(logs))), tuning.LEAST_LIMIT)
    limited, rows = np.clip(logs, -reach, reach), random_rows(len(logs), tuning.MOST_SOUGHT_WITH)
    most, clearest = tuning.CLEAR_WAVES, None
    for parameters, tiles in _divisions(params, numbers):
        waves = Waves(np.array(parameters), np.array(tiles), 1)
        significance = _significance(waves.blocks(params[rows]), limited[rows]).max()
        if significance > most:
            most, clearest = significance, waves
    if clearest is None:
        return None
    workers = int(_significance(clearest.blocks(params), limited).argmax()) + 1
    return replace(clearest, workers=workers)


def _divisions(
    params: Floats, numbers: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield parameters, and what each is divided by: the size of a tile, or 1.

    At most two are tiled, with sizes of which one is at most twice the other, and at most two are
    not. Some values of a tiled parameter have two tiles or more.
    """
    sizes = dict[int, tuple[int, ...]]()
    for number in numbers:
        values = np.unique(params[:, number - 1])
        if values[0] >= 1 and (values == np.rint(values)).all():
            sizes[number] = (1, *(tile for tile in map(int, TILES) if 2 * tile <= values[-1]))
    for count in (1, 2, 3):
        for chosen in combinations(sizes, count):
            for tiles in product(*map(sizes.__getitem__, chosen)):
                tiled = [tile for tile in tiles if tile > 1]
                alike = not tiled or max(tiled) <= 2 * min(tiled)
                if len(tiled) <= 2 and count - len(tiled) <= 2 and alike:
                    yield chosen, tiles


def _significance(blocks: Floats, logs: Floats) -> Floats:
    """Return the correlation of residuals and idle workers, in standard errors, for 1, 2 … workers.

    It is that of the samples with more than one wave. With one, a call takes the same time however
    many blocks it has, which a smooth correction can tell.
    """
    order = np.argsort(-blocks, kind="stable")
    of_blocks, of_logs = (
        values[order].astype(np.float32) for values in (blocks, logs - logs.mean())
    )
    workers = np.arange(1, tuning.MOST_WORKERS + 1, dtype=np.float32)[:, None]
    counts = np.searchsorted(-of_blocks, -workers[:, 0])  # those with more than one wave are first
    idle = of_blocks / workers
    np.ceil(idle, out=idle)
    idle *= workers
    idle *= 1 / of_blocks
    idle -= 1
    idle *= np.arange(len(blocks)) < counts[:, None]
    powers = np.zeros((2, len(blocks) + 1))
    np.cumsum((of_logs, of_logs**2), axis=1, out=powers[:, 1:])
    sums, squares = powers[:, counts]
    means = idle.sum(axis=1) / counts
    of_both = idle @ of_logs / counts - means * sums / counts
    of_idle = np.einsum("ij,ij->i", idle, idle) / counts - means**2
    variance = squares / counts - (sums / counts) ** 2
    significance = of_both / np.sqrt(of_idle * variance / counts)
    varying = np.minimum(of_idle, variance) > tuning.LEAST_DEVIATION**2
    return np.where((counts >= tuning.FEWEST_IN_WAVES) & varying, significance, 0.0)
