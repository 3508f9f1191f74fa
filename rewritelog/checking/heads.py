"""The check of what precedes the timelines: summary, log version and the heads of the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats import SUMMARY_NAME
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    FAULTS,
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    ByteOrder,
    layout,
    number_type,
)
from rewritelog.formats.bgtrace.heads import (
    LOG_VERSION_AT,
    Summary,
    TimelineFile,
    parse_summary,
    read_timeline_file,
    summary_faults,
)
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.records import seb_records, walk_pieces
from rewritelog.formats.files import InputFile, paths_in

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
    """Return how many samples can be read completely in a version, and how many SEBs in all.

    SEBs are read until one has a wrong seqno.
    """
    exact = total = 0
    for sample in samples:
        lay, window = layout(version, sample.order), sample.window
        starts, ends, counts = (np.array([n]) for n in (0, len(window), sample.count))
        walk = walk_pieces(window, starts, ends, counts, lay)
        seqno = seb_records(window, walk, lay)["seqno"]
        wrong = np.flatnonzero(seqno != np.arange(len(seqno)))
        sebs = int(wrong[0]) if len(wrong) else len(seqno)
        fault = core.OK if len(wrong) else int(walk.faults[0, core.FAULT_CODE])
        total += sebs
        if sample.whole:
            exact += sebs == sample.count and fault == core.OK
        else:
            exact += sebs > 0 and fault in FAULTS and FAULTS[fault].truncated
    return exact, total


_MOST_PES = 1 << 31
"""More PEs than any log can have."""


def read_heads(folder: Path, findings: Findings) -> tuple[Summary, tuple[TimelineFile, ...]] | None:
    """Read and check the summary and the heads of all timeline files.

    Return the summary, with a consistent number of PEs and the likely log version, and the files
    that can be read; None if the summary cannot be used. Findings are whole if the beginnings of
    all timelines are known.
    """
    path = folder / SUMMARY_NAME
    summary = _read_summary(path, findings)
    if summary is None:
        return None
    files = tuple(_read_files(folder, summary, findings))
    version = _version_to_read(summary, path, files, findings)
    if version is None:
        return None
    findings.whole = sum(int(file.known.sum()) for file in files) == summary.total_pes
    return replace(summary, log_version=version), files


def _read_summary(path: Path, findings: Findings) -> Summary | None:
    """Return the summary, None if it cannot be used."""
    try:
        summary = parse_summary(path)
    except RewriteLogError as error:
        findings.add_unreadable(path, error)
        return None
    usable = True
    for fault in summary_faults(summary, path):
        usable &= fault.rule != "summary"
        if fault.rule != "log-version":  # reported once the timelines have been examined
            findings.add_faults([fault])
    pes = summary.nodes * summary.num_wth
    return replace(summary, total_pes=pes) if usable and pes < _MOST_PES else None


def _read_files(folder: Path, summary: Summary, findings: Findings) -> list[TimelineFile]:
    """Return the heads of the timeline files that can be read; compare their machine headers."""
    with InputFile(folder / SUMMARY_NAME) as opened:
        machine = opened.read(0, MACHINE_HEADER_BYTES).tobytes()
    files = []
    for index in _present_files(folder, summary, findings):
        path = folder / f"{SUMMARY_NAME}{index}"
        try:
            file = read_timeline_file(path, index, summary, findings.add_faults)
        except RewriteLogError as error:
            findings.add_unreadable(path, error)
            continue
        files.append(file)
        used = MACHINE_HEADER_BYTES - (summary.header_version == 0)
        if file.order == summary.order and file.machine and file.machine[:used] != machine[:used]:
            problem = f"{file.machine.hex(' ')}, but that of the summary is {machine.hex(' ')}"
            findings.add("header-differs", [Finding(Location(path, 0), problem)])
    return files


def _version_to_read(
    summary: Summary, path: Path, files: tuple[TimelineFile, ...], findings: Findings
) -> int | None:
    """Return the log version in which to read the timelines, None if none fits."""
    claimed = summary.log_version
    likely = likely_version(files, claimed)
    location = Location(path, LOG_VERSION_AT, field="log version")
    if likely is not None:
        problem = (
            f"version {claimed}, but the timelines have the layout of version "
            f"{version_text(likely)} and are checked in it"
        )
        findings.add("log-version", [Finding(location, problem)])
        return likely
    if claimed not in LOG_VERSIONS:
        problem = (
            f"version {claimed} is unknown, and the timelines fit none of {LOG_VERSIONS[0]} to "
            f"{LOG_VERSIONS[-1]}"
        )
        findings.add("log-version", [Finding(location, problem)])
        return None
    return claimed


def _present_files(folder: Path, summary: Summary, findings: Findings) -> list[int]:
    """Return the indices of the timeline files that exist, ascending."""
    names = (path.name for path in paths_in(folder))
    numbers = (n.removeprefix(SUMMARY_NAME) for n in names if n.startswith(SUMMARY_NAME))
    present = {int(n) for n in numbers if n.isdecimal() and n.isascii() and n == str(int(n))}
    extra = sorted(index for index in present if index >= summary.files)
    counted = sorted(present.difference(extra))
    missing = (index for index in range(summary.files) if index not in present)
    absent = summary.files - len(counted)
    first = [next(missing) for _ in range(min(SHOWN, absent))]
    for rule, indices, count, problem in (
        ("extra-file", extra[:SHOWN], len(extra), f"the summary counts {summary.files} files"),
        ("unreadable", first, absent, "the file does not exist"),
    ):
        paths = (folder / f"{SUMMARY_NAME}{index}" for index in indices)
        findings.add(rule, [Finding(Location(path), problem) for path in paths], count)
    return counted
