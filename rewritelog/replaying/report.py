"""The report of a replay: the predicted time, how PEs spend it, and the critical path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.replaying.blocked import Blocked
from rewritelog.replaying.categories import LostCycles
from rewritelog.replaying.gains import Gain
from rewritelog.replaying.network import Network
from rewritelog.replaying.path import CriticalPath, MessageShare
from rewritelog.text import Readable, TextTable, bytes_text, count_text, percent_text, printable

_PATH_ROWS = 10


@dataclass(frozen=True)
class BusyPe:
    """A PE and its busy time."""

    pe: int
    busy_s: float
    sebs: int


@dataclass(frozen=True, repr=False)
class ReplayReport(Readable):
    """The results of one replay."""

    logs: LogSet
    network: Network
    predicted_s: float
    recorded_s: float
    """The latest end of a SEB in the log."""
    pes: int
    sebs: int
    messages: int
    busy_s: float
    """The PE-seconds in SEBs."""
    lost: LostCycles
    path: CriticalPath
    worst_pes: tuple[BusyPe, ...]
    blocked: Blocked
    remarks: tuple[str, ...]
    """Warnings of the model, of the options, and of the links between SEBs."""
    gains: tuple[Gain, ...] = ()
    """The gains if all SEBs of a name took no time, largest first."""
    event_gains: tuple[Gain, ...] = ()
    """The gains if all middle regions of an event took no time, largest first."""
    gains_left_out: int = 0
    """The number of names and events without a gain because the log set is large."""

    @property
    def utilisation(self) -> float:
        """The share of PE time in SEBs."""
        return self.busy_s / (self.pes * self.predicted_s) if self.predicted_s > 0 else 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings, one sentence each."""
        found = [*self.remarks, *self.lost.warnings]
        if self.blocked.count:
            never = f"{self.blocked.count:,} of {count_text(self.sebs, 'SEB')} never ran"
            found.insert(0, f"{never}: the predicted time does not include them")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "logs": str(self.logs.folder),
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
            "gains": [vars(gain) for gain in self.gains],
            "event_gains": [vars(gain) for gain in self.event_gains],
            "gains_left_out": self.gains_left_out,
            "worst_pes": [vars(pe) for pe in self.worst_pes],
            "never_run": self.blocked.to_json(),
            "warnings": list(self.warnings),
        }

    def text(self) -> str:
        """Return the report as text."""
        parts = (
            _headline(self),
            lost_table(self.lost),
            _path_table(self),
            _gains_text(self),
            _busiest_table(self),
            _blocked_text(self.blocked),
        )
        return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, repr=False)
class ReplayComparison(Readable):
    """Two replays in the same network: before and after."""

    before: ReplayReport
    after: ReplayReport

    @property
    def speedup(self) -> float | None:
        """The predicted time before divided by that after; None if the latter is 0."""
        after = self.after.predicted_s
        return self.before.predicted_s / after if after > 0 else None

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

    def text(self) -> str:
        """Return the comparison and the second report as text."""
        before, after = self.before, self.after
        times = [_seconds_text(report.predicted_s) for report in (before, after)]
        lines = [
            f"After against before: {_ratio_text(self.speedup)}",
            f"  {times[0]} before, {times[1]} after",
            "  (both replayed on the same network)",
        ]
        categories = list(dict.fromkeys((*before.lost.categories, *after.lost.categories)))
        old, new = before.lost.totals_s, after.lost.totals_s
        rows = [
            (
                name,
                _seconds_text(old.get(name, 0.0)),
                _seconds_text(new.get(name, 0.0)),
                _seconds_text(new.get(name, 0.0) - old.get(name, 0.0)),
            )
            for name in categories
            if old.get(name, 0.0) or new.get(name, 0.0)
        ]
        table = TextTable(("PE time", "before", "after", "change"), rows)
        return "\n".join([*lines, "", str(table), "", after.text()])


def _ratio_text(speedup: float | None) -> str:
    if speedup is None:
        return "no time at all"
    return f"{speedup:.3f} × faster" if speedup >= 1 else f"{1 / speedup:.3f} × slower"


def _seconds_text(value: float) -> str:
    """Return a time in seconds with five significant digits."""
    return f"{value:.5g} s"


def _share_text(part: float, whole: float) -> str:
    return percent_text(part / whole if whole > 0 else 0.0, 1)


def _headline(report: ReplayReport) -> str:
    path = report.path
    total = count_text(report.pes, "PE")
    used = percent_text(report.utilisation, 1)
    predicted = _seconds_text(report.predicted_s)
    lines = [f"Predicted run time: {predicted} on {total}, utilisation {used}"]
    if report.sebs and report.blocked.count == report.sebs:
        lines.insert(0, "No SEB can run: all wait for something that never happens, see below")
    if path.length:
        name, longest = next(iter(path.by_name_s.items()), ("", 0.0))
        messages = sum(share.seconds for share in path.messages)
        chain = f"  bounded by {count_text(path.length, 'SEB')} one after the other"
        in_name = f"{_share_text(longest, report.predicted_s)} in {printable(name)}"
        lines.append(f"{chain}: {in_name}, {_share_text(messages, report.predicted_s)} in messages")
    lines += [
        f"  recorded: {_seconds_text(report.recorded_s)}, the emulator's time, not a baseline",
        f"  network: {printable(report.network.text())}",
    ]
    if report.blocked.count:
        lines.append(f"  {report.blocked.count:,} of {report.sebs:,} SEBs never ran, see below")
    return "\n".join(lines)


def lost_table(lost: LostCycles) -> str:
    """Return a text table of PE time by category and range of PEs."""
    whole = lost.pes * lost.predicted_s
    sizes = lost.range_sizes()
    heads = [
        f"PE {first}" if size == 1 else f"PE {first}–{first + size - 1}"
        for first, size in zip(lost.first_pes, sizes, strict=True)
    ]
    ranges = list(range(len(sizes))) if len(sizes) > 1 else []
    rows = [
        (
            category,
            _seconds_text(total),
            _share_text(total, whole),
            *(_share_text(lost.seconds[k, column], sizes[k] * lost.predicted_s) for k in ranges),
        )
        for column, (category, total) in enumerate(lost.totals_s.items())
    ]
    return str(TextTable(("PE time", "PE-seconds", "share", *(heads[k] for k in ranges)), rows))


def _path_table(report: ReplayReport) -> str:
    path, whole = report.path, report.predicted_s
    rows = [
        (name, _seconds_text(seconds), _share_text(seconds, whole))
        for name, seconds in path.by_name_s.items()
    ]
    rows += [
        (_message_text(share), _seconds_text(share.seconds), _share_text(share.seconds, whole))
        for share in path.messages
        if share.seconds > 0
    ]
    if not rows:
        return ""
    rows.sort(key=lambda row: -float(row[1].split()[0]))
    text = str(TextTable(("Critical path", "time", "share"), rows, most_rows=_PATH_ROWS))
    if path.by_event_s:
        events = [
            (event, _seconds_text(seconds), _share_text(seconds, whole))
            for event, seconds in path.by_event_s.items()
        ]
        heads = ("of it in events", "time", "share")
        text += "\n\n" + str(TextTable(heads, events, most_rows=_PATH_ROWS))
    return text


def _message_text(share: MessageShare) -> str:
    sizes = bytes_text(share.least_bytes)
    if share.most_bytes != share.least_bytes:
        sizes += f" to {bytes_text(share.most_bytes)}"
    return f"{count_text(share.count, 'message')} of {sizes}"


def _gains_text(report: ReplayReport) -> str:
    parts = [
        _gains_table(heading, gains, report.predicted_s)
        for heading, gains in (
            ("If these SEBs took no time", report.gains),
            ("If these events took no time", report.event_gains),
        )
        if gains
    ]
    if report.gains_left_out:
        more = count_text(report.gains_left_out, "more name or event", "more names and events")
        parts.append(f"Not replayed without {more}, since the log is large; --gains 10 does so")
    return "\n\n".join(parts)


def _gains_table(heading: str, gains: tuple[Gain, ...], predicted_s: float) -> str:
    rows = [
        (
            gain.name,
            _seconds_text(gain.busy_s),
            _seconds_text(gain.gain_s),
            _share_text(gain.gain_s, predicted_s),
        )
        for gain in gains
    ]
    return str(TextTable((heading, "busy", "gain", "of the run"), rows))


def _busiest_table(report: ReplayReport) -> str:
    rows = [
        (
            f"PE {pe.pe}",
            f"{pe.sebs:,}",
            _seconds_text(pe.busy_s),
            _share_text(pe.busy_s, report.predicted_s),
        )
        for pe in report.worst_pes
    ]
    return str(TextTable(("Busiest PEs", "SEBs", "busy", "of the run"), rows))


def _blocked_text(blocked: Blocked) -> str:
    if not blocked.count:
        return ""
    total = count_text(blocked.count, "SEB")
    lines = [
        f"Never ran: {total}; {blocked.roots:,} of them wait for something that the log lacks,",
        f"  {blocked.in_circles:,} are in cycles or wait for one",
    ]
    for one in blocked.examples:
        more = f"; {count_text(one.woken, 'more SEB')} never ran with it" if one.woken else ""
        lines.append(f"  SEB {one.seb} of PE {one.pe} ({printable(one.name)}): {one.reason}{more}")
    return "\n".join(lines)
