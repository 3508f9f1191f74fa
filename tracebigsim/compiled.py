"""How kernels of tracebigsim and rewritelog run: compiled, or as plain Python for small inputs.

A kernel is a Python function over arrays. The decorator `kernel` makes one that numba compiles at
its first call, `inner` a function that kernels call. Compiled kernels are cached on disk and run
without the GIL.

Importing numba takes longer than processing a small input without it, and compiling takes seconds.
A kernel with a known uncompiled rate therefore runs uncompiled, until all such kernels together
have taken as long as getting compiled ones ready would have taken. Both ways run the same source.
The environment variable TRACEBIGSIM_KERNELS chooses: `compiled`, `plain`, or `auto`.

This is a public module, which rewritelog uses; tracebigsim imports nothing from rewritelog.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar, cast, overload

from tracebigsim.kernel_cache import KernelCache, NoKernelCacheWarning
from tracebigsim.kernel_digest import kernel_digest

__all__ = [
    "Kernel",
    "NoKernelCacheWarning",
    "compiled_form_in",
    "expect",
    "expect_s",
    "inner",
    "kernel",
    "start_over",
]

Function = TypeVar("Function", bound=Callable[..., Any])

PlainSeconds = Callable[..., float]
"""A function of a kernel's arguments that returns its approximate uncompiled time in seconds."""

_WAYS = ("auto", "compiled", "plain")
_LOG_NS_PER_BYTE = 600
"""Nanoseconds per byte that the fastest pass over a log takes uncompiled."""

WARM_S, COLD_S = 0.5, 8.0
"""Seconds that kernels may run uncompiled if compiled ones are on disk, and if they are not.

About the time to import numba and load the first kernels, and to compile those of a command.
"""


class _State:
    """What this process has decided so far."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.functions: dict[int, FunctionType] = {}
        """The functions that kernels may call, by id, in order of definition."""
        self.kernels: list[Kernel] = []
        self.dispatchers: dict[int, Any] = {}
        """The numba dispatcher of each of these functions and of each kernel, by id."""
        self.views: dict[int, dict[str, Any]] = {}
        """Each module's globals with dispatchers in place of functions, by the id of its
        globals."""
        self.compiled_forms: dict[int, str] = {}
        """The modules that define the compiled forms of functions, by the functions' ids."""
        self.plain_s = 0.0
        """Seconds that uncompiled kernels have taken, computed from their rates."""
        self.expected_s = 0.0
        """Seconds that all kernels would take uncompiled, as far as announced by `expect`."""

    def takes_plain(self, called: Kernel, seconds: float) -> bool:
        """Return whether a call of so many uncompiled seconds runs uncompiled; if so, count it."""
        with self.lock:
            total_s = max(self.plain_s + seconds, self.expected_s)
            if total_s > WARM_S and called.on_disk:
                return False
            if total_s > COLD_S:
                self.plain_s = math.inf  # from now on, all are compiled
                return False
            self.plain_s += seconds
            return True


class _Running(threading.local):
    """The state of this thread."""

    plain = False
    """Whether the thread is inside an uncompiled kernel, whose callees run uncompiled too."""


_state = _State()
_running = _Running()


def expect(size_bytes: int) -> None:
    """Announce a log of this size, so that kernels whose compilation pays off compile at once."""
    expect_s(1e-9 * _LOG_NS_PER_BYTE * size_bytes)


def expect_s(seconds: float) -> None:
    """Announce the total uncompiled time, in seconds, of kernels that are about to be called."""
    _state.expected_s = max(_state.expected_s, seconds)


def start_over() -> None:
    """Forget all decisions on how kernels run, as in a new process."""
    with _state.lock:
        _state.plain_s = _state.expected_s = 0.0
        for one in _state.kernels:
            one.start_over()


def way() -> str:
    """Return how kernels should run: `auto`, `compiled` or `plain`."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "plain"
    chosen = os.environ.get("TRACEBIGSIM_KERNELS", "auto")
    if chosen not in _WAYS:
        raise ValueError(f"TRACEBIGSIM_KERNELS: {chosen!r} is invalid; valid: {', '.join(_WAYS)}")
    return chosen


class Kernel:
    """A function over arrays that runs compiled or as plain Python."""

    def __init__(self, function: FunctionType, plain_s: PlainSeconds | None) -> None:
        update_wrapper(self, function)
        self.function = function
        self.plain_s = plain_s
        self._dispatcher: Any = None
        _state.kernels.append(self)

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, compiled or not."""
        if _running.plain:
            return self.function(*args)
        chosen = way()
        if chosen == "plain":
            return self.plain(*args)
        if chosen == "auto" and self._dispatcher is None and self._is_quick(args):
            return self.plain(*args)
        return self.compiled(*args)

    def _is_quick(self, args: tuple[Any, ...]) -> bool:
        """Return whether a call with these arguments runs uncompiled; if so, count its time."""
        return self.plain_s is not None and _state.takes_plain(self, self.plain_s(*args))

    def plain(self, *args: Any) -> Any:
        """Run the kernel uncompiled, with overflow and division by zero as in compiled code."""
        import numpy as np  # noqa: PLC0415 - programs with brackets import none

        _running.plain = True
        try:
            with np.errstate(all="ignore"):
                return self.function(*args)
        finally:
            _running.plain = False

    @property
    def compiled(self) -> Any:
        """The compiled function, a numba dispatcher."""
        if self._dispatcher is None:
            with _state.lock:
                _link()
                dispatcher = _state.dispatchers[id(self)]
            self._dispatcher = dispatcher
        return self._dispatcher

    def start_over(self) -> None:
        """Forget how the kernel was last run."""
        self._dispatcher = None
        vars(self).pop("on_disk", None)

    @cached_property
    def cache(self) -> KernelCache:
        """The cache of the kernel's compiled forms."""
        return KernelCache(self.function, kernel_digest(self.function, _state.compiled_forms))

    @cached_property
    def on_disk(self) -> bool:
        """Whether an earlier run has compiled the kernel and cached the result."""
        return self.cache.holds_any()


def _in_proportion(ns_per_byte: float | None) -> PlainSeconds | None:
    """Return the function for an uncompiled time in proportion to the first argument's size."""
    if ns_per_byte is None:
        return None
    return lambda *args: 1e-9 * ns_per_byte * _size_bytes(args[0])


def _size_bytes(first: Any) -> int:
    """Return the size of an array, or of the first array of a structure."""
    while isinstance(first, tuple):
        first = first[0]
    size: int = first.nbytes
    return size


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, ns_per_byte: float) -> Callable[[Function], Function]: ...


@overload
def kernel(*, plain_s: PlainSeconds) -> Callable[[Function], Function]: ...


def kernel(
    function: Any = None, *, ns_per_byte: float | None = None, plain_s: PlainSeconds | None = None
) -> Any:
    """Turn a function into a kernel; division by zero follows IEEE 754, as in numpy.

    `ns_per_byte` is its approximate uncompiled time for each byte of its first argument: an array,
    or a structure that begins with one. `plain_s` computes that time, in seconds, from all of its
    arguments. A kernel without either is always compiled.
    """
    if function is None:
        return lambda given: Kernel(given, plain_s or _in_proportion(ns_per_byte))
    return Kernel(function, plain_s)


def inner(function: Function) -> Function:
    """Let kernels call a function, which must not create arrays."""
    _state.functions[id(function)] = cast("FunctionType", function)
    return function


def compiled_form_in(module: str) -> Callable[[Function], Function]:
    """Name the module that defines a function's compiled form, imported before it is needed."""

    def register(function: Function) -> Function:
        _state.compiled_forms[id(function)] = module
        return function

    return register


def _link() -> None:
    """Create the dispatchers of all functions and kernels defined so far."""
    _import_numba()
    for module in set(_state.compiled_forms.values()):
        import_module(module)
    for function in list(_state.functions.values()):
        if id(function) not in _state.dispatchers:
            _state.dispatchers[id(function)] = _inner_dispatcher(_in_view(function))
    for one in list(_state.kernels):
        if id(one) not in _state.dispatchers:
            dispatcher = _njit(_in_view(one.function))
            dispatcher._cache = one.cache  # noqa: SLF001 - numba has no public way
            _state.dispatchers[id(one)] = dispatcher
    for view in _state.views.values():
        for name, value in view.items():
            view[name] = _state.dispatchers.get(id(value), value)


def _in_view(function: FunctionType) -> FunctionType:
    """Return a copy of a function in whose globals dispatchers replace functions."""
    own = function.__globals__
    view = _state.views.setdefault(id(own), {})
    for name, value in own.items():
        view.setdefault(name, value)
    copy = FunctionType(
        function.__code__, view, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _inner_dispatcher(function: FunctionType) -> Any:
    """Return the numba dispatcher of a function that only kernels call.

    It counts no references to its arrays, which the calling kernel owns: counting is atomic, and
    took nine tenths of the time of a walk over small SEBs. It is compiled once for each type of
    its arguments, and not for each constant or enumeration member among them, which numba treats
    as types of their own: a third of what the first run compiled were such duplicates. After
    inlining, LLVM knows a constant in any case.
    """
    dispatcher = _njit(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template(tuple(map(_general, args)), kws)
    return dispatcher


def _general(argument: Any) -> Any:
    """Return the general type of an argument whose type is that of a constant or enumeration."""
    from numba import types  # noqa: PLC0415 - only where kernels compile

    argument = types.unliteral(argument)  # type: ignore[no-untyped-call]
    return argument.dtype if isinstance(argument, types.IntEnumMember) else argument


def _njit(function: FunctionType, **options: bool) -> Any:
    """Compile without the wrapper for calls from C code, which are never made."""
    from numba import njit  # noqa: PLC0415 - only where kernels compile

    compile_it: Any = njit
    return compile_it(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)


@cache
def _import_numba() -> None:
    """Import numba without letting it read a configuration from the working directory.

    If PyYAML is installed, numba reads options from `.numba_config.yaml` in the working directory,
    among them the folder of pickled kernels, and reads them again whenever it compiles. Without a
    parser for it, numba ignores the file.
    """
    absent = object()
    parser = sys.modules.get("yaml", absent)
    sys.modules["yaml"] = cast("Any", None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from numba.core import config  # noqa: PLC0415 - only where kernels compile
            from numba.extending import typeof_impl  # noqa: PLC0415
    finally:
        if parser is absent:
            del sys.modules["yaml"]
        else:
            sys.modules["yaml"] = cast("Any", parser)
    vars(config)["_config_fname"] = os.devnull
    config.reload_config()  # type: ignore[no-untyped-call]
    typeof_impl.register(Kernel)(lambda one, context: typeof_impl(one.compiled, context))
