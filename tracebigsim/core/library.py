"""Loads a compiled core and checks every call against its header.

The header is the only declaration. Each of its functions becomes a method that takes numbers and
numpy arrays: a pointer parameter takes a C-contiguous array of that type, writable unless it is
`const`; a parameter `NAME_len` after the pointer `NAME` is not passed but filled in with the number
of the array's elements. A pointer to a struct takes an array of the struct's dtype. Calls release
the interpreter lock.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

_NUMBERS: dict[str, tuple[Any, str]] = {
    "bool": (ctypes.c_bool, "?"),
    "uint8_t": (ctypes.c_uint8, "u1"),
    "int16_t": (ctypes.c_int16, "i2"),
    "int32_t": (ctypes.c_int32, "i4"),
    "uint32_t": (ctypes.c_uint32, "u4"),
    "int64_t": (ctypes.c_int64, "i8"),
    "uint64_t": (ctypes.c_uint64, "u8"),
    "double": (ctypes.c_double, "f8"),
    "void": (None, "V"),
}

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CONSTANT = re.compile(r"^#define\s+(\w+)\s+\(?(-?\d+)\)?\s*$", re.MULTILINE)
_ENUM = re.compile(r"\benum\s*\w*\s*\{([^}]*)\}")
_STRUCT = re.compile(r"\btypedef\s+struct\s*\w*\s*\{([^}]*)\}\s*(\w+)\s*;")
_FUNCTION = re.compile(r"\bCORE\s+([\w\s]+?\**)\s*(\w+)\s*\(([^)]*)\)\s*;")


class Library:
    """The functions, constants and structs of a compiled core, as attributes of these names."""

    structs: dict[str, np.dtype[Any]]
    """The dtype of each struct."""
    constants: dict[str, int]
    """The enumerators, and the macros that are integers."""

    def __init__(self, folder: Path) -> None:
        """Load `libcore.so` as `core.h` declares it; raise `ImportError` if it is not built."""
        text = _COMMENT.sub(" ", (folder / "core.h").read_text())
        try:
            self._loaded = ctypes.CDLL(str(folder / "libcore.so"))
        except OSError as error:
            why = f"the compiled core is missing or unusable ({error}): reinstall the package"
            raise ImportError(why) from error
        self.constants = {name: int(value) for name, value in _CONSTANT.findall(text)}
        for body in _ENUM.findall(text):
            self.constants |= _enumerators(body)
        self.structs = {name: _struct_dtype(body) for body, name in _STRUCT.findall(text)}
        for result, name, parameters in _FUNCTION.findall(text):
            setattr(self, name, self._function(name, result, parameters))
        for name, value in self.constants.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Refuse what the header does not declare."""
        raise AttributeError(f"core.h declares no {name!r}")

    def _function(self, name: str, result: str, parameters: str) -> Callable[..., Any]:
        """Return a function that checks its arguments and calls the one in the library."""
        try:
            function = self._loaded[name]
        except AttributeError as error:
            why = f"the compiled core is older than its header ({error}): reinstall the package"
            raise ImportError(why) from error
        function.restype = _NUMBERS[result][0]
        kinds, converters = [], list[Callable[[Any], Any] | None]()
        previous = ""
        for parameter in filter(None, map(str.strip, parameters.split(","))):
            kind, own = self._parameter(name, parameter, previous)
            previous = parameter.rsplit("*", 1)[-1].split()[-1]
            kinds.append(kind)
            converters.append(own)
        function.argtypes = kinds
        return _checked(name, function, converters)

    def _parameter(
        self, function: str, declared: str, previous: str
    ) -> tuple[Any, Callable[[Any], Any] | None]:
        """Return a parameter's C type, and its conversion; None if it is a length to fill in."""
        words = declared.replace("*", " * ").split()
        kind, name = words[-2 if "*" not in words else -3], words[-1]
        if "*" not in words:
            return _NUMBERS[kind][0], None if name == f"{previous}_len" else _number
        dtype = self.structs.get(kind) or np.dtype(_NUMBERS[kind][1])
        return ctypes.c_void_p, _pointer(f"{function}: {name}", dtype, "const" not in words)


def _number(value: Any) -> Any:
    return value


def _pointer(name: str, dtype: np.dtype[Any], writable: bool) -> Callable[[Any], int]:
    """Return the conversion of an array to the address of its first element."""

    def address(array: Any) -> int:
        if array.dtype != dtype:
            raise TypeError(f"{name} is an array of {array.dtype}, not of {dtype}")
        flags = array.flags
        if not flags.c_contiguous or (writable and not flags.writeable):
            raise TypeError(f"{name} has to be contiguous{' and writable' if writable else ''}")
        location: int = array.ctypes.data
        return location

    return address


def _checked(
    name: str, function: Any, converters: list[Callable[[Any], Any] | None]
) -> Callable[..., Any]:
    """Return a function that converts its arguments, fills in lengths and calls `function`."""
    expected = sum(convert is not None for convert in converters)

    def call(*arguments: Any) -> Any:
        if len(arguments) != expected:
            raise TypeError(f"{name} takes {expected} arguments, not {len(arguments)}")
        given = iter(arguments)
        passed: list[Any] = []
        argument: Any = None
        for convert in converters:
            if convert is None:
                passed.append(argument.size)
            else:
                argument = next(given)
                passed.append(convert(argument))
        return function(*passed)

    call.__name__ = name
    return call


def _enumerators(body: str) -> dict[str, int]:
    """Return the values of an enumeration: counted on from the last one that is given."""
    values: dict[str, int] = {}
    following = 0
    for item in filter(None, map(str.strip, body.split(","))):
        name, _, value = map(str.strip, item.partition("="))
        values[name] = int(value, 0) if value else following
        following = values[name] + 1
    return values


def _struct_dtype(body: str) -> np.dtype[Any]:
    """Return the dtype of a struct of numbers, with the padding of C."""
    fields = []
    for declaration in filter(None, map(str.strip, body.split(";"))):
        kind, names = declaration.split(None, 1)
        fields += [(name.strip(), _NUMBERS[kind][1]) for name in names.split(",")]
    return np.dtype(fields, align=True)
