"""Loads compiled cores, and checks every call against their header; `core` is tracebigsim's own.

The header is the only declaration. Each of its functions becomes a method that takes numbers and
numpy arrays: a pointer parameter takes a C-contiguous array of that type, writable unless it is
`const`; a parameter `NAME_len` after the pointer `NAME` is not passed but filled in with the number
of the array's elements. A pointer to a struct takes an array of the struct's dtype. Calls release
the interpreter lock.
"""

from __future__ import annotations

import ctypes
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tracebigsim.errors import CoreError

_NUMBERS: dict[str, tuple[Any, str]] = {
    "bool": (ctypes.c_bool, "?"),
    "uint8_t": (ctypes.c_uint8, "u1"),
    "int16_t": (ctypes.c_int16, "i2"),
    "int32_t": (ctypes.c_int32, "i4"),
    "uint32_t": (ctypes.c_uint32, "u4"),
    "int64_t": (ctypes.c_int64, "i8"),
    "uint64_t": (ctypes.c_uint64, "u8"),
    "float": (ctypes.c_float, "f4"),
    "double": (ctypes.c_double, "f8"),
    "void": (None, "V"),
}

_ADDRESS = ctypes.POINTER(ctypes.c_uint8)

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_ENUM = re.compile(r"\benum\s*\w*\s*\{([^}]*)\}")
_STRUCT = re.compile(r"\btypedef\s+struct\s*\w*\s*\{([^}]*)\}\s*(\w+)\s*;")
_FUNCTION = re.compile(r"\bCORE\s+([\w\s]+?\**)\s*(\w+)\s*\(([^)]*)\)\s*;")


class Library:
    """A compiled core, with its functions and enumerators as attributes."""

    structs: dict[str, np.dtype[Any]]
    """The dtype of each struct."""

    def __init__(self, folder: Path) -> None:
        """Load `libcore.so`; raise `CoreError` if it is missing, or not built from `core.h`."""
        mend = "reinstall the package, or run tracebigsim/core/build.py in a checkout"
        try:
            header = (folder / "core.h").read_bytes()
            self._loaded = ctypes.CDLL(str(folder / "libcore.so"))
        except OSError as error:
            raise CoreError(
                f"the compiled core is missing or unusable ({error}): {mend}"
            ) from error
        try:
            built_from = ctypes.c_uint32.in_dll(self._loaded, "header_crc32").value
        except ValueError:
            built_from = None
        if built_from != zlib.crc32(header):
            raise CoreError(f"{folder}/libcore.so is older than its header: {mend}")
        text = _COMMENT.sub(" ", header.decode())
        constants = dict[str, int]()
        for body in _ENUM.findall(text):
            constants |= _enumerators(body)
        self.structs = {name: _struct_dtype(body) for body, name in _STRUCT.findall(text)}
        for result, name, parameters in _FUNCTION.findall(text):
            setattr(self, name, self._function(name, result, parameters))
        for name, value in constants.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Raise `AttributeError` for a name that the header does not declare."""
        raise AttributeError(f"core.h declares no {name!r}")

    def _function(self, name: str, result: str, parameters: str) -> Callable[..., Any]:
        """Return a function that checks its arguments and calls the one in the library."""
        function = self._loaded[name]
        function.restype = _NUMBERS[result][0]
        kinds = list[Any]()
        arrays, lengths = list[tuple[int, _Array]](), list[tuple[int, int]]()
        args, previous = 0, ""
        for place, parameter in enumerate(filter(None, map(str.strip, parameters.split(",")))):
            *words, parameter_name = parameter.replace("*", " * ").split()
            kind = words[words.index("*") - 1] if "*" in words else words[-1]
            if "*" in words:
                dtype = self.structs.get(kind) or np.dtype(_NUMBERS[kind][1])
                arrays.append(
                    (args, _Array(f"{name}: {parameter_name}", dtype, "const" not in words))
                )
            elif parameter_name == f"{previous}_len":
                lengths.append((place, args - 1))
            kinds.append(_ADDRESS if "*" in words else _NUMBERS[kind][0])
            args, previous = place + 1 - len(lengths), parameter_name
        function.argtypes = kinds
        return _checked(name, function, args, arrays, lengths)


class _Array(NamedTuple):
    """A parameter that takes an array."""

    name: str
    dtype: np.dtype[Any]
    is_writable: bool

    def address(self, array: Any) -> Any:
        """Return the address of a read-only or empty array; raise `TypeError` for an unfit one."""
        if not array.flags.c_contiguous or (self.is_writable and not array.flags.writeable):
            how = "contiguous and writable" if self.is_writable else "contiguous"
            raise TypeError(f"{self.name} has to be {how}")
        return ctypes.cast(array.ctypes.data, _ADDRESS)


def _checked(
    name: str,
    function: Any,
    expected: int,
    arrays: list[tuple[int, _Array]],
    lengths: list[tuple[int, int]],
) -> Callable[..., Any]:
    """Return a function that converts its arguments, fills in lengths and calls `function`.

    `arrays` has the indices of the arguments that are arrays; `lengths` has the places of the
    parameters to fill in, and the indices of their arrays. Fits make tens of thousands of calls of
    a microsecond, and `from_buffer` takes a fifth of the time of `array.ctypes`. It takes only
    contiguous, writable arrays that are not empty.
    """
    from_buffer = ctypes.c_uint8.from_buffer

    def call(*arguments: Any) -> Any:
        if len(arguments) != expected:
            raise TypeError(f"{name} takes {expected} arguments, not {len(arguments)}")
        passed = [*arguments]
        for place, declared in arrays:
            array = arguments[place]
            if array.dtype is not declared.dtype and array.dtype != declared.dtype:
                raise TypeError(
                    f"{declared.name} is an array of {array.dtype}, not of {declared.dtype}"
                )
            try:
                passed[place] = from_buffer(array)
            except (TypeError, ValueError):
                passed[place] = declared.address(array)
        for place, of in lengths:
            passed.insert(place, arguments[of].size)
        return function(*passed)

    call.__name__ = name
    return call


def _enumerators(body: str) -> dict[str, int]:
    """Return the values of an enumeration by name; one that is not given is the previous plus 1."""
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


core: Any = Library(Path(__file__).parent)
"""The functions, structs and constants that `core.h` declares."""
