"""The files that models need besides timings: formulas, coefficients, names, model files."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rewritelog.errors import ModelError, UsageTypeError
from rewritelog.models.base import ModelText
from rewritelog.models.formulas import ParamNames, parse_param_names
from rewritelog.paths import STANDARD_STREAM, to_input

if TYPE_CHECKING:
    from rewritelog.models.fitted import Fitted

MAX_BYTES = 16 << 20
"""The largest size of a file of formulas, coefficients or names."""

MAX_MODEL_BYTES = 512 << 20
"""The largest size of a model file: a million exact matches of 8 parameters take 150 MB, 100,000
events 300 MB."""


def read_texts(formulas: Path | None, coefficients: Path | None) -> dict[str, ModelText]:
    """Return the texts of the given files by kind, `formulas` or `coefficients`.

    Raise `ModelError` for a file that cannot be read or is not UTF-8.
    """
    files = {"formulas": formulas, "coefficients": coefficients}
    return {what: read_model_text(path) for what, path in files.items() if path is not None}


def read_param_names(path: Path | None) -> ParamNames | None:
    """Return the contents of a file of parameter names; raise `ModelError` for any error in it."""
    return None if path is None else parse_param_names(read_model_text(path))


def to_fitted(model: object, what: str) -> Fitted:
    """Return a fitted model, given it or its file."""
    from rewritelog.models.fitted import Fitted  # noqa: PLC0415 - only some runs need it

    if isinstance(model, Fitted):
        return model
    if not isinstance(model, str | os.PathLike):
        kind = type(model).__name__
        raise UsageTypeError(f"{what} must be a fitted model or the path of its file, not {kind}")
    return read_model_file(to_input(model, what))


def read_model_file(path: Path) -> Fitted:
    """Return the fit of a model file or, for `-`, of standard input; its name is the path.

    Raise `ModelError` if it is invalid.
    """
    from rewritelog.models.model_file import parse_model  # noqa: PLC0415 - only some runs need it

    if path == STANDARD_STREAM:
        with open(0, "rb", closefd=False) as stream:
            read = _decoded("standard input", stream.read(MAX_MODEL_BYTES + 1), MAX_MODEL_BYTES)
    else:
        read = read_model_text(path, MAX_MODEL_BYTES)
    digest = hashlib.sha256(read.text.encode()).hexdigest()
    return replace(
        parse_model(read.text, read.name), name=str(path), inputs=(path,), file_sha256=digest
    )


def read_model_text(path: Path, most_bytes: int = MAX_BYTES) -> ModelText:
    """Return the text of a file; raise `ModelError` if it is too large, unreadable or not UTF-8."""
    try:
        with open(path, "rb", opener=_open_regular) as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    return _decoded(str(path), content, most_bytes)


def _decoded(name: str, content: bytes, most_bytes: int) -> ModelText:
    """Return the text of a file; raise `ModelError` if it is too large or not UTF-8."""
    if len(content) > most_bytes:
        raise ModelError(f"{name}: is larger than {most_bytes} bytes")
    try:
        return ModelText(name, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: byte {error.start} is not UTF-8") from error


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file; raise `OSError` for a pipe or device, which might block or never end."""
    handle = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is not a regular file")
    return handle
