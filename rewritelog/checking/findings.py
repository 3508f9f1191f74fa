"""What a check finds: rules, the blocks they are given, violations with locations, the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from rewritelog.arrays import Flags, Ints
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.heads import Summary
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, ParamNotes
from rewritelog.formats.bgtrace.records import LISTS, BlockRecords
from rewritelog.formats.traces import Traces
from rewritelog.running.locks import cached_property
from rewritelog.text import Readable, count_text, printable, wrapped

SHOWN = 5
"""At most this many findings of a rule are shown."""


class Finding(Struct, frozen=True):
    """A violation of a rule, with its location."""

    location: Location
    message: str

    def __str__(self) -> str:
        """Return the finding as text; messages about text files contain their location."""
        location = str(self.location)
        return printable(f"{location}: {self.message}" if location else self.message)

    def to_json(self, ranks: Mapping[Path | None, int] | None) -> dict[str, Any]:
        """Return the finding as a JSON object; `ranks` has the ranks of files, None for logs."""
        at = self.location
        where = {"pe": at.pe, "seb": at.seb}
        if ranks is not None:
            where = {"rank": ranks.get(at.file), "node": at.node}
        return {
            "file": None if at.file is None else str(at.file),
            "offset": at.offset_bytes,
            **where,
            "field": at.field,
            "message": self.message,
        }


class Findings(Struct):
    """Findings by rule, in the order of the files, and counts of what was checked."""

    counts: dict[str, int] = {}
    shown: dict[str, list[Finding]] = {}
    sebs: int = 0
    """The number of SEBs that could be walked, or of nodes."""
    records: int = 0
    """The number of param records that were read."""
    whole: bool = True
    """Whether all timelines could be walked to their ends."""

    def add(self, rule: str, first: Iterable[Finding], count: int = 1) -> None:
        """Add `count` findings of a rule, given the first few of them."""
        if count:
            shown = self.shown.setdefault(rule, [])
            shown.extend(islice(first, SHOWN - len(shown)))
            self.counts[rule] = self.counts.get(rule, 0) + count

    def add_faults(self, faults: Iterable[DamagedLogError], count: int = 1) -> None:
        """Add `count` faults of a reader, all of the same rule."""
        first = list(islice(faults, SHOWN))
        if first:
            self.whole &= first[0].rule == "left-over"
            findings = (Finding(fault.location, fault.problem) for fault in first)
            self.add(first[0].rule, findings, count)

    def add_unreadable(self, path: Path, error: RewriteLogError) -> None:
        """Add the finding that a file cannot be read."""
        self.whole = False
        if isinstance(error, DamagedLogError):
            self.add_faults([error])
        else:
            problem = str(error).removeprefix(f"{path}: ")
            self.add("unreadable", [Finding(Location(path), problem)])

    def add_all(self, other: Findings) -> None:
        """Add the findings of a later part of the log set."""
        for rule, count in other.counts.items():
            self.add(rule, other.shown[rule], count)
        self.sebs += other.sebs
        self.records += other.records
        self.whole &= other.whole


Violations: TypeAlias = tuple[int, list[Finding]]
"""The number of violations of a rule by records of a kind in a block, and the first findings."""


class BlockParams(NamedTuple):
    """The params of a block, without those of files that cannot be read."""

    source: ParamFolder
    records: ParamRecords
    notes: ParamNotes


class CheckedBlock(Struct, frozen=True, dict=True):
    """A block, or a part of a long timeline, as the rules see it."""

    records: BlockRecords
    """The records before the first damage of each timeline."""
    summary: Summary
    params: BlockParams | None = None
    """None without any param files."""
    awaits_unsent: Flags | None = None
    """Whether each SEB awaits a message that is never sent; None while that is not known."""
    state: dict[str, Any] = {}
    """What a rule keeps, under its name, from one part of a timeline to the next."""
    key: int = 0
    """A random number of 64 bits, so that no log can be made to cause collisions of hashes."""

    @cached_property
    def total(self) -> Ints:
        """The number of SEBs of each SEB's timeline, as recorded."""
        return np.asarray(self.records.loaded.totals[self.records.piece])

    def violations(
        self, kind: str, broken: Flags, says: Callable[[int], str], at: Ints | None = None
    ) -> Violations:
        """Return the violations by records of a kind: `sebs`, or the name of a list of SEBs.

        `broken` has one element for each record; `says` returns the message for a record. `at` has
        the offset of each finding in the buffer, by default the record's.
        """
        records = getattr(self.records, kind)
        rows = np.flatnonzero(broken)
        at = records.at if at is None else at
        findings = []
        for row in rows[:SHOWN].tolist():
            seb = int(records.seb[row])
            item = LISTS.get(kind)
            number = row - int(self.records.first(kind)[seb]) if item else 0
            label = f"{item} {number}: " if item else ""
            findings.append(Finding(self.location(seb, int(at[row])), label + says(row)))
        return len(rows), findings

    def location(self, seb: int, at: int) -> Location:
        """Return the location of offset `at` in the buffer, in the block's SEB with index `seb`."""
        loaded = self.records.loaded
        pe, index = int(self.records.pe[seb]), int(self.records.index[seb])
        return Location(loaded.file.path, loaded.block.offset + at, pe, index)


def names_message(block: BlockRecords, pes: int) -> Flags:
    """Return whether each SEB names a starting message, from a PE that exists."""
    source = block.sebs["src_pe"]
    return np.asarray((block.sebs["msg_id"] >= 0) & (source >= 0) & (source < pes))


class Severity(Enum):
    """The consequence of a violation."""

    STOP = "would stop the simulator"
    MISLEAD = "would mislead the simulator"
    ODD = "odd"


Find: TypeAlias = Callable[[CheckedBlock], Iterator[Violations]]
"""A function that yields the violations of a rule in a block, one kind of records at a time."""


@dataclass(frozen=True)
class Rule:
    """A rule of the format, or of the programs that read it.

    As the decorator of a function, it becomes a rule whose violations that function finds. The
    readers of files find the violations of rules without a function.
    """

    name: str
    severity: Severity
    statement: str
    """The statement of the rule."""
    protects: str
    """The reason for the rule: what depends on it."""
    find: Find | None = None

    def __call__(self, find: Find) -> Rule:
        """Return the rule with the function that finds its violations."""
        return replace(self, find=find)

    def __getstate__(self) -> dict[str, Any]:
        """Return a pickled rule's content, without the function: a report only describes rules."""
        return {**self.__dict__, "find": None}

    def text(self) -> str:
        """Return the rule as text."""
        statement = wrapped(f"{self.name} ({self.severity.value}): {self.statement}")
        return f"{statement}\n{wrapped(self.protects, hanging=0)}"

    def check(self, block: CheckedBlock, findings: Findings) -> None:
        """Add the violations in a block to the findings, in the order of the SEBs."""
        if self.find is None:
            return
        parts = list(self.find(block))
        first = [finding for _, of_part in parts for finding in of_part]
        first.sort(key=lambda finding: (finding.location.pe or 0, finding.location.seb or 0))
        findings.add(self.name, first, sum(count for count, _ in parts))


@dataclass(frozen=True, repr=False)
class CheckReport(Readable):
    """The results of a check."""

    folder: Path
    findings: Findings
    rules: Mapping[str, Rule]
    """The rules that were checked, by name."""
    summary: Summary | None = None
    """The summary as used for the check; None if it cannot be used."""
    params: Path | None = None
    """The folder of the params that were checked; None without any."""
    not_checked: tuple[str, ...] = ()
    """Rules that could not be checked, with the reasons."""
    traces: Traces | None = None
    """The traces that were checked; None for logs."""

    def of(self, severity: Severity) -> list[str]:
        """Return the violated rules of a severity, in the order of the rules."""
        return [
            name
            for name, rule in self.rules.items()
            if rule.severity is severity and name in self.findings.counts
        ]

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(self.findings.counts[name] for name in self.of(severity))

    @property
    def sound(self) -> bool:
        """Whether there are no findings other than those of severity odd."""
        return not any(self.of(severity) for severity in Severity if severity is not Severity.ODD)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        s, checked = self.summary, dict[str, Any]()
        ranks: dict[Path | None, int] | None = None
        if self.traces is not None:
            ranks = {unit.path: unit.rank for unit in self.traces.files}
            checked = {"ranks": len(ranks), "nodes": self.findings.sebs}
        else:
            checked = {
                "log_version": None if s is None else s.log_version,
                "byte_order": None if s is None else s.order,
                "pes": None if s is None else s.total_pes,
                "sebs": self.findings.sebs,
                "param_records": self.findings.records,
            }
        return {
            "logs": str(self.folder),
            "format": LogSet.title if self.traces is None else self.traces.title,
            "params": None if self.params is None else str(self.params),
            **checked,
            "sound": self.sound,
            "counts": {severity.name.lower(): self.count(severity) for severity in Severity},
            "findings": [
                {
                    "rule": name,
                    "severity": severity.name.lower(),
                    "count": self.findings.counts[name],
                    "shown": [finding.to_json(ranks) for finding in self.findings.shown[name]],
                }
                for severity in Severity
                for name in self.of(severity)
            ],
            "not_checked": list(self.not_checked),
        }

    def text(self) -> str:
        """Return the report as text, most severe findings first."""
        lines = [self._head()]
        for severity in Severity:
            for name in self.of(severity):
                lines.append(f"{severity.value}: {name}: {self.rules[name].statement}")
                lines += [f"  {finding}" for finding in self.findings.shown[name]]
                left_out = self.findings.counts[name] - len(self.findings.shown[name])
                if left_out:
                    lines.append(f"  and {left_out:,} more")
        lines += [f"not checked: {printable(text)}" for text in self.not_checked]
        return "\n".join([*lines, self._end()])

    def top_lines(self) -> list[str]:
        """Return the last line of the text, the answer, for the `repr`."""
        return [self._end()]

    def _head(self) -> str:
        if self.traces is not None:
            return f"{self.traces.text()}, {count_text(self.findings.sebs, self.traces.terms.item)}"
        folder = printable(str(self.folder))
        if self.summary is None:
            return f"{folder}: the timelines could not be checked"
        s = self.summary
        records = (
            "" if self.params is None else f", {count_text(self.findings.records, 'param record')}"
        )
        counts = (
            f"{count_text(s.total_pes, 'PE')}, {count_text(self.findings.sebs, 'SEB')}{records}"
        )
        return f"{folder}: log version {s.log_version}, {s.order}-endian, {counts}"

    def _end(self) -> str:
        counts = [
            f"{self.count(severity):,} {severity.value}"
            for severity in Severity
            if self.of(severity)
        ]
        return "findings: " + "; ".join(counts) if counts else "nothing found"
