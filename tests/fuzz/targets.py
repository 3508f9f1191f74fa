"""The targets by name. A new reader is a function in `readers` and a line in `READERS` here."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from fuzz import lines, readers, timelines
from fuzz.corpus import kept
from fuzz.mutation import mutant_of
from fuzz.readers import Check

READERS: dict[str, Callable[[Path], tuple[Check, list[bytes]]]] = {
    "timelines": timelines.timelines_check,
    "lines": lines.lines_check,
    "summary": readers.summary_check,
    "heads": readers.head_check,
    "log-set": readers.log_set_check,
    "check-and-rewrite": readers.check_and_rewrite_check,
    "convert-back": readers.convert_back_check,
    "diff-itself": readers.diff_itself_check,
    "chakra": readers.chakra_check,
    "params": readers.params_check,
    "timings": readers.timings_check,
    "formulas": readers.formulas_check,
    "coefficients": readers.coefficients_check,
    "models": readers.models_check,
}


class BrokenError(Exception):
    """Something that has to hold does not, for the input `data`."""

    def __init__(self, message: str, data: bytes) -> None:
        super().__init__(message)
        self.data = data


MOST_SEED_BYTES = 1 << 14
"""Larger files that are kept have no mutants: one of 2,000 events took most of the time."""


class Target(ABC):
    """What mutants are given to."""

    batch = 2_000
    """Mutants between two looks at the clock."""

    @abstractmethod
    def run(self, rng: np.random.Generator, runs: int) -> int:
        """Check mutants; return how many of them were good inputs.

        Raise `BrokenError` for the first one for which something did not hold.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to put away
        """Put away what was made for the target."""


class ReaderTarget(Target):
    """Files through one of the readers of `READERS`."""

    batch = 10

    def __init__(self, name: str) -> None:
        self._stack, make = ExitStack(), READERS[name]
        self.check, seeds = make(self._stack.enter_context(readers.workplace()))
        small = (path for path in kept(name) if 0 < path.stat().st_size <= MOST_SEED_BYTES)
        self.seeds = [*seeds, *(path.read_bytes() for path in small)]

    def run(self, rng: np.random.Generator, runs: int) -> int:
        """Check mutants of all seeds in turn."""
        return sum(self._try(data) for data in itertools.islice(self._mutants(rng), runs))

    def _try(self, data: bytes) -> bool:
        try:
            return self.check(data)
        except Exception as error:
            raise BrokenError(f"{type(error).__name__}: {error}", data) from error

    def _mutants(self, rng: np.random.Generator) -> Iterator[bytes]:
        for seed in itertools.cycle(self.seeds):
            yield mutant_of(seed, rng)

    def close(self) -> None:
        """Remove the files."""
        self._stack.close()


TARGETS: dict[str, Callable[[], Target]] = {
    **{name: partial(ReaderTarget, name) for name in READERS},
}
