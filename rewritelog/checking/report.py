"""The report of a check, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewritelog.checking.findings import Findings
from rewritelog.checking.rules import RULES
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.formats.bgtrace.heads import Summary
from rewritelog.formats.traces import Traces
from rewritelog.text import Readable, count_text, printable


@dataclass(frozen=True, repr=False)
class CheckReport(Readable):
    """The results of a check."""

    folder: Path
    summary: Summary | None
    """The summary as used for the check; None if it cannot be used."""
    params: Path | None
    """The folder of the params that were checked; None without any."""
    sebs: int
    """The number of SEBs that could be walked."""
    records: int
    """The number of param records."""
    findings: Findings
    not_checked: tuple[str, ...]
    """Rules that could not be checked, with the reasons."""
    traces: Traces | None = None
    """The traces that were checked, whose nodes count as SEBs; None for logs."""
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)

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
        s = self.summary
        return {
            "logs": printable(str(self.folder)),
            "format": None if self.traces is None else self.traces.title,
            "params": None if self.params is None else printable(str(self.params)),
            "log_version": None if s is None else s.log_version,
            "byte_order": None if s is None else s.order,
            "pes": None if s is None else s.total_pes,
            "sebs": self.sebs,
            "param_records": self.records,
            "sound": self.sound,
            "counts": {severity.name.lower(): self.count(severity) for severity in Severity},
            "findings": [
                {
                    "rule": name,
                    "severity": severity.name.lower(),
                    "count": self.findings.counts[name],
                    "shown": [finding.to_json() for finding in self.findings.shown[name]],
                }
                for severity in Severity
                for name in self.of(severity)
            ],
            "not_checked": [printable(text) for text in self.not_checked],
        }

    def text(self) -> str:
        """Return the report as text, most severe findings first."""
        lines = [self._head()]
        for severity in Severity:
            for name in self.of(severity):
                lines.append(f"{severity.value}: {name}: {self.rules[name].says}")
                lines += [f"  {finding}" for finding in self.findings.shown[name]]
                more = self.findings.counts[name] - len(self.findings.shown[name])
                if more:
                    lines.append(f"  and {more:,} more")
        lines += [f"not checked: {printable(text)}" for text in self.not_checked]
        return "\n".join([*lines, self._end()])

    def _head(self) -> str:
        if self.traces is not None:
            return f"{self.traces.text()}, {count_text(self.sebs, self.traces.terms.item)}"
        folder = printable(str(self.folder))
        if self.summary is None:
            return f"{folder}: the timelines could not be checked"
        s = self.summary
        records = "" if self.params is None else f", {count_text(self.records, 'param record')}"
        counts = f"{count_text(s.total_pes, 'PE')}, {count_text(self.sebs, 'SEB')}{records}"
        return f"{folder}: log version {s.log_version}, {s.order}-endian, {counts}"

    def _end(self) -> str:
        counts = [
            f"{self.count(severity):,} {severity.value}"
            for severity in Severity
            if self.of(severity)
        ]
        return "findings: " + "; ".join(counts) if counts else "nothing found"
