"""Messages of msgspec about invalid values, in the words of those who wrote the values."""

from __future__ import annotations

import re

AT = " - at `$"
"""What msgspec writes between a problem and the path to it, which ends with a backquote."""

_KINDS = {
    "array": "a list", "str": "a text", "int": "a whole number", "float": "a number",
    "bool": "true or false", "datetime": "a date", "date": "a date", "time": "a time",
}  # fmt: skip
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING_KEY = re.compile(r"Object missing required field `(.*)`", re.DOTALL)


def unknown_key(problem: str) -> str | None:
    """Return the key that an object has and should not have, if that is the problem."""
    match = _UNKNOWN_KEY.fullmatch(problem)
    return match[1] if match else None


def in_words(problem: str, *, table: str = "an object", value: str = "") -> str:
    """Return a problem of msgspec in plain words; `table` is the format's word for an object.

    `value` names the invalid value if the place that the error names leaves that open.
    """
    if (key := unknown_key(problem)) is not None:
        return f"unknown key {key!r}"
    if match := _MISSING_KEY.fullmatch(problem):
        return f"the key {match[1]!r} is missing"
    if problem == "Input data was truncated":
        return "its JSON is cut off"
    if not problem.startswith("Expected "):
        return problem.replace("Invalid enum value ", "unknown value ")
    problem = problem.replace("Expected ", f"{value}must be ").replace(", got ", ", not ")
    named = {**_KINDS, "object": table}
    return re.sub(
        r"`([^`]*?)(?: \| null)?`",
        lambda kinds: " or ".join(named.get(kind, kind) for kind in kinds[1].split(" | ")),
        problem,
    )
