"""Good inputs to damage: made logs of every version and byte order, and their texts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fuzz.promises import Tools
from fuzz.timelines import Seed
from rewritelog.format import ByteOrder, layout
from rewritelog.format.declaration import LOG_VERSIONS
from rewritelog.kernels.names import new_table
from rewritelog.logs.logset import LogSet, open_logs
from rewritelog.synthesis.synth import SynthOptions, synthesise

SEB_TIMES = ("recv_time", "eff_recv_time", "start_time", "exec_time", "end_time")


def make_logs(folder: Path, log_version: int, order: ByteOrder, *, seed: int = 1) -> LogSet:
    """Make a small log set with brackets, messages and dependencies."""
    options = SynthOptions(
        pes=3,
        sebs=4,
        messages=1.2,
        files=1,
        bracketed=0.6,
        timings=20,
        log_version=log_version,
        order=order,
        seed=seed,
    )
    synthesise(folder, options)
    return open_logs(folder)


def block_seeds() -> list[tuple[Seed, Tools]]:
    """Return a block and its tools for each log version and byte order, rewritten in two ways."""
    made = []
    with tempfile.TemporaryDirectory() as work:
        for version in LOG_VERSIONS:
            for order in get_args(ByteOrder):
                logs = make_logs(Path(work) / f"{version}-{order}", version, order, seed=version)
                seed = _seed_of(logs)
                made += [(seed, _tools(version, order, keep_recv=keep)) for keep in (False, True)]
    return made


def _tools(version: int, order: ByteOrder, *, keep_recv: bool) -> Tools:
    lay = layout(version, order)
    return Tools(
        lay.kernel,
        new_table(lay.kernel.name_bytes, 64),
        factor=0.7 if keep_recv else 1.9,
        by_name=keep_recv,
        keep_recv=keep_recv,
    )


def _seed_of(logs: LogSet) -> Seed:
    file = logs.files[0]
    base = file.head_bytes
    data = np.frombuffer(file.path.read_bytes(), dtype=np.uint8)[base:].copy()
    sebs, messages, events = logs.sebs(), logs.messages(), logs.events()
    lay = logs.layout
    counts = [file.borders[:-1] - base, sebs["offset"] - base + lay.kernel.seb_bytes]
    times = [sebs["offset"] - base + _offset(lay.seb, name) for name in SEB_TIMES]
    at = messages["offset"] - base
    times += [at + _offset(lay.message, name) for name in ("send_time", "recv_time")]
    times.append(events["offset"] - base + lay.kernel.event_r_time)
    marks = events["index"] < 0
    counts.append(events["offset"][marks] - base + lay.kernel.event_bytes)
    ends = np.append(sebs["offset"][1:], file.size_bytes) - base
    behind = 4 * (sebs["forward"] + 1)
    counts.append(ends - behind - np.isin(ends - 4, file.borders[1:-1] - base) * 4)
    counts.append(counts[-1] - 4 * (sebs["backward"] + 1))
    kinds = events["offset"] - base
    return Seed(data, file.borders - base, np.concatenate(counts), np.concatenate(times), kinds)


def _offset(record: np.dtype[Any], field: str) -> int:
    fields: Any = record.fields
    return int(fields[field][1])
