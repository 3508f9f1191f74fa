"""Log sets of any number of SEBs whose durations span many orders of magnitude, made with numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from logbuilder import machine
from numpy.typing import NDArray

from rewritelog.formats.bgtrace.declaration import layout, summary_struct, timeline_file_struct

Floats = NDArray[np.float64]

_HEAD_BYTES = 20


@dataclass(frozen=True)
class ManySebs:
    """A log set, and what its SEBs last."""

    folder: Path
    durations: list[Floats]
    """Those of each file that is not a link to another one."""
    times: int
    """How often each such file is there: itself and its links."""

    def sum_s(self, factor: float = 1.0) -> float:
        """Return the sum of all durations times a factor, rounded once."""
        return math.fsum(chain.from_iterable(self._each(factor) for _ in range(self.times)))

    def _each(self, factor: float) -> Iterator[float]:
        return chain.from_iterable((part * factor).tolist() for part in self.durations)


def write_many(
    folder: Path, seed: int, *, files: int, times: int = 1, workers: int = 4, sebs: int
) -> ManySebs:
    """Write `files` timeline files of `workers` PEs with `sebs` SEBs, and links: `times` of each.

    The links save room, and no reader can tell.
    """
    folder.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    nodes = files * times
    head = {
        "machine": machine("little"),
        "total_pes": nodes * workers,
        "x": nodes,
        "y": 1,
        "z": 1,
        "num_cth": 1,
        "num_wth": workers,
        "stack_size": 0,
        "timing_method": 2,
        "files": nodes,
        "log_version": 6,
        "thread_entry_point": 1,
    }
    (folder / "bgTrace").write_bytes(summary_struct("little").build(head))
    durations = []
    for index in range(files):
        durations.append(_write_file(folder / f"bgTrace{index}", draw, workers, sebs))
        for time in range(1, times):
            (folder / f"bgTrace{index + time * files}").symlink_to(f"bgTrace{index}")
    return ManySebs(folder, durations, times)


def _write_file(path: Path, draw: np.random.Generator, workers: int, sebs: int) -> Floats:
    shape = np.dtype([("head", layout(6, "little").seb), ("counts", "<i4", (4,))])
    timeline_bytes = 4 + sebs * shape.itemsize
    offsets = [_HEAD_BYTES + 4 * workers + k * timeline_bytes for k in range(workers)]
    head = {"machine": machine("little"), "count": workers, "offsets": offsets}
    durations = []
    with path.open("xb") as file:
        file.write(timeline_file_struct("little").build(head))
        for _ in range(workers):
            rows = _timeline(draw, np.zeros(sebs, dtype=shape))
            file.write(np.int32(sebs).tobytes())
            file.write(rows.tobytes())
            durations.append(rows["head"]["end_time"] - rows["head"]["start_time"])
    return np.concatenate(durations)


def _timeline(draw: np.random.Generator, rows: NDArray[Any]) -> NDArray[Any]:
    count = len(rows)
    start = draw.random(count) * 10.0 ** draw.integers(-3, 5, count)
    end = start + 10.0 ** draw.uniform(-12, 4, count)
    rows["head"]["start_time"], rows["head"]["end_time"] = start, end
    rows["head"]["exec_time"] = end - start
    rows["head"]["seqno"] = np.arange(count)
    rows["head"]["name"] = b"msgep"
    return rows
