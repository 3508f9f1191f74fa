"""Words and limits of the line grammar, shared by its reader and its writer; no numpy here."""

from __future__ import annotations

from typing import Final

KEYWORD: Final = "TRACEBIGSIM"
MAX_PARAMS: Final = 20
MAX_LINE_BYTES: Final = 1 << 20
"""A longer line is one fault, whatever it holds."""

EVENT: Final = 0
TIME: Final = 1
CYCLES: Final = 2
PAPI: Final = 3
SEQNO: Final = 4
PARAMS: Final = 5
FIELDS: Final = ("event", "time", "time_in_cycles", "PAPI", "seqno", "params")
"""The names of fields; a field's number is its index here."""

# Return codes of the line readers. Codes below FULL_ROWS are faults; codes from FULL_ROWS on name
# an output array that is full: the caller lengthens it and reads the line again.
FINE: Final = 0
GLUED: Final = 1
TOO_LONG: Final = 2
BAD_LEADING_NUMBER: Final = 3
NO_EVENT: Final = 4
EMPTY_NAME: Final = 5
CONTROL_IN_NAME: Final = 6
FIELD_IN_NAME: Final = 7
NOT_A_FIELD: Final = 8
DUPLICATE_FIELD: Final = 9
NOT_CLOSED: Final = 10
NOT_A_NUMBER: Final = 11
NAN: Final = 12
INFINITE: Final = 13
TOO_MANY_PARAMS: Final = 14
NO_TIME: Final = 15
SEVERAL_TIMES: Final = 16
TWO_TIMES: Final = 17
NEGATIVE_TIME: Final = 18
NOT_AN_INTEGER: Final = 19
INTEGER_OVERFLOW: Final = 20
NOT_ONE_SEQNO: Final = 21
NO_TIME_NO_SEB: Final = 22
FULL_ROWS: Final = 100
FULL_PARAMS: Final = 101
FULL_COUNTERS: Final = 102
FULL_SLOW: Final = 103
FULL_NAMES: Final = 104

PROBLEMS: Final = {
    GLUED: f"two {KEYWORD} in one line: lines of several processes ran together",
    TOO_LONG: f"the line is longer than {MAX_LINE_BYTES} bytes",
    BAD_LEADING_NUMBER: "the leading number does not fit in 64 bits",
    NO_EVENT: "no event:{..} field",
    EMPTY_NAME: "the event's name is empty",
    CONTROL_IN_NAME: "a control character in the event's name",
    FIELD_IN_NAME: "a field begins within the event's name: lines that are torn or ran together",
    NOT_A_FIELD: "expected a known field or the end of the line at {token}",
    DUPLICATE_FIELD: "duplicate field at {token}",
    NOT_CLOSED: "a closing brace is missing: a torn line",
    NOT_A_NUMBER: "not a number: {token}",
    NAN: "not a finite number (NaN): {token}",
    INFINITE: "not a finite number (infinite, or too large): {token}",
    TOO_MANY_PARAMS: f"more than {MAX_PARAMS} parameters",
    NO_TIME: "a time field without a number",
    SEVERAL_TIMES: "more than one number in a time field, at {token}",
    TWO_TIMES: "both time and time_in_cycles",
    NEGATIVE_TIME: "a negative time: {token}",
    NOT_AN_INTEGER: "not an integer: {token}",
    INTEGER_OVERFLOW: "an integer that does not fit in 64 bits: {token}",
    NOT_ONE_SEQNO: "seqno must be one non-negative integer; at {token}",
    NO_TIME_NO_SEB: "neither a time nor a SEB number",
}
