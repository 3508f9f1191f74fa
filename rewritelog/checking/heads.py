"""The check of what precedes the timelines: the summary and the heads of the timeline files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.versions import likely_version, version_text
from rewritelog.errors import Location, RewriteLogError
from rewritelog.formats import SUMMARY_NAME
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS, MACHINE_HEADER_BYTES
from rewritelog.formats.bgtrace.heads import (
    LOG_VERSION_AT,
    Summary,
    TimelineFile,
    parse_summary,
    read_timeline_file,
    summary_faults,
)
from rewritelog.formats.files import InputFile, paths_in

_MOST_PES = 1 << 31
"""More PEs than any log can have."""


@dataclass(frozen=True)
class Heads:
    """The summary and the heads of the timeline files, with their findings."""

    summary: Summary | None
    """The summary, with a consistent number of PEs and the likely log version; None if unusable."""
    files: tuple[TimelineFile, ...]
    findings: Findings
    whole: bool
    """Whether the beginnings of all timelines are known."""


def read_heads(folder: Path) -> Heads:
    """Read and check the summary and the heads of all timeline files."""
    findings = Findings()
    path = folder / SUMMARY_NAME
    summary = _read_summary(path, findings)
    if summary is None:
        return Heads(None, (), findings, whole=False)
    files = tuple(_read_files(folder, summary, findings))
    whole = sum(int(file.known.sum()) for file in files) == summary.total_pes
    version = _version_to_read(summary, path, files, findings)
    if version is None:
        return Heads(None, (), findings, whole=False)
    return Heads(replace(summary, log_version=version), files, findings, whole)


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
