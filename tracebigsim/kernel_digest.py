"""A digest of all that a compiled kernel depends on: its code, what it calls, and constants.

It changes with the code and not with the files' times, names or comments, so that a kernel is
compiled anew exactly where that could make a difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from enum import EnumMeta
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

_FIXED_MODULES = ("numpy", "math")
"""What kernels take from these changes with their versions only."""


def kernel_digest(function: FunctionType, compiled_forms: Mapping[int, str]) -> str:
    """Return the digest of a kernel.

    `compiled_forms` names, by id of a function, the module that says what numba compiles for it.
    """
    total = hashlib.sha256(Path(__file__).with_name("compiled.py").read_bytes())
    known: set[int] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if id(current) in known:
            continue
        known.add(id(current))
        total.update(repr(tuple(_code_parts(current.__code__))).encode())
        total.update(repr((current.__defaults__, current.__kwdefaults__)).encode())
        if module := compiled_forms.get(id(current)):
            total.update(_source_of(module))
            continue
        for name, value in _referred(current):
            called = getattr(value, "function", value)
            if isinstance(called, FunctionType):
                waiting.append(called)
            else:
                total.update(f"{name}={_described(value)}".encode())
    return total.hexdigest()


def _code_parts(code: CodeType) -> Iterator[object]:
    """Yield what a function's code consists of, but its documentation and where it is from."""
    yield code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_flags
    for number, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        elif not (number == 0 and isinstance(constant, str)):
            yield constant


def _referred(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the globals that a function's code names, and what it names of modules."""
    names = list(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType) and value.__name__ not in _FIXED_MODULES:
            yield from ((part, getattr(value, part)) for part in names if hasattr(value, part))


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _described(value: object) -> str:
    """Return what a compiled kernel takes from a constant that it refers to."""
    if isinstance(value, EnumMeta):
        members: Any = value
        return repr([(one.name, one.value) for one in members])
    if isinstance(value, type):
        return repr((value.__qualname__, getattr(value, "_fields", ())))
    contents = getattr(value, "tobytes", None)
    if contents is not None:
        return repr((contents(), getattr(value, "dtype", None)))
    if isinstance(value, bool | int | float | complex | str | bytes | tuple | type(None)):
        return repr(value)
    return type(value).__qualname__


def _source_of(module: str) -> bytes:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"no module {module}")
    return Path(spec.origin).read_bytes()
