"""The complete comparison of two log sets: heads, then blocks in parallel."""

from __future__ import annotations

from pathlib import Path

from rewritelog.cores import cores, limited_to
from rewritelog.diffing.blocks import DiffTask, Totals
from rewritelog.diffing.pairs import plan_pairs
from rewritelog.diffing.report import Comparison, HeadDifference
from rewritelog.diffing.trace_diff import TraceDiffTask
from rewritelog.errors import NotComparableError
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES
from rewritelog.formats.bgtrace.declaration import MACHINE_HEADER_BYTES, MachineHeader
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.files import InputFile
from rewritelog.formats.traces import Traces
from rewritelog.running.engines import map_blocks
from rewritelog.text import count_text

_MACHINE = {
    "total_pes": "total PEs",
    "x": "x",
    "y": "y",
    "z": "z",
    "num_cth": "communication threads per node",
    "num_wth": "worker threads per node",
    "stack_size": "stack size",
    "timing_method": "timing method",
    "thread_entry_point": "thread entry point",
}
_REPRESENTATION = {
    "log_version": "log version",
    "order": "byte order",
    "header_version": "header version",
    "files": "timeline files",
}


def compare_logs(
    a: LogSet,
    b: LogSet,
    params: Path | None = None,
    *,
    jobs: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Comparison:
    """Compare two log sets by meaning; `params` is the folder of param files with events' names.

    By default that is the folder of A, or else that of B. Memory is needed for two blocks per
    thread, whatever the size of the logs. Raise `DamagedLogError` if a side is damaged, and
    `RewriteLogError` if a file cannot be read.
    """
    source = _params(a, b, params)
    task = DiffTask(a, b, source, block_bytes)
    pairs = plan_pairs(a, b, block_bytes)
    total_bytes = a.timelines_bytes + b.timelines_bytes
    totals = Totals()
    with limited_to(jobs or cores()):
        for _, of_pair in map_blocks(task, pairs, "comparing", total_bytes):
            totals.add(of_pair)
    return Comparison(
        sides=(a, b),
        totals=totals,
        representation=(*_changes(a, b, _REPRESENTATION), *_header_changes(a, b)),
        machine=_changes(a, b, _MACHINE),
    )


def _params(a: LogSet, b: LogSet, params: Path | None) -> ParamFolder | None:
    if params is not None:
        return list_params(params)
    for folder in (a.folder, b.folder):
        source = list_params(folder)
        if source.pes:
            return source
    return None


def _changes(a: LogSet, b: LogSet, names: dict[str, str]) -> tuple[HeadDifference, ...]:
    values = [
        (label, str(getattr(a.summary, name)), str(getattr(b.summary, name)))
        for name, label in names.items()
    ]
    return tuple(HeadDifference(label, old, new) for label, old, new in values if old != new)


def _header_changes(a: LogSet, b: LogSet) -> tuple[HeadDifference, ...]:
    """Return further differences of the heads: length of the summary, sizes without effect."""
    old, new = (_head_facts(logs) for logs in (a, b))
    return tuple(
        HeadDifference(name, old.get(name, "absent"), new.get(name, "absent"))
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )


def _head_facts(logs: LogSet) -> dict[str, str]:
    with InputFile(logs.summary_path) as file:
        facts = {"bytes of the summary": str(file.size_bytes)}
        sizes = MachineHeader.parse(file.read(0, MACHINE_HEADER_BYTES).tobytes()).sizes
    for name, value in sizes.items():
        if isinstance(value, int) and not name.endswith("_format"):
            facts[f"{name.replace('_', ' ')} in the header"] = str(value)
    return facts


def compare_traces(a: Traces, b: Traces, *, jobs: int = 0) -> Comparison:
    """Compare two sets of traces; memory is needed for two ranks per thread.

    Raise `NotComparableError` for different ranks, `DamagedLogError` if a side is damaged.
    """
    ranks = [[unit.rank for unit in traces.units] for traces in (a, b)]
    if ranks[0] != ranks[1]:
        counts = " and ".join(count_text(len(each), "rank") for each in ranks)
        raise NotComparableError(f"A and B have {counts}, or different ones")
    totals = Totals()
    with limited_to(jobs):
        for _, of_rank in map_blocks(TraceDiffTask(a, b), a.units, "comparing", a.size_bytes):
            totals.add(of_rank)
    return Comparison((a, b), totals)


def compare_opened(
    a: LogSet | Traces, b: LogSet | Traces, params: Path | None = None, *, jobs: int = 0
) -> Comparison:
    """Compare two sets of the same format; raise `NotComparableError` for different ones."""
    if isinstance(a, LogSet) and isinstance(b, LogSet):
        return compare_logs(a, b, params, jobs=jobs)
    if isinstance(a, LogSet) or isinstance(b, LogSet) or a.title != b.title:
        raise NotComparableError(f"{a.path} has {a.title}, {b.path} has {b.title}")
    if params is not None:
        raise NotComparableError(f"--params is for bgTrace logs: {a.path} has {a.title}")
    return compare_traces(a, b, jobs=jobs)
