"""Lines of older writers, which have no braces: a name, then its numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tracebigsim._grammar import (
    CONTROL_IN_NAME,
    FINE,
    GLUED,
    MAX_PARAMS,
    NO_EVENT,
    NOT_A_NUMBER,
    TOO_MANY_PARAMS,
)
from tracebigsim._tokens import (
    AT,
    KEYWORD_BYTES,
    NAME_END,
    NAME_START,
    PARAMS_END,
    SLOW_END,
    Values,
    add_param,
    is_keyword,
    line_ends,
    skip_blanks,
)
from tracebigsim.compiled import inner


@inner
def _bare_token(text: NDArray[np.uint8], at: int, end: int, record: NDArray[np.int64]) -> int:
    """Move record[AT] past a bare line's token; return FINE or the fault that its bytes show."""
    while not line_ends(text, at, end):
        byte = int(text[at])
        if byte == 32 or byte == 9:  # noqa: PLR1714 - kernels compare plainly
            break
        if byte < 32 or byte == 127:
            record[AT] = at
            return CONTROL_IN_NAME
        if byte == KEYWORD_BYTES[0] and is_keyword(text, at, end):
            return GLUED
        at += 1
    record[AT] = at
    return FINE


@inner
def read_bare(
    text: NDArray[np.uint8], at: int, end: int, values: Values, record: NDArray[np.int64]
) -> int:
    """Read a bare line: a name, then the trailing run of numbers; return FINE or another code."""
    params_start = record[PARAMS_END]
    slow_start = record[SLOW_END]
    record[NAME_START] = at
    record[NAME_END] = at
    while True:
        at = skip_blanks(text, at, end)
        record[AT] = at
        if line_ends(text, at, end):
            break
        code = add_param(text, at, end, values, record)
        if code == NOT_A_NUMBER:
            record[PARAMS_END] = params_start
            record[SLOW_END] = slow_start
            code = _bare_token(text, at, end, record)
            record[NAME_END] = record[AT]
        if code != FINE:
            return code
        at = record[AT]
    if record[NAME_END] == record[NAME_START]:
        return NO_EVENT
    return TOO_MANY_PARAMS if record[PARAMS_END] - params_start > MAX_PARAMS else FINE
