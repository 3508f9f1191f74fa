"""Detection of the log version of timelines by trial, in case the summary is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.core import core
from rewritelog.errors import DamagedLogError
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    FAULTS,
    LOG_VERSIONS,
    ByteOrder,
    Layout,
    layout,
    number_type,
)
from rewritelog.formats.bgtrace.heads import TimelineFile
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import seb_records, walk_pieces
from rewritelog.formats.files import InputFile

_SAMPLES, _TRIES = 8, 64
"""The number of timelines read, and of those examined to find some with SEBs."""

_SAMPLE_BYTES = 1 << 18

_SAME_LAYOUT = {5: 4}
"""Versions with the same layout as another one."""


@dataclass(frozen=True)
class _Sample:
    """The beginning of a timeline after its SEB count."""

    window: Bytes
    order: ByteOrder
    count: int
    whole: bool


def likely_version(files: Iterable[TimelineFile], claimed: int) -> int | None:
    """Return the log version that fits the first timelines better than the claimed one.

    Return None if there is none. 4 also stands for 5, which has the same layout.
    """
    samples = list(_samples(files))
    fits = {
        version: _fit(samples, version) for version in LOG_VERSIONS if version not in _SAME_LAYOUT
    }
    best = max(fits, key=lambda version: fits[version])
    exact, sebs = fits.get(_SAME_LAYOUT.get(claimed, claimed), (0, 0))
    better = fits[best][0] > exact or (fits[best][0] == exact and fits[best][1] > 2 * sebs + 1)
    return best if better else None


def with_likely_version(error: DamagedLogError, logs: LogSet) -> DamagedLogError:
    """Return the error of a walk, with a hint if another log version fits the timelines."""
    claimed = logs.summary.log_version
    likely = likely_version(logs.files, claimed)
    if likely is None:
        return error
    hint = f"the summary says log version {claimed}, but the timelines fit version"
    problem = f"{error.problem}; {hint} {version_text(likely)}"
    return DamagedLogError(error.location, problem, error.rule)


def version_text(version: int) -> str:
    """Return the name of a detected version, with others of the same layout."""
    others = [other for other, same in _SAME_LAYOUT.items() if same == version]
    return " or ".join(str(number) for number in (version, *others))


def _samples(files: Iterable[TimelineFile]) -> Iterator[_Sample]:
    """Yield the beginnings of a few timelines with SEBs, some of each file."""
    chosen = [file for file in files if len(file.pes)]
    each = max(1, _SAMPLES // max(1, len(chosen)))
    for file in chosen[:_SAMPLES]:
        taken = 0
        with InputFile(file.path) as source:
            for begin, end in zip(file.borders[:_TRIES], file.borders[1:], strict=False):
                size = int(end - begin)
                if size <= COUNT_BYTES or taken == each:
                    continue
                window = source.read(int(begin), min(size, _SAMPLE_BYTES))
                count = int(window[:COUNT_BYTES].view(number_type(file.order, "i4"))[0])
                if count > 0:
                    taken += 1
                    yield _Sample(window[COUNT_BYTES:], file.order, count, size == len(window))


def _fit(samples: list[_Sample], version: int) -> tuple[int, int]:
    """Return how many samples can be read completely in a version, and how many SEBs in all."""
    exact = total = 0
    for sample in samples:
        sebs, fault = _sound_sebs(sample, layout(version, sample.order))
        total += sebs
        if sample.whole:
            exact += sebs == sample.count and fault == core.OK
        else:
            exact += sebs > 0 and fault in FAULTS and FAULTS[fault].truncated
    return exact, total


def _sound_sebs(sample: _Sample, lay: Layout) -> tuple[int, int]:
    """Return how many SEBs can be read until one has a wrong seqno, and the fault that ended it."""
    starts, ends = np.array([0]), np.array([len(sample.window)])
    walk = walk_pieces(sample.window, starts, ends, np.array([sample.count]), lay)
    sebs = seb_records(sample.window, walk, lay)
    wrong = np.flatnonzero(sebs["seqno"] != np.arange(len(sebs)))
    if len(wrong):
        return int(wrong[0]), core.OK
    return len(sebs), int(walk.faults[0, core.FAULT_CODE])
