"""Digest of everything that a compiled kernel depends on: its code, its callees, and constants.

It changes with the code, but not with file times, file names or comments, so that a kernel is
compiled anew exactly when that could make a difference.
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
"""What kernels use of these modules changes only with the modules' versions."""


def kernel_digest(function: FunctionType, compiled_forms: Mapping[int, str]) -> str:
    """Return the digest of a kernel.

    `compiled_forms` names, by the id of a function, the module that defines its compiled form.
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
    """Yield the parts of a function's code, except its docstring and its location."""
    yield code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_flags
    for number, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            yield from _code_parts(constant)
        elif not (number == 0 and isinstance(constant, str)):
            yield constant


def _referred(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield name and value of each global and module attribute that a function's code uses."""
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
    """Return a text of what a compiled kernel takes from a global constant."""
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
