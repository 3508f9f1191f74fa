"""The summary of a log set: machine, sizes, brackets, and time by SEB name."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.checking.run import check_logs
from rewritelog.inspection.kernels import survey as kernels
from rewritelog.inspection.kernels.survey import SurveyCount
from rewritelog.kernels.names import enlarged, names_of, new_table
from rewritelog.kernels.tracer import tracer_replaces
from rewritelog.kernels.walk import FAULT_SIZE
from rewritelog.logs.blocks import LoadedBlock, raise_fault
from rewritelog.logs.files import paths_in
from rewritelog.logs.logset import LogSet
from rewritelog.logs.provenance import PROVENANCE_NAME, Provenance, read_provenance
from rewritelog.logs.summary import Summary
from rewritelog.text import (
    Readable,
    TextTable,
    bytes_text,
    count_text,
    json_number,
    percent_text,
    printable,
    wrapped,
)

_SHOWN = 20
_PARAM_FILE = re.compile(r"param\.[0-9]+")
_LOG_FILE = re.compile(r"bgTrace[0-9]*|" + re.escape(PROVENANCE_NAME))
_UNPAIRED = {
    "marks": "{0} with marks that do not pair up",
    "param-records": "{0} with different numbers of param records and brackets",
    "param-seb": "{1} of SEBs that the logs do not have",
}


@dataclass(frozen=True)
class NameShare:
    """The SEBs of one name."""

    name: str
    """The name, safe for a terminal."""
    sebs: int
    seconds: float
    """The sum of their durations."""
    share: float
    """The share of the durations of all SEBs, from 0 to 1."""


@dataclass(frozen=True)
class FileInfo:
    """A file of the log set."""

    name: str
    bytes: int


@dataclass(frozen=True, repr=False)
class LogInfo(Readable):
    """The result of `survey`."""

    folder: str
    summary: Summary
    files: tuple[FileInfo, ...]
    """The timeline files."""
    sebs: int
    messages: int
    events: int
    backward: int
    """The number of backward dependencies."""
    forward: int
    """The number of forward dependencies."""
    earliest_s: float | None
    """The earliest start of a SEB; None if no SEB has finite times."""
    latest_s: float | None
    """The latest end of a closed SEB."""
    seb_seconds: float
    """The sum of the durations of all closed SEBs."""
    names: tuple[NameShare, ...]
    """SEB names, most time first."""
    brackets: int
    irregular: int
    """The number of SEBs whose marks do not pair up."""
    unclosed: int
    """The number of SEBs that end before they start."""
    zero_length: int
    not_finite: int
    """The number of SEBs whose start or end is not finite; other times leave them out."""
    param_files: int
    companions: tuple[FileInfo, ...]
    """Files beside the logs that are neither timelines nor param files."""
    provenance: Provenance | None
    """The provenance of rewritten logs; None for others."""
    unpaired: tuple[tuple[str, int], ...]
    """The violated rules of `check` about brackets and param records, with counts."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of brackets and param records that do not pair up."""
        return tuple(
            f"{_UNPAIRED[rule].format(count_text(count, 'SEB'), count_text(count, 'param record'))}"
            " (`rewritelog check` says where)"
            for rule, count in self.unpaired
        )

    @property
    def tracer_replaces(self) -> float:
        """The share of SEB time whose durations TraceR ignores."""
        return math.fsum(name.share for name in self.names if tracer_replaces(name.name))

    @property
    def size_bytes(self) -> int:
        """The total size of the timeline files."""
        return sum(file.bytes for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return the summary as a JSON object; numbers that are not finite are null."""
        summary = {name: _json(value) for name, value in vars(self.summary).items()}
        summary["timeline_files"] = summary.pop("files")
        apart = ("summary", "provenance", "unpaired")
        own = {name: _json(value) for name, value in vars(self).items() if name not in apart}
        return {
            **own,
            "bytes": self.size_bytes,
            "machine": summary,
            "provenance": None if self.provenance is None else dict(self.provenance.content),
            "tracer_replaces": json_number(self.tracer_replaces),
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the summary as text, with only the names that take most time."""
        heads = map(wrapped, (*self._machine_lines(), *self._content_lines()))
        return "\n".join([*heads, *self._name_lines()])

    def _machine_lines(self) -> list[str]:
        s = self.summary
        workers = count_text(s.num_wth, "worker thread")
        communicators = count_text(s.num_cth, "communication thread")
        nodes = f"{s.x} × {s.y} × {s.z} nodes, {workers} and {communicators} per node"
        version = f"log version {s.log_version}, {s.order}-endian"
        lines = [
            f"{self.folder}: {version}, header version {s.header_version}",
            f"machine: {nodes}: {count_text(s.total_pes, 'PE')}",
            f"{count_text(len(self.files), 'timeline file')}: {bytes_text(self.size_bytes)}",
            *_file_lines(self.files),
            count_text(self.param_files, "param file"),
        ]
        if self.provenance is not None:
            lines.append(f"rewritten {self.provenance.text()}")
        if self.companions:
            lines.append(f"{count_text(len(self.companions), 'other file')}:")
            lines += _file_lines(self.companions)
        return lines

    def _content_lines(self) -> list[str]:
        counts = (
            count_text(self.sebs, "SEB"),
            count_text(self.messages, "message"),
            count_text(self.events, "event"),
            count_text(self.backward, "backward dependency", "backward dependencies"),
            count_text(self.forward, "forward dependency", "forward dependencies"),
        )
        span = f"from {_seconds(self.earliest_s)} to {_seconds(self.latest_s)}"
        irregular = f"marks that do not pair up in {count_text(self.irregular, 'SEB')}"
        lines = [
            ", ".join(counts),
            f"{span}; SEBs together {_seconds(self.seb_seconds)}",
            f"{count_text(self.brackets, 'bracket')}; {irregular}",
            f"{count_text(self.zero_length, 'SEB')} of zero length, {self.unclosed:,} unclosed",
        ]
        if self.not_finite:
            lines.append(f"{count_text(self.not_finite, 'SEB')} with times that are not finite")
        if self.tracer_replaces > 0:
            share = percent_text(self.tracer_replaces, 1)
            lines.append(f"TraceR has durations of its own for {share} of it (docs/simulating.md)")
        return lines

    def _name_lines(self) -> list[str]:
        rows = [
            (name.name, f"{name.sebs:,}", f"{name.seconds:.9g}", percent_text(name.share))
            for name in self.names
        ]
        return TextTable(("SEB name", "SEBs", "seconds", "share"), rows, most_rows=_SHOWN).lines()


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [{name: _json(part) for name, part in vars(item).items()} for item in value]
    return json_number(value) if isinstance(value, float) else value


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.9g} s"


def _file_lines(files: tuple[FileInfo, ...]) -> list[str]:
    lines = [f"  {file.name} ({bytes_text(file.bytes)})" for file in files[:_SHOWN]]
    if len(files) > _SHOWN:
        lines.append(f"  and {len(files) - _SHOWN:,} more")
    return lines


def survey(logs: LogSet) -> LogInfo:
    """Read a whole log set and return its summary.

    Memory is needed for one block and for the names, whatever the size of the logs. Raise
    `DamagedLogError` for damaged logs, `RewriteLogError` if a file cannot be read.
    """
    found = read_survey(logs)
    param_files, companions = _beside(logs.folder)
    earliest, latest = (float(time) for time in found.span)
    return LogInfo(
        folder=printable(str(logs.folder)),
        summary=logs.summary,
        files=tuple(FileInfo(file.path.name, file.size_bytes) for file in logs.files),
        earliest_s=earliest if earliest < math.inf else None,
        latest_s=latest if latest > -math.inf else None,
        seb_seconds=_total(found.name_seconds),
        names=_shares(found),
        param_files=param_files,
        companions=companions,
        provenance=read_provenance(logs.folder),
        unpaired=_violated_rules(logs.folder) if param_files else (),
        **{which.name.lower(): int(found.counts[which]) for which in SurveyCount},
    )


def read_survey(logs: LogSet) -> kernels.Survey:
    """Read a whole log set and return the counts and sums; raise as `survey` does."""
    found = _empty_survey(logs.layout.kernel.name_bytes)
    for loaded in logs.blocks():
        found = _add_block(found, loaded, logs)
    return found


def name_times(found: kernels.Survey) -> dict[bytes, float]:
    """Return the sum of the durations of SEBs by name, in seconds."""
    return {name: _total(found.name_seconds[k]) for k, name in enumerate(names_of(found.names))}


def _empty_survey(name_bytes: int) -> kernels.Survey:
    names = new_table(name_bytes)
    capacity = len(names.names)
    return kernels.Survey(
        counts=np.zeros(len(SurveyCount), dtype=np.int64),
        span=np.array([np.inf, -np.inf]),
        names=names,
        name_sebs=np.zeros(capacity, dtype=np.int64),
        name_seconds=np.zeros((capacity, 1, 2)),
    )


def _enlarged(found: kernels.Survey) -> kernels.Survey:
    """Return a survey with room for twice as many names."""
    return found._replace(
        names=enlarged(found.names),
        name_sebs=np.concatenate([found.name_sebs, np.zeros_like(found.name_sebs)]),
        name_seconds=np.concatenate([found.name_seconds, np.zeros_like(found.name_seconds)]),
    )


def _add_block(found: kernels.Survey, loaded: LoadedBlock, logs: LogSet) -> kernels.Survey:
    state = np.array([0, 0, -1], dtype=np.int64)
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    lay = logs.layout.kernel
    while (
        kernels.survey(loaded.buffer, loaded.pieces, lay, found, state, fault) == kernels.NAMES_FULL
    ):
        found = _enlarged(found)
    raise_fault(fault, loaded)
    return found


def _total(seconds: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Return the sum of the high and low parts; infinite if it overflows."""
    if not np.isfinite(seconds).all():
        return math.inf
    try:
        return math.fsum(seconds.ravel())
    except OverflowError:
        return math.inf


def _shares(found: kernels.Survey) -> tuple[NameShare, ...]:
    total = _total(found.name_seconds)
    shares = []
    for k, name in enumerate(names_of(found.names)):
        seconds = _total(found.name_seconds[k])
        share = seconds / total if 0 < total < math.inf else 0.0
        shares.append(NameShare(printable(name), int(found.name_sebs[k]), seconds, share))
    return tuple(sorted(shares, key=lambda share: (-share.seconds, -share.sebs, share.name)))


def _violated_rules(folder: Path) -> tuple[tuple[str, int], ...]:
    """Return the violated rules about brackets and records, with counts."""
    counts = check_logs(folder).findings.counts
    return tuple((rule, counts[rule]) for rule in _UNPAIRED if counts.get(rule))


def _beside(folder: Path) -> tuple[int, tuple[FileInfo, ...]]:
    """Return the number of param files in a folder, and its other files except the logs."""
    params, others = 0, []
    for path in paths_in(folder):
        if _PARAM_FILE.fullmatch(path.name):
            params += 1
        elif path.is_file() and not _LOG_FILE.fullmatch(path.name):
            others.append(FileInfo(printable(path.name), path.stat().st_size))
    return params, tuple(others)
