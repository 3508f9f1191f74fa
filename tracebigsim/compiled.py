"""How every kernel of this project is compiled: cached on disk, and without holding the GIL.

rewritelog's kernels use it too; it stands here because tracebigsim imports nothing of rewritelog.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


class NoKernelCacheWarning(UserWarning):
    """No folder for compiled kernels can be written, so each run compiles them anew."""


_warned = False


def kernel(function: Function) -> Function:
    """Compile a function over arrays; division by zero follows IEEE 754, as in numpy.

    Where numba finds no folder that it can write a cache to, the kernel is compiled in memory and
    one warning is given.
    """
    try:
        return _fresh(_njit(function, cache=True), function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
    _warn_once()
    return _njit(function, cache=False)


def inner(function: Function) -> Function:
    """Compile a function that only kernels call and that makes no array.

    It counts no references to its arrays, whose owner the calling kernel is: counting them is
    atomic, and cost nine tenths of the time of a walk over small SEBs.
    """
    return _once_a_type(
        _njit(function, cache=False, _nrt=False, no_cpython_wrapper=True, forceinline=True)
    )


def _once_a_type(compiled: Function) -> Function:
    """Have a function compiled once for each type of its arguments, not for each constant.

    numba takes a constant or a member of an enumeration among the arguments of a call for a type
    of its own: a third of what the first run compiled was that. Once inlined, a constant is known
    to LLVM in any case.
    """
    template = getattr(compiled, "get_call_template", None)
    if template is not None:  # NUMBA_DISABLE_JIT leaves functions as they are
        compiled.get_call_template = lambda args, kws: template(  # type: ignore[attr-defined]
            tuple(map(_general, args)), kws
        )
    return compiled


def _general(argument: Any) -> Any:
    """Return the type that an argument's type is a special case of."""
    argument = numba.types.unliteral(argument)  # type: ignore[no-untyped-call]
    return argument.dtype if isinstance(argument, numba.types.IntEnumMember) else argument


def _fresh(compiled: Function, function: Function) -> Function:
    """Make the kernel's cache depend on all sources that it may have been compiled from.

    numba itself looks at the kernel's own file alone, and would go on running a kernel whose inner
    functions have changed, which stand in other files: of this folder, or of any folder `kernels`
    of the kernel's package.
    """
    stamps = _stamps(_package_of(Path(function.__code__.co_filename)))
    cache_file: Any = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = stamps  # noqa: SLF001 - numba has no public way
    return compiled


def _package_of(path: Path) -> Path:
    """Return the folder of the top package that a module belongs to."""
    folder = path.parent
    while (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder


@cache
def _stamps(package: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time and size of each source that kernels of a package are compiled from."""
    own = Path(__file__).parent
    sources = {*own.glob("*.py"), *package.glob("kernels/*.py"), *package.glob("*/kernels/*.py")}
    found = ((path, path.stat()) for path in sorted(sources))
    return tuple((str(path), status.st_mtime_ns, status.st_size) for path, status in found)


def _njit(function: Function, **options: bool) -> Function:
    """Compile without the wrapper that would let C code call the function: none does."""
    compile_it: Any = numba.njit
    compiled: Function = compile_it(
        nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
    )(function)
    return compiled


def _warn_once() -> None:
    global _warned  # noqa: PLW0603 - one warning a process is the point
    if not _warned:
        _warned = True
        warnings.warn(
            "no writable folder for compiled kernels: every run compiles them anew; "
            "set NUMBA_CACHE_DIR to a folder that can be written",
            NoKernelCacheWarning,
            stacklevel=4,
        )
