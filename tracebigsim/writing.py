"""The writer of timing lines and param lines, which `scan` reads back unchanged; no numpy here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import index
from typing import Final, SupportsFloat

from tracebigsim.errors import LineFormatError

KEYWORD: Final = "TRACEBIGSIM"
MAX_PARAMS: Final = 20
MOST_TIME: Final = 1e100
"""The longest valid time, in seconds or cycles."""
MAX_LINE_BYTES: Final = 1 << 20
"""The longest valid line; a longer one is a single fault, whatever it contains."""


_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FIELD_WITHIN: Final = re.compile(r"(?<!:):[ \t]*\{")
_BRACE: Final = re.compile(r"[{}]")
_LARGEST: Final = 2**63 - 1
_LONGEST: Final = 2.2250738585072014e-308
"""No positive number has a longer text."""
_FIXED_BELOW: Final = 1e15
"""Larger numbers would have more digits before the decimal point than a double holds."""


def format_line(
    event: str,
    params: Iterable[SupportsFloat] = (),
    *,
    time_s: float | None = None,
    time_cycles: float | None = None,
    seb: int | None = None,
    seqno: int | None = None,
    counters: Iterable[int] = (),
) -> str:
    """Return the line of a record, newline included, in the form that instrumented programs print.

    With a time it is a timing line, without one a param line. Numbers are read back as the same
    doubles; -0 is written as 0. Raises LineFormatError for neither a time nor a SEB number, two
    times, a time that is negative or above 1e100, more than 20 parameters, a number that is not
    finite, an integer outside [0, 2**63) (counters: of more than 63 bits), a line of more than
    1 MiB, or an event name that is empty, begins or ends with a blank, is not valid Unicode, or
    contains a control character, unpaired braces, a field or TRACEBIGSIM.

    >>> print(tracebigsim.format_line("kernel", [8, 2.5], time_s=1e-6), end="")
    TRACEBIGSIM: event:{ kernel }  time:{ 0.000001 }  params:{ 8.000000 2.500000 }
    """
    try:
        listed, counted = list(params), list(counters)
    except TypeError as error:
        raise LineFormatError(f"parameters and counters must be listed: {error}") from error
    if len(listed) > MAX_PARAMS:
        raise LineFormatError(f"a line has at most {MAX_PARAMS} parameters, not {len(listed)}")
    numbers = "".join(_number_text(param, "a parameter") + " " for param in listed)
    if time_s is None and time_cycles is None and seb is None and seqno is None:
        raise LineFormatError("a record has neither a time nor a SEB number")
    if problem := name_problem(to_name(event)):
        raise LineFormatError(f"invalid event name: it {problem}: {event!r}")
    parts = [f"{KEYWORD}: event:{{ {event} }}"]
    if seb is not None:
        parts[0] = f"{_to_int(seb, 'the SEB')} {parts[0]}"
    if seqno is not None:
        parts.append(f"seqno: {{ {_to_int(seqno, 'seqno')} }}   ")
    parts.extend(_time_field(time_s, time_cycles))
    if counted:
        whole = [_to_int(counter, "a counter", "(-2**63, 2**63)", -_LARGEST) for counter in counted]
        parts.append(f"PAPI:{{ {' '.join(map(str, whole))} }}")
    parts.append(f"params:{{ {numbers}}}")
    line = " ".join(parts) + "\n"
    if (size := len(line.encode())) > MAX_LINE_BYTES:
        raise LineFormatError(f"a line has at most {MAX_LINE_BYTES} bytes, not {size}")
    return line


def around_time(event: str, params: Sequence[float]) -> tuple[str, str]:
    """Return the text before and after the time of a timing line.

    `number_text` makes the text of the time. Raises LineFormatError as `format_line` does, for a
    line with the time whose text is longest.
    """
    before, after, most = _without_parameters(event)
    numbers = "".join([f"{number_text(param, 'a parameter')} " for param in params])
    after = f"{after}{numbers}}}\n"
    if len(params) > MAX_PARAMS or len(after) > most:
        format_line(event, params, time_s=_LONGEST)  # raises
    return before, after


@lru_cache(1 << 10)
def _without_parameters(event: str) -> tuple[str, str, int]:
    """Return the texts before the time and between it and params, and the room after the time."""
    line = format_line(event, time_s=_LONGEST)
    before, _, after = line.rpartition(number_text(_LONGEST, "a time"))
    return before, after[:-2], MAX_LINE_BYTES - len(line.encode()) + len(after)


def format_chosen(pe: int, seb: int, event: str, params: Iterable[SupportsFloat]) -> str:
    """Return a line, newline included, of a list of chosen SEBs: the PE, a blank, its param line.

    `tracebigsim.chosen` reads such lists. Raises LineFormatError as `format_line` does, and for a
    PE's number outside [0, 2**63).

    >>> print(tracebigsim.format_chosen(3, 19, "kernel", [8]), end="")
    3 19 TRACEBIGSIM: event:{ kernel } seqno: { 19 }    params:{ 8.000000 }
    """
    return f"{_to_int(pe, 'the PE')} {format_line(event, params, seb=seb, seqno=seb)}"


def _time_field(time_s: float | None, time_cycles: float | None) -> Iterable[str]:
    """Yield the time field, with the two blanks that instrumented programs print around it."""
    if time_s is not None and time_cycles is not None:
        raise LineFormatError("a line has a time in seconds or in cycles, not both")
    for name, time in (("time", time_s), ("time_in_cycles", time_cycles)):
        if time is not None:
            text = _number_text(time, "a time")
            if text.startswith("-"):
                raise LineFormatError(f"negative time: {time!r}")
            if time > MOST_TIME:
                raise LineFormatError(f"a time must be at most {MOST_TIME:g}, not {time!r}")
            yield f" {name}:{{ {text} }} "


def _number_text(value: SupportsFloat, what: str) -> str:
    """Return the text of a number, which has to be finite."""
    return number_text(to_float(value, what), what)


def to_name(event: object) -> str:
    """Return an event's name; raise LineFormatError if it is not a text."""
    if not isinstance(event, str):
        raise LineFormatError(f"an event name must be a text, not {event!r}")
    return event


def to_float(value: SupportsFloat, what: str) -> float:
    """Return a value as a float, -0 as 0; raise LineFormatError if it cannot be converted."""
    try:
        return float(value) + 0.0
    except (TypeError, ValueError, OverflowError) as error:
        raise LineFormatError(f"{what} must be a number: {error}") from error


@lru_cache(1 << 14)
def number_text(number: float, what: str) -> str:
    """Return a finite float as `%f` prints it if that is exact, else with all digits."""
    if not math.isfinite(number):
        raise LineFormatError(f"{what} must be finite, not {number!r}")
    number += 0.0  # -0 and 0 are the same to the cache
    fixed = f"{number:.6f}"
    if abs(number) < _FIXED_BELOW and float(fixed) == number:
        return fixed
    return repr(number)


def _to_int(value: int, what: str, span: str = "[0, 2**63)", least: int = 0) -> int:
    """Return an integer; raise LineFormatError for anything else, and outside `span`."""
    try:
        number = index(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise LineFormatError(f"{what} must be an integer: {error}") from error
    if not least <= number <= _LARGEST:
        raise LineFormatError(f"{what} must lie in {span}, not {value}")
    return number


def name_problem(event: str) -> str:
    """Return why no line can hold an event's name; an empty text if one can."""
    if not event or event != event.strip(" \t"):
        return "is empty, or begins or ends with a blank"
    if _CONTROL.search(event):
        return "holds a control character"
    if not event.isascii() and event != event.encode(errors="replace").decode():
        return "is not valid Unicode"
    if KEYWORD in event:
        return f"holds {KEYWORD}"
    if _FIELD_WITHIN.search(event):
        return "contains text that reads as a field"
    depths = list(accumulate(1 if brace == "{" else -1 for brace in _BRACE.findall(event)))
    pair_up = not depths or (min(depths) == 0 and depths[-1] == 0)
    return "" if pair_up else "has braces that do not pair up"
