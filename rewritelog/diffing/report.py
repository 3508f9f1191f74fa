"""The report of a comparison, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from rewritelog.diffing.durations import RATIO_ERROR, Row, Rows
from rewritelog.diffing.records import ABSENT, Change, FieldKind, FirstDifference, Totals
from rewritelog.formats.bgtrace.records import LISTS
from rewritelog.formats.traces import AnyTraces
from rewritelog.text import (
    NO_NAME,
    Readable,
    TextTable,
    count_text,
    json_number,
    plural_of,
    printable,
    ratio_text,
    shorten_all,
    time_column,
    time_text,
    wrapped,
)

_SHOWN = 20
_VALUE_WIDTH = 26
"""Longer values of fields are shortened where they are alike."""

_NO_TIMES = (ABSENT, "-1", "nan")
"""Values of times that are not times: one side has none, or a `recvTime` or `endTime` of −1."""

_OTHERS = "(all other names)"
_NO_RECORD = "(without a record)"
_HEADINGS = {
    FieldKind.TIME: "times",
    FieldKind.CONTENT: "everything else, which no rewrite changes",
    FieldKind.MEANINGLESS: "bytes without meaning",
}


SideName: TypeAlias = Literal["A", "B"]


class HeadDifference(Struct, frozen=True):
    """A difference in the summaries or machine headers."""

    name: str
    a: str
    b: str

    def __str__(self) -> str:
        return f"{self.name}: {self.a} → {self.b}"


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Readable):
    """The differences of two sets of logs or traces."""

    sides: tuple[AnyTraces, AnyTraces]
    totals: Totals
    representation: tuple[HeadDifference, ...] = ()
    """Differences of representation: log version, byte order, files."""
    machine: tuple[HeadDifference, ...] = ()
    """Differences of the machine, or of what comes before the nodes of a rank."""
    without_params: SideName | None = None
    """The side that alone lacks param files: the files of the other side name its events."""

    @property
    def counted(self) -> dict[str, str]:
        """The counts of `Totals.sides` that make up the structure, each with its noun."""
        lists = LISTS if self.sides[0].has_messages else {}
        return {"SEBs": self.sides[0].terms.item, **lists}

    @property
    def fields(self) -> dict[str, Change]:
        """The fields that differ, by name, in the order of the format."""
        return {name: change for name, change in self.totals.compared.items() if change.count}

    @property
    def structure_same(self) -> bool:
        """Whether machine and numbers of SEBs, messages, events and dependencies are the same."""
        a, b = self.totals.sides
        return not self.machine and all(a[which] == b[which] for which in self.counted)

    @property
    def times_alone(self) -> bool:
        """Whether nothing but times differs."""
        kinds = {change.kind for change in self.fields.values()}
        return self.structure_same and not self.representation and kinds <= {FieldKind.TIME}

    @property
    def same(self) -> bool:
        """Whether there is no difference at all."""
        return self.times_alone and not self.fields

    @property
    def verdict(self) -> str:
        """The result in a phrase."""
        if self.same:
            return "the same"
        if self.times_alone:
            return "different: only time fields"
        if self.structure_same and not self.fields:
            return "different: only the representation; the content is the same"
        return "different: more than time fields"

    def __repr__(self) -> str:
        return f"<Comparison: {self.verdict}>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object; numbers that are not finite are null."""
        totals = self.totals

        def both(what: str) -> list[int]:
            return [side[what] for side in totals.sides]

        told: dict[str, Any] = {
            "a": str(self.sides[0].path),
            "b": str(self.sides[1].path),
            "same": self.same,
            "times_alone": self.times_alone,
            "verdict": self.verdict,
            "representation": [asdict(change) for change in self.representation],
            "machine": [asdict(change) for change in self.machine],
            "counts": {plural_of(noun): both(what) for what, noun in self.counted.items()},
            "fields": [
                {
                    "field": name,
                    "kind": change.kind.value,
                    "changed": change.count,
                    "of": totals.common[change.noun],
                    "first": self._first_json(change.first),
                }
                for name, change in self.fields.items()
            ],
            "durations_by_name": _rows_json(totals.by_name),
            "durations_by_event": _rows_json(totals.by_event),
            "ratio_error": RATIO_ERROR,
        }
        if not self.sides[0].has_messages:
            return told
        return told | {
            "unclosed": both("unclosed"),
            "irregular_brackets": both("irregular"),
            "messages": {
                "compared": totals.common["messages"],
                "moved": totals.common["moved"],
                "furthest_earlier_s": json_number(totals.earlier_s),
                "furthest_later_s": json_number(totals.later_s),
                "other_transit_time": totals.common["transit"],
            },
            "without_param_files": self.without_params,
            "sebs_with_other_brackets": totals.common["unpaired"],
            "malformed_param_lines": totals.malformed_lines,
        }

    def _first_json(self, first: FirstDifference | None) -> dict[str, Any] | None:
        if first is None:
            return None
        if self.sides[0].has_messages:
            return first._asdict()
        return {"rank": first.pe, "node": first.seb, "a": first.a, "b": first.b}

    def text(self) -> str:
        """Return the report as text, with only the largest rows of long tables."""
        a, b = (printable(str(side.path)) for side in self.sides)
        lines = [
            wrapped(f"{a} → {b}: {self.verdict}"),
            wrapped(_change_line("representation", self.representation)),
            wrapped(_change_line("machine", self.machine)),
            *self._count_lines(),
        ]
        for kind, heading in _HEADINGS.items():
            chosen = {n: change for n, change in self.fields.items() if change.kind is kind}
            if chosen or kind is FieldKind.CONTENT:
                lines.append(f"{heading}:{'' if chosen else ' the same'}")
                lines += self._field_lines(chosen)
        lines += _row_lines(f"{self.sides[0].terms.item} name", self.totals.by_name)
        lines += _row_lines("event", self.totals.by_event)
        if self.totals.by_event and self.without_params is not None:
            other = "A" if self.without_params == "B" else "B"
            lines.append(
                f"  {self.without_params} has no param files: those of {other} name its events"
            )
        return "\n".join([*lines, *(self._message_lines() if self.sides[0].has_messages else [])])

    def _field_lines(self, fields: dict[str, Change]) -> list[str]:
        """Return a table of fields that differ, with the first location of each."""
        rows, terms = [], self.sides[0].terms
        for name, change in fields.items():
            first = change.first
            if first is None:
                continue
            what = "message" if change.noun == "messages" else "index"
            item = "" if first.item is None else f", {what} {first.item}"
            where = f"{terms.lane} {first.pe}, {terms.item} {first.seb}{item}"
            changed = f"{change.count:,} of {self.totals.common[change.noun]:,}"
            values = _shown_values(change.kind, first)
            shown = " → ".join(shorten_all(values, _VALUE_WIDTH))
            rows.append((name, changed, where, shown))
        heads = ("field", "changed", "first at", "A → B")
        return TextTable(heads, rows, left=frozenset({2, 3})).lines() if rows else []

    def _count_lines(self) -> list[str]:
        a, b = self.totals.sides
        parts = [
            f"{a[k]:,} → {count_text(b[k], noun)}" if a[k] != b[k] else count_text(b[k], noun)
            for k, noun in self.counted.items()
        ]
        return [wrapped(f"structure: {', '.join(parts)}")]

    def _message_lines(self) -> list[str]:
        totals = self.totals
        moved, compared = totals.common["moved"], totals.common["messages"]
        lines = [f"messages: {moved:,} of {compared:,} sent at another time within their SEB"]
        if moved:
            ends = ((-totals.earlier_s, "earlier"), (totals.later_s, "later"))
            furthest = [f"up to {time_text(by_s)} {word}" for by_s, word in ends if by_s]
            lines[0] += f", {' or '.join(furthest)}"
        lines[0] += f"; {totals.common['transit']:,} with another transit time"
        lines[0] = wrapped(lines[0])
        unpaired = totals.common["unpaired"]
        if unpaired:
            lines.append(f"{count_text(unpaired, 'SEB')} with different brackets")
        if totals.malformed_lines:
            lines.append(f"{count_text(totals.malformed_lines, 'malformed param line')} left out")
        return lines


def _change_line(what: str, changes: tuple[HeadDifference, ...]) -> str:
    shown = [str(change) for change in changes[:_SHOWN]]
    rest = [f"and {len(changes) - _SHOWN:,} more"] if len(changes) > _SHOWN else []
    return f"{what}: {'; '.join([*shown, *rest]) or 'the same'}"


def _rows_json(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "counts": list(row.sides),
            "seconds": [json_number(float(row.a_s)), json_number(float(row.b_s))],
            "ratios": row.ratios,
            "lowest": json_number(row.lowest),
            "median": json_number(row.median),
            "highest": json_number(row.highest),
        }
        for name, row in _sorted(rows)
    ]


def _sorted(rows: Rows) -> list[tuple[str | None, Row]]:
    """Return the rows, most time first."""
    return sorted(
        rows.items(),
        key=lambda item: (-max(float(item[1].a_s), float(item[1].b_s)), item[0] or ""),
    )


def _shown_values(kind: FieldKind, example: FirstDifference) -> tuple[str, ...]:
    """Return both values; times have a unit, and all digits if few do not tell them apart."""
    values = example.a, example.b
    if kind is not FieldKind.TIME:
        return values
    short = tuple(v if v in _NO_TIMES else time_text(float(v)) for v in values)
    if short[0] != short[1]:
        return short
    return tuple(f"{value} s" for value in values)


def _row_lines(what: str, rows: Rows) -> list[str]:
    """Return a table of durations; ratios are B divided by A."""
    if not rows:
        return []
    heads = ("A", "B", "A time", "B time", "lowest", "median", "highest")
    listed = list(_sorted(rows))
    times = (
        time_column([float(row.a_s) for _, row in listed]),
        time_column([float(row.b_s) for _, row in listed]),
    )
    cells = []
    for (name, row), a, b in zip(listed, *times, strict=True):
        ratios = (row.lowest, row.median, row.highest)
        label = _OTHERS if name is None else name or (_NO_RECORD if what == "event" else NO_NAME)
        counts = (f"{side:,}" for side in row.sides)
        cells.append(
            (label, *counts, a, b, *(ratio_text(ratio if row.ratios else None) for ratio in ratios))
        )
    return [
        f"durations by {what} (lowest, median, highest: ratios of B to A):",
        *TextTable((what, *heads), cells, most_rows=_SHOWN).lines(),
    ]
