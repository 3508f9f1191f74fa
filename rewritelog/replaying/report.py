"""The reports of one replay: predicted time, PE time, critical path; of two, and of many."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rewritelog.errors import spelled
from rewritelog.formats.traces import AnyTraces
from rewritelog.paths import relative_paths
from rewritelog.replaying.analysis import Blocked, CriticalPath, Gain
from rewritelog.replaying.lost_cycles import LostCycles
from rewritelog.replaying.network import DIGITS, Network
from rewritelog.text import (
    LABEL_WIDTH,
    MOST_EVENTS,
    NO_NAME,
    Readable,
    TextTable,
    bytes_text,
    count_text,
    faster_text,
    json_of,
    percent_text,
    printable,
    ratio_text,
    share_of,
    shorten,
    speedup,
    time_column,
    time_text,
    wrapped,
)

_PATH_ROWS = 10
_EVENT_ROWS, _GAIN_ROWS = 4, 6
_LEAST_GAIN = 0.01
"""Gains below this share of the run are only among the details, unless much time is busy."""
_MUCH_BUSY = 0.1
"""That nothing is gained is worth a row for what takes more than this share of the busy time."""


class BusyPe(Struct, frozen=True):
    """A PE and its busy time."""

    pe: int
    busy_s: float
    sebs: int
    name: str


@dataclass(frozen=True, repr=False, eq=False)
class ReplayReport(Readable):
    """The results of one replay."""

    logs: AnyTraces
    network: Network
    predicted_s: float
    recorded_s: float
    """The latest end of a SEB in the log; 0 for traces."""
    pes: int
    sebs: int
    messages: int
    busy_s: float
    """The sum of the durations of all SEBs or nodes."""
    utilisation: float
    """The busy share of the time of all PEs, or of all threads and streams of traces."""
    lost: LostCycles
    """The time of PEs by category; traces have none."""
    path: CriticalPath
    communication_s: float
    """The part of the critical path in messages and collectives."""
    communicating: frozenset[str]
    """The names of nodes on the critical path that are communication."""
    worst_pes: tuple[BusyPe, ...]
    blocked: Blocked
    remarks: tuple[str, ...]
    """Warnings of the model, of the options, and of the replay."""
    gains: tuple[Gain, ...] = ()
    """The gains if all SEBs of a name took no time, largest first."""
    event_gains: tuple[Gain, ...] = ()
    """The gains if all middle regions of an event took no time, largest first."""
    gains_left_out: int = 0
    """The number of names and events without a gain because the log set is large."""
    notes: tuple[str, ...] = ()
    """How the replay treated things that only this format has."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        return (*self.remarks, *self.lost.warnings)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "logs": str(self.logs.path),
            "network": self.network.to_json(),
            "predicted_s": self.predicted_s,
            "recorded_s": self.recorded_s,
            "pes": self.pes,
            "sebs": self.sebs,
            "messages": self.messages,
            "busy_s": self.busy_s,
            "utilisation": self.utilisation,
            "categories_s": self.lost.totals_s,
            "pe_ranges": self.lost.to_json()["pe_ranges"],
            "critical_path": self.path.to_json(),
            "gains": json_of(self.gains),
            "event_gains": json_of(self.event_gains),
            "gains_left_out": self.gains_left_out,
            "communication_s": self.communication_s,
            "worst_pes": json_of(self.worst_pes),
            "never_run": json_of(self.blocked),
            "warnings": list(self.warnings),
        }

    def top_lines(self) -> list[str]:
        """Return the lines at the top of the text, before they are wrapped."""
        path = self.path
        terms, total = self.logs.terms, count_text(self.pes, self.logs.terms.lane)
        used = percent_text(self.utilisation, 1)
        predicted = time_text(self.predicted_s)
        lines = [f"Predicted run time: {predicted} on {total}, utilisation {used}"]
        if self.sebs and self.blocked.count == self.sebs:
            why = "all wait for something that never happens, see below"
            lines.insert(0, f"No {terms.item} can run: {why}")
        if self.predicted_s > 0:
            chain = f"  bounded by {count_text(path.length, terms.item)}"
            chain += " one after the other" * (path.length > 1)
            computing = (name for name in path.by_name_s if name not in self.communicating)
            parts = [(self.communication_s, terms.transfer)]
            if (name := next(computing, None)) is not None:
                parts.insert(0, (path.by_name_s[name], shorten(name or NO_NAME, LABEL_WIDTH)))
            shares = (f"{_share_text(s, self.predicted_s)} in {name}" for s, name in parts)
            lines.append(f"{chain}: {', '.join(shares)}")
        lines.append(f"  network: {printable(self.network.text(terms.recorded))}")
        lines += [f"  {note}" for note in self.notes]
        if self.blocked.count:
            never = f"{self.blocked.count:,} of {self.sebs:,} {terms.item}s"
            lines.append(f"  {never} never ran, see below")
        return lines

    def text(self) -> str:
        """Return the predicted time, what to speed up, and where the time of the PEs goes."""
        parts = (
            "\n".join(map(wrapped, self.top_lines())),
            _gains_text(self),
            lost_table(self.lost, most_events=_EVENT_ROWS),
            _blocked_text(self),
        )
        return "\n\n".join(part for part in parts if part)

    @property
    def more(self) -> str:
        """The contents of `details`, as a phrase."""
        of_pes = "PE time by range of PEs, " if self.lost.categories else ""
        return f"{of_pes}critical path, all gains, busiest {self.logs.terms.rows[1]}"

    def details(self) -> str:
        """Return the PE time by range of PEs, the critical path, all gains and busiest PEs."""
        parts = (
            f"The logs themselves end at {time_text(self.recorded_s)}, when the emulator ran."
            if self.recorded_s
            else "",
            lost_table(self.lost, ranges=True),
            *_path_tables(self),
            _gains_table(self, f"these {self.logs.terms.item}s", self.gains),
            _gains_table(self, "these events", self.event_gains),
            _busiest_table(self),
        )
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, repr=False)
class ReplayComparison(Readable):
    """Two replays in the same network: before and after."""

    more = "all of the replay after"

    before: ReplayReport
    after: ReplayReport

    @property
    def speedup(self) -> float | None:
        """The predicted time before divided by that after; None if either is 0."""
        return speedup(self.before.predicted_s, self.after.predicted_s)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of both replays."""
        return (
            *(f"before: {warning}" for warning in self.before.warnings),
            *(f"after: {warning}" for warning in self.after.warnings),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the second report as a JSON object, with the first one under `against`."""
        return {
            **self.after.to_json(),
            "against": self.before.to_json(),
            "speedup": self.speedup,
        }

    def top_lines(self) -> list[str]:
        """Return the run times and the network."""
        before, after = self.before, self.after
        times_s = [report.predicted_s for report in (before, after)]
        times = time_column(times_s)
        was = f"{before.pes:,} → " if before.pes != after.pes else ""
        where = f"on {was}{count_text(after.pes, after.logs.terms.lane)}"
        return [
            f"Predicted run time: {times[0]} → {times[1]}, {faster_text(*times_s)}",
            f"  {where}, {printable(after.network.text(after.logs.terms.recorded))}",
        ]

    @property
    def table(self) -> TextTable:
        """The PE time by category, before and after."""
        old, new = self.before.lost.totals_s, self.after.lost.totals_s
        pairs = {name: (old.get(name, 0.0), new.get(name, 0.0)) for name in {**old, **new}}
        names = [name for name, pair in pairs.items() if any(pair)]
        return TextTable.of(
            {
                "PE time": names,
                "before": time_column([pairs[name][0] for name in names]),
                "after": time_column([pairs[name][1] for name in names]),
                "change": time_column([pairs[name][1] - pairs[name][0] for name in names]),
            }
        )

    def text(self) -> str:
        """Return the comparison as text."""
        lines = "\n".join(self.top_lines())
        return f"{lines}\n\n{self.table}" if self.table.rows else lines

    def details(self) -> str:
        """Return the second report as text."""
        return f"{self.after.text()}\n\n{self.after.details()}"


def _share_text(part: float, whole: float) -> str:
    return percent_text(share_of(part, whole), 1)


def lost_table(lost: LostCycles, *, ranges: bool = False, most_events: int = MOST_EVENTS) -> str:
    """Return a text table of PE time by category, and with `ranges` by range of PEs.

    Categories without any time are left out. Events are sorted by time, the longest first; if there
    are more than `most_events`, those with the least time share one row.
    """
    totals = {name: seconds for name, seconds in lost.totals_s.items() if seconds}
    if not totals:
        return ""
    useful = {name: s for name, s in totals.items() if name.startswith("useful[")}
    events = sorted(useful, key=useful.__getitem__, reverse=True)
    most = len(events) if len(events) <= most_events else most_events - 1
    rows = {name: [name] for name in events[:most]}
    if more := events[most:]:
        rows[f"useful: {len(more):,} more events"] = more
    rows |= {name: [name] for name in totals if name not in useful}

    def sums(seconds: Mapping[str, float]) -> list[float]:
        return [math.fsum(seconds[name] for name in names) for names in rows.values()]

    whole, of_rows = lost.pes * lost.predicted_s, sums(totals)
    columns: dict[str, Iterable[str]] = {
        "PE time": rows,
        "PE-seconds": time_column(of_rows),
        "share": [_share_text(s, whole) for s in of_rows],
    }
    if ranges and len(lost.first_pes) > 1:
        for first, size, seconds in lost.ranges():
            head = f"PE {first}" if size == 1 else f"PE {first}–{first + size - 1}"
            columns[head] = [_share_text(s, size * lost.predicted_s) for s in sums(seconds)]
    return str(TextTable.of(columns))


def _path_tables(report: ReplayReport) -> Iterator[str]:
    """Yield tables of the times on the critical path, longest first, with shares of the run."""
    times_s = [*report.path.by_name_s.items()]
    for share in report.path.messages:
        if share.seconds > 0:
            sizes = bytes_text(share.least_bytes, DIGITS)
            if share.most_bytes != share.least_bytes:
                sizes += f" to {bytes_text(share.most_bytes, DIGITS)}"
            times_s.append((f"{count_text(share.count, 'message')} of {sizes}", share.seconds))
    for head, of_path_s in (
        ("Critical path", times_s),
        ("of it in events", [*report.path.by_event_s.items()]),
    ):
        if of_path_s:
            longest = sorted(of_path_s, key=lambda pair: -pair[1])
            columns = {
                head: [name or NO_NAME for name, _ in longest],
                "time": time_column([seconds for _, seconds in longest]),
                "share": [_share_text(seconds, report.predicted_s) for _, seconds in longest],
            }
            yield str(TextTable.of(columns, most_rows=_PATH_ROWS))


def _gains_text(report: ReplayReport) -> str:
    """Return the largest gains of names and events, and how many were not replayed."""
    names = {gain.name for gain in report.gains}
    events = (
        replace(gain, name=f"{gain.name} (event)") if gain.name in names else gain
        for gain in report.event_gains
    )
    gains = sorted((*report.gains, *events), key=lambda gain: -gain.gain_s)
    worth = [
        gain
        for gain in gains
        if gain.gain_s >= _LEAST_GAIN * report.predicted_s > 0
        or gain.busy_s > _MUCH_BUSY * report.busy_s
    ]
    what = f"{report.logs.terms.item}s{' or events' if report.event_gains else ''}"
    parts = [_gains_table(report, what, worth[:_GAIN_ROWS])]
    if report.gains_left_out:
        left_out = count_text(report.gains_left_out, "more name or event", "more names and events")
        why = f"since the log is large; {spelled('gains', 10)} does so"
        parts.append(f"Not replayed without {left_out}, {why}")
    return "\n".join(part for part in parts if part)


def _gains_table(report: ReplayReport, what: str, gains: Sequence[Gain]) -> str:
    columns = {
        f"If {what} took no time": [gain.name or NO_NAME for gain in gains],
        "busy": time_column([gain.busy_s for gain in gains]),
        "gain": time_column([gain.gain_s for gain in gains]),
        "of the run": [_share_text(gain.gain_s, report.predicted_s) for gain in gains],
    }
    return str(TextTable.of(columns)) if gains else ""


def _busiest_table(report: ReplayReport) -> str:
    worst = report.worst_pes
    columns = {
        f"Busiest {report.logs.terms.rows[1]}": [pe.name for pe in worst],
        f"{report.logs.terms.item}s": [f"{pe.sebs:,}" for pe in worst],
        "busy": time_column([pe.busy_s for pe in worst]),
        "of the run": [_share_text(pe.busy_s, report.predicted_s) for pe in worst],
    }
    return str(TextTable.of(columns))


def _blocked_text(report: ReplayReport) -> str:
    blocked, terms = report.blocked, report.logs.terms
    item = terms.item
    if not blocked.count:
        return ""
    total = count_text(blocked.count, item)
    lines = [
        f"Never ran: {total}; {blocked.roots:,} waiting for something that is missing,",
        f"  {blocked.in_cycles:,} in cycles or waiting for one",
    ]
    for seb in blocked.examples:
        others = (
            f"; {count_text(seb.blocked_others, f'more {item}')} never ran with it"
            if seb.blocked_others
            else ""
        )
        where = f"{item} {seb.seb} of {terms.lane} {seb.pe}"
        name = shorten(seb.name, LABEL_WIDTH) or NO_NAME
        lines.append(f"  {where} ({name}): {seb.reason}{others}")
    return "\n".join(map(wrapped, lines))


@dataclass(frozen=True, repr=False, eq=False)
class ReplayedRuns(Readable):
    """The replays of several log sets."""

    runs: tuple[ReplayReport, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all replays."""
        return tuple(
            f"{printable(str(run.logs.path))}: {warning}"
            for run in self.runs
            for warning in run.warnings
        )

    def to_json(self) -> dict[str, Any]:
        """Return the reports as a JSON object."""
        return {"runs": [run.to_json() for run in self.runs], "warnings": list(self.warnings)}

    @property
    def table(self) -> TextTable:
        """The table that compares the runs."""
        terms = self.runs[0].logs.terms
        path = f"path in {terms.transfer}"
        heads = ("run", f"{terms.lane}s", "predicted", "speedup", "busy", path)
        return TextTable(heads, self.rows(), caption="Speedups are over the first run")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the row of each run in the table."""
        times = time_column([run.predicted_s for run in self.runs])
        first_s = self.runs[0].predicted_s
        return [
            (
                name,
                f"{run.pes:,}",
                time,
                ratio_text(speedup(first_s, run.predicted_s)),
                percent_text(run.utilisation, 1),
                _share_text(run.communication_s, run.predicted_s),
            )
            for name, run, time in zip(self._names, self.runs, times, strict=True)
        ]

    @property
    def _names(self) -> list[str]:
        """The names of the runs: their paths without the folders that all have in common."""
        return [*map(printable, relative_paths([run.logs.path for run in self.runs]))]

    def top_lines(self) -> list[str]:
        """Return the lines at the top of the text, before they are wrapped."""
        best, name = min(
            zip(self.runs, self._names, strict=True), key=lambda run: run[0].predicted_s
        )
        count = count_text(len(self.runs), "run")
        return [
            f"Shortest of {count}: {name}, {time_text(best.predicted_s)}",
            f"  network: {printable(best.network.text(best.logs.terms.recorded))}",
        ]

    def text(self) -> str:
        """Return the shortest run, the network, and the table."""
        return "\n".join((*map(wrapped, self.top_lines()), "", str(self.table)))
