"""What stands before the timelines: the summary and the heads of the timeline files.

Unlike `rewritelog.logs`, which refuses what cannot be, this goes on with whatever can be found.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.versions import likely_version, version_text
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.format import ByteOrder
from rewritelog.format.declaration import LOG_VERSIONS, MACHINE_HEADER_BYTES
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import SUMMARY_NAME
from rewritelog.logs.summary import Summary, byte_order, parse_summary, summary_faults
from rewritelog.logs.timelines import TimelineFile, pe_count_of_file, pes_of_file, true_borders

_COUNT_BYTES = 4
_HEAD_BYTES = MACHINE_HEADER_BYTES + _COUNT_BYTES
_WRAP = 1 << 32
_MOST = 1 << 31
"""More PEs than any log can number."""


_SUMMARY_RULES = {"total PEs": "pe-count", "total_pes": "pe-count", "log version": "log-version"}
"""The rule that a field of the summary breaks, where it is not `summary`."""


@dataclass(frozen=True)
class KnownFile:
    """A timeline file, as far as its head tells where things are."""

    file: TimelineFile
    """With an empty place for each timeline whose place is not known."""
    order: ByteOrder
    known: NDArray[np.bool_]
    """Whether the place of each timeline is known; shape (timelines,)."""
    closed: NDArray[np.bool_]
    """Whether it is known where each timeline must end."""


@dataclass(frozen=True)
class Heads:
    """What can be told of a log set without reading a SEB."""

    summary: Summary | None
    """With a number of PEs that fits the machine, and the version to read in; None: unusable."""
    files: tuple[KnownFile, ...]
    findings: Findings
    whole: bool
    """Whether the place of every timeline of the log set is known."""


def read_heads(folder: Path) -> Heads:
    """Read the summary and the heads of all timeline files, and find what is wrong with them."""
    findings = Findings()
    path = folder / SUMMARY_NAME
    summary = _read_summary(path, findings)
    if summary is None:
        return Heads(None, (), findings, whole=False)
    with InputFile(path) as opened:
        machine = opened.read(0, MACHINE_HEADER_BYTES).tobytes()
    files = []
    for index in _present_files(folder, summary, findings):
        reader = _FileHead(folder / f"{SUMMARY_NAME}{index}", index, summary, machine, findings)
        file = reader.read()
        files += [] if file is None else [file]
    whole = sum(int(file.known.sum()) for file in files) == summary.total_pes
    version = _version(summary, path, files, findings)
    if version is None:
        return Heads(None, (), findings, whole=False)
    return Heads(replace(summary, log_version=version), tuple(files), findings, whole)


def _read_summary(path: Path, findings: Findings) -> Summary | None:
    """Return the summary, as far as it can be used; None where it cannot."""
    try:
        with InputFile(path) as file:
            head = file.read(0, min(file.size_bytes, MACHINE_HEADER_BYTES)).tobytes()
    except RewriteLogError as error:
        findings.add("unreadable", Location(path), without_path(error, path))
        return None
    try:
        byte_order(head, path)
    except DamagedLogError as error:
        findings.add_damage("machine-header", error)
        return None
    try:
        summary = parse_summary(path)
    except DamagedLogError as error:
        findings.add_damage("summary", error)
        return None
    usable = True
    for fault in summary_faults(summary, path):
        rule = _SUMMARY_RULES.get(fault.location.field or "", "summary")
        usable &= rule != "summary"
        if rule != "log-version":  # which is told when the timelines have been looked at
            findings.add_damage(rule, fault)
    pes = summary.nodes * summary.num_wth
    return replace(summary, total_pes=pes) if usable and pes < _MOST else None


def without_path(error: RewriteLogError, path: Path) -> str:
    """Return what an error says of a file, without its name before it."""
    return str(error).removeprefix(f"{path}: ")


def _version(
    summary: Summary, path: Path, files: list[KnownFile], findings: Findings
) -> int | None:
    """Return the version to read the timelines in, or None where it cannot be told."""
    claimed = summary.log_version
    likely = likely_version([(one.file, one.order) for one in files], claimed)
    place = Location(path, 52, field="log version")
    if likely is not None:
        findings.add("log-version", place, f"version {claimed}, but the timelines are those of "
                     f"version {version_text(likely)}, in which they are checked")  # fmt: skip
        return likely
    if claimed not in LOG_VERSIONS:
        findings.add("log-version", place, f"version {claimed} is unknown, and the timelines fit "
                     f"none of {LOG_VERSIONS[0]} to {LOG_VERSIONS[-1]}")  # fmt: skip
        return None
    return claimed


def _names_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir() if path.name.startswith(SUMMARY_NAME)]
    except OSError as error:
        raise RewriteLogError(f"{folder}: cannot be read: {error.strerror}") from error


def _present_files(folder: Path, summary: Summary, findings: Findings) -> list[int]:
    """Return which of the timeline files there are, in order."""
    numbers = (name.removeprefix(SUMMARY_NAME) for name in _names_in(folder))
    present = {int(n) for n in numbers if n.isdecimal() and n.isascii() and n == str(int(n))}
    extra = sorted(index for index in present if index >= summary.files)
    findings.add_many(
        "extra-file", len(extra),
        [Finding(Location(folder / f"{SUMMARY_NAME}{index}"),
                 f"the summary counts {summary.files} timeline files") for index in extra[:SHOWN]],
    )  # fmt: skip
    wanted = sorted(present.difference(extra))
    missing = (index for index in range(summary.files) if index not in present)
    first = [next(missing) for _ in range(min(SHOWN, summary.files - len(wanted)))]
    findings.add_many(
        "unreadable", summary.files - len(wanted),
        [Finding(Location(folder / f"{SUMMARY_NAME}{index}"), "there is no such file")
         for index in first],
    )  # fmt: skip
    return wanted


@dataclass(frozen=True)
class _FileHead:
    """The head of one timeline file."""

    path: Path
    index: int
    summary: Summary
    machine: bytes
    """The machine header of the summary."""
    findings: Findings

    def read(self) -> KnownFile | None:
        """Return the file, or None where nothing in it can be found."""
        try:
            with InputFile(self.path) as file:
                order = self._order(file)
                if order is None:
                    return None
                offsets = self._offsets(file, np.dtype("<u4" if order == "little" else ">u4"))
                return None if offsets is None else self._placed(file, order, offsets)
        except DamagedLogError as error:
            self.findings.add_damage("unreadable", error)
        except RewriteLogError as error:
            self.findings.add("unreadable", Location(self.path), without_path(error, self.path))
        return None

    def _order(self, file: InputFile) -> ByteOrder | None:
        """Return the file's byte order, or the summary's where it does not say."""
        head = file.read(0, min(file.size_bytes, MACHINE_HEADER_BYTES)).tobytes()
        try:
            order, version = byte_order(head, self.path)
        except DamagedLogError as error:
            self.findings.add_damage("machine-header", error)
            return self.summary.order if len(head) == MACHINE_HEADER_BYTES else None
        told = MACHINE_HEADER_BYTES - (version == 0)
        if order != self.summary.order:
            self.findings.add(
                "byte-order", Location(self.path, field="integer format"),
                f"{order}-endian, but the summary is {self.summary.order}-endian",
            )  # fmt: skip
        elif head[:told] != self.machine[:told]:
            self.findings.add(
                "header-differs", Location(self.path, 0),
                f"{head.hex(' ')}, but that of the summary is {self.machine.hex(' ')}",
            )  # fmt: skip
        return order

    def _offsets(self, file: InputFile, number: np.dtype[np.uint32]) -> NDArray[np.int64] | None:
        """Return the offsets as they stand in the file, or None where they cannot be found."""
        place = Location(self.path, MACHINE_HEADER_BYTES, field="number of timelines")
        if file.size_bytes < _HEAD_BYTES:
            self.findings.add("cut-off", place, "the file ends within its head")
            return None
        count = int(file.read(MACHINE_HEADER_BYTES, _COUNT_BYTES).view(number)[0])
        expected = pe_count_of_file(self.summary, self.index)
        if count != expected:
            self.findings.add(
                "timeline-count", place,
                f"{count} timelines, but the summary puts {expected} PEs into this file",
            )  # fmt: skip
            count = self._counted(file, number, count, expected)
        if count > (file.size_bytes - _HEAD_BYTES) // _COUNT_BYTES:
            self.findings.add("cut-off", place, f"{count} offsets do not fit into the file")
            return None
        if count == 0:
            if file.size_bytes > _HEAD_BYTES:
                left = file.size_bytes - _HEAD_BYTES
                self.findings.add("left-over", Location(self.path, _HEAD_BYTES), _left_text(left))
            return None
        return file.read(_HEAD_BYTES, count * _COUNT_BYTES).view(number).astype(np.int64)

    def _counted(
        self, file: InputFile, number: np.dtype[np.uint32], count: int, expected: int
    ) -> int:
        """Return which of two numbers of timelines the first offset, after the list, speaks for."""
        if file.size_bytes < _HEAD_BYTES + _COUNT_BYTES:
            return count
        first = int(file.read(_HEAD_BYTES, _COUNT_BYTES).view(number)[0])
        return expected if first == _HEAD_BYTES + _COUNT_BYTES * expected else count

    def _placed(self, file: InputFile, order: ByteOrder, offsets: NDArray[np.int64]) -> KnownFile:
        """Return the timelines that have a PE, with their places."""
        pes = pes_of_file(self.summary, self.index, len(offsets))
        names = np.concatenate([pes, np.full(len(offsets) - len(pes), -1)])
        first = _HEAD_BYTES + _COUNT_BYTES * len(offsets)
        known = np.ones(len(offsets), dtype=np.bool_)
        try:
            borders = true_borders(offsets, first, file.size_bytes, self.path, names)
        except DamagedLogError:
            borders, known = _damaged_borders(offsets, first, file.size_bytes)
            self._name_strays(offsets, borders, known, names)
        timelines = TimelineFile(
            self.path, self.index, file.size_bytes, pes, borders[: len(pes) + 1]
        )
        closed = np.append(known[1:], True)
        return KnownFile(timelines, order, known[: len(pes)], closed[: len(pes)])

    def _name_strays(
        self,
        offsets: NDArray[np.int64],
        borders: NDArray[np.int64],
        known: NDArray[np.bool_],
        pes: NDArray[np.int64],
    ) -> None:
        first, last = borders[0], borders[-1]
        short_outliers = ~known
        short_outliers[0] |= offsets[0] != first
        found = np.flatnonzero(short_outliers)
        self.findings.add_many(
            "offset", len(found),
            [Finding(Location(self.path, _HEAD_BYTES + _COUNT_BYTES * k,
                           int(pes[k]) if pes[k] >= 0 else None, field="offset"),
                     f"{offsets[k]} is no place of a timeline: they stand one after the other "
                     f"from byte {first} to the file's end at {last}")
             for k in found[:SHOWN].tolist()],
        )  # fmt: skip


def _damaged_borders(
    offsets: NDArray[np.int64], first: int, size_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return borders of timelines whose offsets cannot all be, and which of their places are known.

    The first timeline begins after the offsets. Of the others, in a file above 4 GiB with their
    wraps undone, as many as possible are kept that rise; the rest have empty places before the
    next one.
    """
    places = offsets.copy()
    places[0] = first
    if size_bytes >= _WRAP:
        places[1:] = first + np.cumsum(np.diff(places) % _WRAP)
    fitting = places + _COUNT_BYTES <= size_bytes
    fitting[1:] &= places[1:] >= first + _COUNT_BYTES
    known = np.zeros(len(offsets), dtype=np.bool_)
    known[np.flatnonzero(fitting)[_rising(places[fitting])]] = True
    borders = np.append(np.where(known, places, size_bytes), size_bytes)
    borders = np.minimum.accumulate(borders[::-1])[::-1]
    borders[0] = first
    return borders, known


def _left_text(left: int) -> str:
    return f"{left} bytes after the last timeline"


def _rising(values: NDArray[np.int64]) -> list[int]:
    """Return the indices of a longest run of values that rise, others between them left out."""
    tails: list[int] = []
    holders: list[int] = []
    before = [-1] * len(values)
    for k, value in enumerate(values.tolist()):
        at = bisect_left(tails, value)
        before[k] = holders[at - 1] if at else -1
        if at == len(tails):
            tails.append(value)
            holders.append(k)
        else:
            tails[at], holders[at] = value, k
    chosen = []
    k = holders[-1] if holders else -1
    while k >= 0:
        chosen.append(k)
        k = before[k]
    return chosen[::-1]
