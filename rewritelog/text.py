"""Text output: names safe for a terminal, numbers with units, tables, strict JSON.

In JSON null replaces numbers that are not finite, which JSON cannot represent.
"""

from __future__ import annotations

import io
import json
import math
import re
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

FAULTS_SHOWN = 2
"""At most this many faulty lines of a text file are shown."""

WIDTH = 80
"""The width of tables and wrapped lines, in characters."""

_REPR_WIDTH = 120
"""The most characters of a report in its `repr`; most first sentences are shorter."""

MOST_EVENTS = 40
"""Tables list at most this many events, and then the number of the others."""

LABEL_WIDTH = 60
"""Longer names of events are shortened in sentences."""

NO_NAME = "(no name)"
"""The text for a SEB or node without a name."""

NO_VALUE = "–"
"""The text for an unknown number in a table."""

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps"))
_SHORTEST_S, _LONGEST_S = 1e-12, 1e9
"""Shorter and longer times are written in scientific notation."""

_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[mµnp]?s|[kMGT]?B|bytes)(?!\w))")

_SPECIAL = re.compile(r"\\\*|[?[]")
"""What `fnmatch` has to take as the character with which it ends: `\\*`, `?` and `[`."""
_LAST_WORD = re.compile(r"\w+\Z")

_LEAST_NAME = 20
_INDENT = _GAP = "  "
_ONE_LINE = json.JSONEncoder(allow_nan=False)
Value = TypeVar("Value")


def decoded(name: bytes) -> str:
    """Return a name of a log as text; bytes that are not UTF-8 are escaped."""
    return name.decode("utf-8", "backslashreplace")


def printable(text: str | bytes) -> str:
    """Return a name with all control characters, which a terminal might obey, escaped."""
    if isinstance(text, bytes):
        text = decoded(text)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, width: int) -> str:
    """Return a printable text, shortened in the middle to at most `width` characters."""
    if len(text) > width:
        text = text[: width + 1] + text[-width:]  # printable takes time per character
    text = printable(text)
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def shorten_all(texts: Sequence[str], width: int) -> list[str]:
    """Return printable texts of at most `width` characters; only equal texts look alike.

    Texts that a cut in the middle would make alike are cut before the first word that differs, and
    numbered if that is not enough.
    """
    short = {text: shorten(text, width) for text in texts}
    alike = _groups_alike(short)
    for group in alike:
        first, last, head = min(group), max(group), width // 4
        pairs = enumerate(zip(first, last, strict=False))
        begin = next((at for at, (a, b) in pairs if a != b), len(first))
        word = _LAST_WORD.search(group[0], max(0, begin - width // 3), begin)
        begin = word.start() if word else begin
        cuts = {
            text: f"{shorten(text[:head], head)}…{printable(text[begin:][:width])}"
            for text in group
        }
        for text, cut in cuts.items():
            short[text] = cuts[text] = cut if len(cut) <= width else f"{cut[: width - 1]}…"
        alike += [fewer for fewer in _groups_alike(cuts) if len(fewer) < len(group)]
    for group in _groups_alike(short):
        for number, text in enumerate(group, 1):
            short[text] = f"{short[text][: width - len(f'{number}') - 1]}#{number}"
    return [short[text] for text in texts]


def _groups_alike(short: Mapping[str, str]) -> list[list[str]]:
    """Return the groups of texts whose short text is the same; `short` has it by text."""
    by_short: dict[str, list[str]] = {}
    for text, cut in short.items():
        by_short.setdefault(cut, []).append(text)
    return [group for group in by_short.values() if len(group) > 1]


def wrapped(line: str, hanging: int = 2) -> str:
    """Return a line wrapped at `WIDTH` columns; continuation lines are indented by `hanging` more.

    A number and its unit stay on one line.
    """
    if len(line) <= WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    filled = textwrap.fill(
        _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", line.strip()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + " " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\N{NO-BREAK SPACE}", " ")


def event_label(
    event: str, parameters: int, category: float | None = None, names: Sequence[str] = ()
) -> str:
    """Return the name of an event in reports, as in `Cell::pairForces(p1, p2)`."""
    labels = parameter_names(parameters, names)
    listed = ", ".join(labels if parameters <= 4 else [labels[0], "...", labels[-1]])
    suffix = "" if category is None else f", category {shortest_text(category)}"
    return f"{shorten(event, LABEL_WIDTH)}({listed}){suffix}"


def parameter_names(parameters: int, names: Sequence[str] = ()) -> list[str]:
    """Return the names of the parameters in reports: p1, p2, … for those without a name or `_`."""
    known = dict(enumerate(names))
    return [f"p{at + 1}" if known.get(at, "_") == "_" else known[at] for at in range(parameters)]


def shortest_text(value: float) -> str:
    """Return the shortest text that reads back as the number; integers without a point."""
    return repr(float(value)).removesuffix(".0")


def range_texts(low: float, high: float) -> tuple[str, str]:
    """Return the ends of a range in six digits, or as many more as its width needs to be seen."""
    for digits in range(6, 17):
        texts = f"{low:.{digits}g}", f"{high:.{digits}g}"
        shown = float(texts[1]) - float(texts[0])
        if not abs(shown - (high - low)) > 0.01 * (high - low):
            break
    return texts


def json_number(value: float | None) -> float | None:
    """Return a number for strict JSON: None for one that is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def json_of(value: Any) -> Any:
    """Return a struct or collection as JSON types, with `json_number` for its floats."""
    if isinstance(value, dict):
        return {name: json_of(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(part) for part in value]
    if fields := getattr(value, "__struct_fields__", ()):  # without an import of msgspec
        return {name: json_of(getattr(value, name)) for name in fields}
    return json_number(value) if isinstance(value, float) else value


def exact_number(value: float) -> float | str:
    """Return a number for JSON that reads back exactly: a string for one that is not finite."""
    return float(value) if math.isfinite(value) else str(float(value))


def json_text(value: object, indent: int | None = None) -> str:
    """Return a value as strict JSON in printable ASCII, which is safe for a terminal.

    Raise `ValueError` for a number that is not finite.
    """
    if indent is None:
        text = _ONE_LINE.encode(value)
    else:
        file = io.StringIO()  # a list of all tokens, as `encode` makes it, takes much memory
        file.writelines(json.JSONEncoder(indent=indent, allow_nan=False).iterencode(value))
        text = file.getvalue()
    return text.replace("\x7f", "\\u007f")


def bytes_text(size: float, digits: int | None = None) -> str:
    """Return a size with a suitable decimal unit, as in `1.5 MB`.

    It has one decimal, or at most `digits` significant digits.
    """
    units = ["bytes", "kB", "MB", "GB", "TB"]
    most = 999.95 if digits is None else 1000.0  # more would be rounded to 1000.0
    while abs(size) >= most and len(units) > 1:
        size /= 1000
        del units[0]
    decimal = ".0f" if units[0] == "bytes" else ".1f"
    text = f"{size:{decimal if digits is None else f'.{digits}g'}} {units[0]}"
    return "1 byte" if text == "1 bytes" else text


def time_text(seconds: float | None, digits: int = 4) -> str:
    """Return a time in its SI unit, as in `681.1 µs`; `–` for one that is not known."""
    return time_column([seconds], digits)[0]


def time_column(times: Sequence[float | None], digits: int = 4) -> list[str]:
    """Return times in the unit of the longest of them, so that they align to the right.

    The longest has `digits` significant digits and the others as many decimals. Times that would
    keep less than two significant digits are in a unit of their own.
    """
    known = [abs(seconds) for seconds in times if seconds is not None and math.isfinite(seconds)]
    longest = max(known, default=0.0)
    return [_time_in_unit_of(seconds, longest, digits) for seconds in times]


def time_range_text(low_s: float, high_s: float, digits: int = 4) -> str:
    """Return two times in one unit, as in `1.064 to 1.110 ms`."""
    low, high = time_column([low_s, high_s], digits)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def _time_in_unit_of(time_s: float | None, longest_s: float, digits: int) -> str:
    """Return a time in the unit, and with the decimals, of the longest of its column."""
    if time_s is None or math.isnan(time_s):
        return NO_VALUE
    if time_s == 0:
        return "0 s"
    if math.isinf(time_s) or not _SHORTEST_S <= longest_s < _LONGEST_S:
        return f"{time_s:.{digits}g} s"
    rounded_s = float(f"{longest_s:.{digits - 1}e}")
    smaller = (known for known in _TIME_UNITS if rounded_s >= known[0])
    size, unit = next(smaller, _TIME_UNITS[-1])
    decimals = max(0, digits - len(f"{rounded_s / size:.6f}".partition(".")[0]))
    if abs(time_s) < longest_s and abs(time_s) / size < 10.0 ** (1 - decimals):
        return _time_in_unit_of(time_s, abs(time_s), 2)
    return f"{time_s / size:,.{decimals}f} {unit}"


def percent_text(share: float | None, digits: int = 2, sign: str = "") -> str:
    """Return a share in per cent, as in `1.25 %`, a huge one in scientific notation.

    `sign` "+" adds a plus sign; 0 has no minus.
    """
    if share is None:
        return NO_VALUE
    kind = f".{digits}f" if abs(share) < 1e4 else ".1e"
    return f"{100 * share:{sign}z{kind}} %"


def share_of(part: float, whole: float) -> float:
    """Return a share from 0 to 1; 0 of a whole that is 0 or infinite."""
    return part / whole if 0 < whole < math.inf else 0.0


def ratio_text(ratio: float | None) -> str:
    """Return a ratio with four significant digits, `–` for one that is not known."""
    return NO_VALUE if ratio is None else f"{ratio:.4g}"


def speedup(old_s: float, new_s: float) -> float | None:
    """Return the old duration divided by the new one; None if either is 0 or infinite."""
    return json_number(old_s / new_s) if old_s > 0 and 0 < new_s < math.inf else None


def faster_text(old_s: float, new_s: float) -> str:
    """Return a speedup in words, as in `1.287 × faster`."""
    ratio = speedup(old_s, new_s)
    if not ratio:
        return "no time before" if new_s else "no time at all"
    if f"{ratio:.4g}" == "1":
        return "as fast as before"
    return f"{ratio:.4g} × faster" if ratio > 1 else f"{1 / ratio:.4g} × slower"


def count_text(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun, as in `1 line` and `2,000 lines`."""
    return f"{number:,} {noun if number == 1 else plural or plural_of(noun)}"


def plural_of(noun: str) -> str:
    """Return the plural of a noun, also of `dependency` and `category`."""
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def some_text(names: Sequence[str], shown: int) -> str:
    """Return names as a list in a sentence: the first `shown` and the number of the rest."""
    rest = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{rest}"


def quoted(name: str) -> str:
    """Return a name in quotes and shortened, for a sentence."""
    return f"'{shorten(name, LABEL_WIDTH)}'"


def some_quoted(names: Sequence[str], shown: int) -> list[str]:
    """Return names for a sentence: the first `shown` in quotes and shortened, the others as is."""
    short = shorten_all(names[:shown], LABEL_WIDTH)
    return [*(f"'{name}'" for name in short), *names[shown:]]


MOST_ALIKE = 5
"""More remarks than this with the same cause become a single sentence."""


class Remark(NamedTuple):
    """A remark on an event; remarks on other events may have the same cause."""

    cause: str
    event: str
    size: float
    """The size of the event, by which the largest of several is found."""
    text: str


def merged(remarks: Iterable[Remark], head: str = "{}") -> Iterator[str]:
    """Yield a sentence for each remark, but a single one for a cause that many events share.

    The latter is the remark on the largest event; `head` formats the event before the colon.
    """
    by_cause: dict[str, list[Remark]] = {}
    for remark in (remarks := list(remarks)):
        by_cause.setdefault(remark.cause, []).append(remark)
    for remark in remarks:
        if len(by_cause[remark.cause]) <= MOST_ALIKE:
            yield f"{head.format(remark.event)}: {remark.text}"
    for alike in by_cause.values():
        if len(alike) > MOST_ALIKE:
            largest = max(alike, key=lambda remark: remark.size)
            yield f"{len(alike):,} events, the largest being {largest.event}: {largest.text}"


def events_text(events: Sequence[str]) -> str:
    """Return the number of events with the first names, as in `3 events (a, b, …)`."""
    names = [shorten(name, 30) for name in events[:2]]
    return f"{count_text(len(events), 'event')} ({', '.join(names + ['…'] * (len(events) > 2))})"


def fault_text(path: Path, line: int, problem: str, text: str) -> str:
    """Return the message for a faulty line of a text file."""
    return f"{path}:{line}: {problem}: {text!r}"


def matches(pattern: str, name: str) -> bool:
    r"""Return whether a pattern matches a name, in linear time.

    In it `*` stands for any characters, and `\*` for an asterisk.
    """
    return fnmatchcase(name, _escaped(pattern))


def pattern_of(name: str) -> str:
    """Return the pattern that matches this name alone."""
    return name.replace("*", r"\*")


@lru_cache(maxsize=1 << 8)
def _escaped(pattern: str) -> str:
    """Return the pattern as `fnmatch` takes it, from a cache: many names are compared with each."""
    return _SPECIAL.sub(lambda special: f"[{special[0][-1]}]", pattern)


def last_match(rules: Sequence[tuple[str, Value]], name: str, otherwise: Value) -> Value:
    """Return the value of the last of the rules whose pattern matches a name."""
    return next((value for pattern, value in reversed(rules) if matches(pattern, name)), otherwise)


def matching(rules: Sequence[tuple[str, object]], names: Iterable[str]) -> frozenset[str]:
    """Return the patterns that apply to any of the names: to each, the last one that matches it."""
    if not rules:  # there may be a million names
        return frozenset()
    patterns = [(pattern, pattern) for pattern, _ in rules]
    return frozenset(filter(None, (last_match(patterns, name, "") for name in names)))


def unused_patterns(
    rules: Sequence[tuple[str, object]], used: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each unused pattern, and what to add to a message that it matches nothing."""
    patterns = [pattern for pattern, _ in rules]
    for place, pattern in enumerate(patterns, 1):
        if pattern not in used or pattern in patterns[place:]:
            yield pattern, ", or later patterns match, too" if place < len(patterns) else ""


WARNINGS_SHOWN = 6
"""Pages and notebooks fold further warnings away."""

MOST_WARNINGS = 1_000
"""They have at most this many; the report has all."""


def folded(warnings: Sequence[str]) -> tuple[list[str], list[str], str]:
    """Return the warnings to show, those to fold away, and the words for the latter."""
    lines = [printable(warning) for warning in warnings[:MOST_WARNINGS]]
    more = count_text(len(warnings) - WARNINGS_SHOWN, "more warning")
    if len(warnings) > MOST_WARNINGS:
        more += f", {MOST_WARNINGS - WARNINGS_SHOWN:,} of them shown: the report has all"
    return lines[:WARNINGS_SHOWN], lines[WARNINGS_SHOWN:], more


def warnings_html(warnings: Sequence[str]) -> str:
    """Return warnings as HTML, for a notebook; empty if there are none."""
    from html import escape  # noqa: PLC0415 - only notebooks need it

    def paragraphs(lines: Iterable[str]) -> str:
        return "".join(f"<p>warning: {escape(line)}</p>" for line in lines)

    shown, others, more = folded(warnings)
    fold = f"<details><summary>{more}</summary>{paragraphs(others)}</details>" if others else ""
    return paragraphs(shown) + fold


class Lines(str):
    """A text of several lines, which a notebook shows as it is printed."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 - only notebooks need it

        return f"<pre>{escape(self)}</pre>"


class Readable(ABC):
    """A report: its `repr` is one line, and a notebook shows all of it, with its warnings."""

    @property
    def more(self) -> str:
        """What `details` has, in a few words."""
        return ""

    @abstractmethod
    def text(self) -> str:
        """Return the report as text."""

    def top_lines(self) -> list[str]:
        """Return the lines at the top of the text, before they are wrapped."""
        return self.text().split("\n")

    def details(self) -> str:
        """Return what else the report has, as text."""
        return ""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON types."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shorten(self.top_lines()[0], _REPR_WIDTH)}>"

    def _repr_html_(self) -> str:
        text = Lines("\n".join(filter(None, (self.text(), self.details()))))
        return text._repr_html_() + warnings_html(getattr(self, "warnings", ()))


@dataclass(frozen=True)
class TextTable:
    """A table at most `WIDTH` characters wide: names aligned to the left, numbers to the right.

    Long names in the first column are shortened. Columns that do not fit beside it
    are continued below, with the names repeated.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    left: frozenset[int] = frozenset()
    """The indices of other columns that contain text, aligned to the left."""
    most_rows: int | None = None
    """The most rows that are shown, while a last line counts the others; None for no limit."""
    further: int = 0
    """The number of rows that are not given, and only counted, too."""
    caption: str = ""
    """The caption above the table on a page."""

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[str]], most_rows: int | None = None) -> TextTable:
        """Return the table of columns of equal length, each under its head."""
        return cls(tuple(columns), list(zip(*columns.values(), strict=True)), most_rows=most_rows)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the lines, the heads first."""
        shown = [self.heads, *self.rows[: self.most_rows]]
        texts, *columns = zip(*shown, strict=True)
        aligned = [self._aligned(number, column) for number, column in enumerate(columns, 1)]
        widths = [len(head) for head, *_ in aligned]
        longest = max(len(shorten(text, WIDTH)) for text in texts)
        lines: list[str] = []
        for part in _column_parts(widths, longest):
            room = WIDTH - len(_INDENT) - sum(len(_GAP) + width for width in widths[part])
            width = max(min(longest, room), min(_LEAST_NAME, longest))
            names = [name.ljust(width) for name in shorten_all(texts, width)]
            rows = zip(names, *aligned[part], strict=True)
            lines += [(_INDENT + _GAP.join(row)).rstrip() for row in rows]
        left_out = self.further + len(self.rows) - len(shown) + 1
        return lines + ([f"{_INDENT}and {left_out:,} more"] if left_out else [])

    def _aligned(self, number: int, column: Sequence[str]) -> list[str]:
        """Return the cells of a column after the first, shortened and of equal width."""
        cells = [shorten(cell, WIDTH - len(_INDENT) - _LEAST_NAME - len(_GAP)) for cell in column]
        width = max(map(len, cells))
        return [cell.ljust(width) if number in self.left else cell.rjust(width) for cell in cells]

    def html(self) -> str:
        """Return the table as HTML, for a page or a notebook."""
        from html import escape  # noqa: PLC0415 - only pages and notebooks need it

        shown = [self.heads, *self.rows[: self.most_rows]]
        names = shorten_all([row[0] for row in shown], WIDTH)
        lines = [
            [escape(shorten(cell, WIDTH)) for cell in (name, *row[1:])]
            for name, row in zip(names, shown, strict=True)
        ]
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        head = "".join(f'<th scope="col">{cell}</th>' for cell in lines[0])
        rows = "".join(
            f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in lines[1:]
        )
        left_out = self.further + len(self.rows) - len(shown) + 1
        foot = f"<p>and {left_out:,} more</p>" if left_out else ""
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{foot}"


def _column_parts(widths: Sequence[int], longest_name: int) -> Iterator[slice]:
    """Yield the columns of each part of the table that fits beside the names."""
    room = WIDTH - len(_INDENT) - min(longest_name, _LEAST_NAME)
    begin, used = 0, 0
    for column, width in enumerate(widths):
        used += len(_GAP) + width
        if used > room and column > begin:
            yield slice(begin, column)
            begin, used = column, len(_GAP) + width
    yield slice(begin, len(widths))
