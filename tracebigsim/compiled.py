"""How the kernels of tracebigsim and rewritelog run: compiled, or over little input as they are.

A kernel is a Python function over arrays. `kernel` makes one that numba compiles when it is first
called, and `inner` a function that kernels call. Compiled kernels are kept on disk and hold no GIL.

Importing numba takes longer than a small input takes without it, and compiling takes seconds. A
kernel that says how long it takes uncompiled therefore runs so, until all of them together have
taken as long as compiled ones would have taken to be ready. Both ways run the same source. The
environment variable TRACEBIGSIM_KERNELS chooses one: `compiled`, `plain`, or `auto`.

This is a public module, which rewritelog uses: tracebigsim imports nothing of rewritelog.
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

_WAYS = ("auto", "compiled", "plain")
_LOG_NS_PER_BYTE = 600
"""What the quickest of the passes over a log takes uncompiled."""

WARM_S, COLD_S = 0.5, 8.0
"""How long kernels may run uncompiled where compiled ones are on disk, and where they are not.

About what it takes to import numba and load the first kernels, and to compile those of a command.
"""


class _State:
    """What this process has decided so far."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.functions: dict[int, FunctionType] = {}
        """The functions that kernels may call, by id; in the order of their definition."""
        self.kernels: list[Kernel] = []
        self.dispatchers: dict[int, Any] = {}
        """What numba compiles in place of each of these functions and kernels, by id."""
        self.views: dict[int, dict[str, Any]] = {}
        """A module's globals with dispatchers in place of functions, by the id of its globals."""
        self.compiled_forms: dict[int, str] = {}
        """The modules that say what numba compiles in place of functions, by the functions' id."""
        self.plain_s = 0.0
        """How long uncompiled kernels have taken, by their rates."""
        self.expected_s = 0.0
        """How long all are to take, as far as that is known before."""

    def takes_plain(self, called: Kernel, seconds: float) -> bool:
        """Return whether a kernel that takes so long uncompiled runs so; count the time if so."""
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
    """What this thread is doing."""

    plain = False
    """Whether it is inside an uncompiled kernel; those that it calls run uncompiled too."""


_state = _State()
_running = _Running()


def expect(size_bytes: int) -> None:
    """Say that a log of this size is to be read, so that kernels that pay off compile at once."""
    expect_s(1e-9 * _LOG_NS_PER_BYTE * size_bytes)


def expect_s(seconds: float) -> None:
    """Say how long kernels that are about to be called would take uncompiled, together."""
    _state.expected_s = max(_state.expected_s, seconds)


def start_over() -> None:
    """Choose how kernels run as a new process does, as if none had been called."""
    with _state.lock:
        _state.plain_s = _state.expected_s = 0.0
        for one in _state.kernels:
            one.start_over()


def way() -> str:
    """Return how kernels are to run: `auto`, `compiled` or `plain`."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "plain"
    chosen = os.environ.get("TRACEBIGSIM_KERNELS", "auto")
    if chosen not in _WAYS:
        raise ValueError(f"TRACEBIGSIM_KERNELS: {chosen!r} is invalid; valid: {', '.join(_WAYS)}")
    return chosen


class Kernel:
    """A function over arrays that runs compiled or as it is."""

    def __init__(self, function: FunctionType, ns_per_byte: float | None) -> None:
        update_wrapper(self, function)
        self.function = function
        self.ns_per_byte = ns_per_byte
        self._dispatcher: Any = None
        _state.kernels.append(self)

    def __call__(self, *args: Any) -> Any:
        """Run it."""
        if _running.plain:
            return self.function(*args)
        chosen = way()
        if chosen == "plain":
            return self.plain(*args)
        if chosen == "auto" and self._dispatcher is None and self._is_quick(args[0]):
            return self.plain(*args)
        return self.compiled(*args)

    def _is_quick(self, first: Any) -> bool:
        """Return whether it takes less time uncompiled, given its first argument."""
        if self.ns_per_byte is None:
            return False
        return _state.takes_plain(self, 1e-9 * self.ns_per_byte * _size_bytes(first))

    def plain(self, *args: Any) -> Any:
        """Run it uncompiled; numbers overflow and divide by zero as they do compiled."""
        import numpy as np  # noqa: PLC0415 - programs with brackets import none

        _running.plain = True
        try:
            with np.errstate(all="ignore"):
                return self.function(*args)
        finally:
            _running.plain = False

    @property
    def compiled(self) -> Any:
        """The compiled function, a dispatcher of numba."""
        if self._dispatcher is None:
            with _state.lock:
                _link()
                dispatcher = _state.dispatchers[id(self)]
            self._dispatcher = dispatcher
        return self._dispatcher

    def start_over(self) -> None:
        """Choose anew how to run it."""
        self._dispatcher = None
        vars(self).pop("on_disk", None)

    @cached_property
    def cache(self) -> KernelCache:
        """Where its compiled forms are kept."""
        return KernelCache(self.function, kernel_digest(self.function, _state.compiled_forms))

    @cached_property
    def on_disk(self) -> bool:
        """Whether it has been compiled by an earlier run."""
        return self.cache.holds_any()


def _size_bytes(first: Any) -> int:
    """Return the size of an array, or of the first one in a structure."""
    while isinstance(first, tuple):
        first = first[0]
    size: int = first.nbytes
    return size


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(*, ns_per_byte: float) -> Callable[[Function], Function]: ...


def kernel(function: Any = None, *, ns_per_byte: float | None = None) -> Any:
    """Make a kernel of a function; division by zero follows IEEE 754, as in numpy.

    `ns_per_byte` is what it takes uncompiled, about, for each byte of its first argument: an array,
    or a structure that begins with one. A kernel whose time is another matter is always compiled.
    """
    if function is None:
        return lambda given: Kernel(given, ns_per_byte)
    return Kernel(function, ns_per_byte)


def inner(function: Function) -> Function:
    """Let kernels call a function, which makes no array."""
    _state.functions[id(function)] = cast("FunctionType", function)
    return function


def compiled_form_in(module: str) -> Callable[[Function], Function]:
    """Say which module gives a function its compiled form; it is imported before any is needed."""

    def register(function: Function) -> Function:
        _state.compiled_forms[id(function)] = module
        return function

    return register


def _link() -> None:
    """Give every function and kernel that is defined by now its dispatcher."""
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
    """Return a copy of a function that finds dispatchers where the original finds functions."""
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
    """Return what compiles a function that only kernels call.

    It counts no references to its arrays, whose owner the calling kernel is: counting them is
    atomic, and cost nine tenths of the time of a walk over small SEBs. It is compiled once for each
    type of its arguments, and not for each constant or member of an enumeration among them, which
    numba takes for types of their own: a third of what the first run compiled was that. Once
    inlined, a constant is known to LLVM in any case.
    """
    dispatcher = _njit(function, _nrt=False, no_cpython_wrapper=True, forceinline=True)
    template = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: template(tuple(map(_general, args)), kws)
    return dispatcher


def _general(argument: Any) -> Any:
    """Return the type that an argument's type is a special case of."""
    from numba import types  # noqa: PLC0415 - only where kernels compile

    argument = types.unliteral(argument)  # type: ignore[no-untyped-call]
    return argument.dtype if isinstance(argument, types.IntEnumMember) else argument


def _njit(function: FunctionType, **options: bool) -> Any:
    """Compile without the wrapper that would let C code call the function: none does."""
    from numba import njit  # noqa: PLC0415 - only where kernels compile

    compile_it: Any = njit
    return compile_it(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)


@cache
def _import_numba() -> None:
    """Import numba, which must not read its configuration from the working directory.

    With PyYAML, numba takes options from the file `.numba_config.yaml` of the folder that it is run
    in, among them where it finds pickled kernels; it looks again whenever it compiles. It does
    nothing with a file that it has no parser for.
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
