"""The check of what precedes the timelines: summary, log version and the heads of the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from rewritelog.arrays import Bytes, Ints
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats.bgtrace.blocks import Pieces, walk
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    FAULTS,
    LOG_VERSIONS,
    MACHINE_HEADER_BYTES,
    ByteOrder,
    layout,
    newest_layout,
)
from rewritelog.formats.bgtrace.heads import (
    LOG_VERSION_AT,
    SUMMARY_NAME,
    Summary,
    TimelineFile,
    parse_summary,
    read_timeline_file,
    summary_faults,
)
from rewritelog.formats.bgtrace.logset import open_log_set
from rewritelog.formats.bgtrace.records import Records
from rewritelog.formats.files import InputFile, paths_in
from rewritelog.text import count_text

_SAMPLES = 8
"""The most places, over all files, where timelines are examined."""

_SAMPLE_BYTES = 1 << 18

_SAME_LAYOUT = {5: 4}
"""Versions with the same layout as another one."""


def likely_version(files: Iterable[TimelineFile], claimed: int) -> int | None:
    """Return the log version that fits sampled timelines better than the claimed one.

    Return None if there is none. 4 also stands for 5, which has the same layout.
    """
    samples = list(_samples([file for file in files if len(file.pes)]))
    fits = {
        version: _fit(samples, version) for version in LOG_VERSIONS if version not in _SAME_LAYOUT
    }
    best = max(fits, key=lambda version: fits[version])
    exact, sebs = fits.get(_SAME_LAYOUT.get(claimed, claimed), (0, 0))
    better = fits[best][0] > exact or (fits[best][0] == exact and fits[best][1] > 2 * sebs + 1)
    return best if better else None


def with_likely_version(error: DamagedLogError) -> DamagedLogError:
    """Return the error of a job, with a hint if another log version fits the timelines."""
    try:
        logs = open_log_set((error.location.file or Path()).parent)
        claimed = logs.summary.log_version
        likely = likely_version(logs.files, claimed)
    except RewriteLogError:
        return error
    if likely is None:
        return error
    hint = f"the summary says log version {claimed}, but the timelines fit version"
    problem = f"{error.problem}; {hint} {version_text(likely)}"
    return DamagedLogError(error.location, problem, error.rule)


def version_text(version: int) -> str:
    """Return the name of a detected version, with others of the same layout."""
    same_layout = [other for other, same in _SAME_LAYOUT.items() if same == version]
    return " or ".join(str(number) for number in (version, *same_layout))


def _samples(files: Sequence[TimelineFile]) -> Iterator[tuple[ByteOrder, Ints, Bytes]]:
    """Yield the byte order, borders and bytes of timelines from some places of the first files."""
    for file in files[:_SAMPLES]:
        places = np.linspace(0, len(file.pes) - 1, max(1, _SAMPLES // len(files)))
        with InputFile(file.path) as source:
            for first in np.unique(places.astype(np.int64)):
                borders = file.borders[first:] - file.borders[first]
                size = min(int(borders[-1]), _SAMPLE_BYTES)
                yield file.order, borders, source.read(int(file.borders[first]), size)


def _fit(samples: Sequence[tuple[ByteOrder, Ints, Bytes]], version: int) -> tuple[int, int]:
    """Return how many timelines can be read completely in a version, and how many SEBs in total.

    Only SEBs with the right seqno count. The last timeline of a sample may be cut.
    """
    exact = total = 0
    for order, whole_borders, window in samples:
        lay, borders = layout(version, order), np.minimum(whole_borders, len(window))
        not_empty = np.flatnonzero(np.diff(borders) > COUNT_BYTES)
        starts, ends = borders[not_empty], borders[not_empty + 1]
        raw = window[starts[:, np.newaxis] + np.arange(COUNT_BYTES)].view(lay.count)[:, 0]
        counts = np.maximum(raw.astype(np.int64), 0)
        claimed = Pieces(starts + COUNT_BYTES, ends, counts, np.zeros_like(counts))
        pieces, sebs, faults = walk(window, claimed, lay)
        piece = np.repeat(np.arange(len(not_empty)), pieces.counts)
        index = np.arange(len(sebs)) - pieces.first_rows[piece]
        records = Records(window, lay.seb, newest_layout().seb, index, sebs["at"].copy())
        right = np.bincount(piece, records["seqno"] == index, len(not_empty))
        codes = faults[:, core.FAULT_CODE].tolist()
        cut = np.array([code in FAULTS and FAULTS[code].truncated for code in codes], dtype=bool)
        cut &= (ends == len(window)) & (len(window) == _SAMPLE_BYTES) & (right > 0)
        are_whole = (np.array(codes) == core.OK) & (pieces.counts == counts)
        exact += int(((right == pieces.counts) & (counts > 0) & (are_whole | cut)).sum())
        total += int(right.sum())
    return exact, total


_MOST_PES = 1 << 31
"""More PEs than any log can have."""


def read_heads(folder: Path, findings: Findings) -> tuple[Summary, tuple[TimelineFile, ...]] | None:
    """Read and check the summary and the heads of all timeline files.

    Return the summary, with a consistent number of PEs and the likely log version, and the files
    that can be read; None if the summary cannot be used. `findings.whole` then says whether the
    beginnings of all timelines are known.
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


def _read_files(folder: Path, summary: Summary, findings: Findings) -> Iterator[TimelineFile]:
    """Yield the heads of the timeline files that can be read; compare their machine headers."""
    with InputFile(folder / SUMMARY_NAME) as opened:
        machine = opened.read(0, MACHINE_HEADER_BYTES).tobytes()
    for index in _present_files(folder, summary, findings):
        path = folder / f"{SUMMARY_NAME}{index}"
        try:
            file = read_timeline_file(path, index, summary, findings.add_faults)
        except RewriteLogError as error:
            findings.add_unreadable(path, error)
            continue
        used = MACHINE_HEADER_BYTES - (summary.header_version == 0)
        if file.order == summary.order and file.machine and file.machine[:used] != machine[:used]:
            problem = f"{file.machine.hex(' ')}, but that of the summary is {machine.hex(' ')}"
            findings.add("header-differs", [Finding(Location(path, 0), problem)])
        yield file


def _version_to_read(
    summary: Summary, path: Path, files: tuple[TimelineFile, ...], findings: Findings
) -> int | None:
    """Return the log version in which to read the timelines, None if none fits."""
    claimed = summary.log_version
    likely = likely_version(files, claimed)
    if likely is not None:
        problem = (
            f"version {claimed}, but the timelines have the layout of version "
            f"{version_text(likely)} and are checked in it"
        )
    elif claimed not in LOG_VERSIONS:
        problem = (
            f"version {claimed} is unknown, and the timelines fit none of {LOG_VERSIONS[0]} to "
            f"{LOG_VERSIONS[-1]}"
        )
    else:
        return claimed
    location = Location(path, LOG_VERSION_AT, field="log version")
    findings.add("log-version", [Finding(location, problem)])
    return likely


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
    counted_by_summary = f"the summary counts {count_text(summary.files, 'file')}"
    for rule, indices, count, problem in (
        ("extra-file", extra[:SHOWN], len(extra), counted_by_summary),
        ("unreadable", first, absent, "the file does not exist"),
    ):
        paths = (folder / f"{SUMMARY_NAME}{index}" for index in indices)
        findings.add(rule, [Finding(Location(path), problem) for path in paths], count)
    return counted
