"""Brackets around kernels of a Python program, each of which prints a timing line when closed.

Lines and environment variables are the same as those of `tracebigsim.h`. A thread has at most one
open bracket. A bracket opened within another replaces it, and the outer one prints no line; that,
and an end without a start, issues a BracketWarning. Lines are written whole, or buffered. Those
that cannot be written are counted and reported at exit.
"""

from __future__ import annotations

import atexit
import errno
import functools
import inspect
import os
import re
import stat
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from time import perf_counter_ns
from types import TracebackType
from typing import Final, ParamSpec, Self, SupportsFloat, TextIO, TypeVar

from tracebigsim.errors import BracketError, BracketWarning
from tracebigsim.writing import format_line, to_float, to_name

OUTPUT_VARIABLE: Final = "TRACEBIGSIM_OUTPUT"
"""Names the file that lines are appended to; %p in it is the process id, %h the host's name."""
BUFFER_VARIABLE: Final = "TRACEBIGSIM_BUFFER_BYTES"
"""Size of the buffer for lines, in bytes; without it, lines are not buffered."""
MOST_BUFFERED: Final = 65536
MOST_BUFFERED_FOR_PIPE: Final = 4096
"""Bytes that a pipe takes in one piece (PIPE_BUF of Linux)."""

Target = TextIO | Path | int | None
"""A stream, a file, which is opened for each write, the descriptor of a named pipe, or None: the
program was started with standard output closed."""


class Output:
    """Where the process writes its lines, the buffer for them, and how many are lost."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._target: Target = None
        self._buffered: list[str] = []
        self._buffered_bytes = 0
        self._is_torn = False
        self._lost = 0
        self._lost_reason = ""

    def set(self, target: str | os.PathLike[str] | TextIO | None) -> None:
        """Send further lines to a file, a stream, or (None) the default target."""
        if isinstance(target, int):
            raise TypeError("the output is a file's path, a text stream or None, not a number")
        self.flush()
        with self._lock:
            _close_pipes()
            self._is_torn = False
            self._target = (
                Path(target).absolute() if isinstance(target, str | os.PathLike) else target
            )

    def write(self, line: str) -> None:
        """Write a whole line at once, or buffer it."""
        with self._lock:
            target = self._current()
            limit = _buffer_limit(target)
            size = len(line.encode())
            if self._buffered_bytes and self._buffered_bytes + size > limit:
                self._write_buffered(target)
            if size > limit:
                self._write(target, line)
            else:
                self._buffered.append(line)
                self._buffered_bytes += size

    def flush(self) -> None:
        """Write the buffered lines."""
        with self._lock:
            if self._buffered:
                self._write_buffered(self._current())

    def finish(self) -> None:
        """Write the buffered lines, and report lost ones on standard error."""
        with self._lock:
            self.flush()
            if self._lost and sys.stderr:
                with suppress(OSError, ValueError):
                    lines = f"{self._lost} line{' is' if self._lost == 1 else 's are'} lost"
                    sys.stderr.write(f"tracebigsim: {lines}: {self._lost_reason}\n")
            self._lost = 0

    def hold(self) -> None:
        """Write the buffered lines, and keep other threads from writing until `release`."""
        self._lock.acquire()
        self.flush()

    def release(self) -> None:
        """Let other threads write again."""
        self._lock.release()

    def release_in_child(self) -> None:
        """Let a child write lines, which reports only its own, and flush its buffer at its end."""
        self._lost = 0
        self.release()
        _finish_at_end(self)

    def _current(self) -> Target:
        """Return where lines go now: standard output if a file cannot be opened."""
        target = self._target or _default_target()
        if isinstance(target, Path):
            target = _files[target] if target in _files else _first_opened(target)
            return sys.stdout if target is None else target
        return target

    def _write_buffered(self, target: Target) -> None:
        """Write the buffered lines and empty the buffer, also if they cannot be written."""
        text = "".join(self._buffered)
        self._buffered.clear()
        self._buffered_bytes = 0
        self._write(target, text)

    def _write(self, target: Target, text: str) -> None:
        """Write whole lines in one write, and count those that are lost."""
        data = b"\n" * self._is_torn + text.encode()
        rest, reason = _write(target, data)
        if written := data[: len(data) - len(rest)]:
            self._is_torn = not written.endswith(b"\n")
        if rest:
            self._lost += min(rest.count(b"\n"), text.count("\n"))
            self._lost_reason = reason


def _default_target() -> Target:
    """Return the file that the environment variable names, or standard output."""
    path = os.environ.get(OUTPUT_VARIABLE)
    if not path:
        return sys.stdout
    if "%" in path:
        path = path.replace("%p", str(os.getpid())).replace("%h", os.uname().nodename)
    return _file(path)


@functools.cache
def _file(path: str) -> Path:
    """Return a file's absolute path, which stays the same when the program changes its folder."""
    return Path(path).absolute()


_files: Final = dict[Path, Path | int | None]()
"""What lines for a file go to: the file, the descriptor of a named pipe, kept open so that readers
do not see the end, or None for standard output."""


def _first_opened(path: Path) -> Path | int | None:
    """Return what lines for a file go to; warn if it cannot be opened."""
    try:
        descriptor = _opened(path)
    except OSError as error:
        _files[path] = None
        _warn(f"{path}: {error.strerror}; lines go to standard output")
        return None
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        _files[path] = descriptor
    else:
        os.close(descriptor)
        _files[path] = path
    return _files[path]


def _opened(path: Path) -> int:
    """Return a descriptor that appends to a file."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)


def _close_pipes() -> None:
    """Forget the files, and close the named pipes, so that their readers find the end."""
    while _files:
        _, target = _files.popitem()
        if isinstance(target, int):
            os.close(target)


def _buffer_limit(target: Target) -> int:
    """Return how many bytes may be buffered for this target."""
    limit = _requested_bytes(os.environ.get(BUFFER_VARIABLE) or "0")
    if limit <= MOST_BUFFERED_FOR_PIPE:
        return limit
    is_file = isinstance(target, Path) and target.is_file()
    return min(limit, MOST_BUFFERED if is_file else MOST_BUFFERED_FOR_PIPE)


@functools.cache
def _requested_bytes(text: str) -> int:
    """Return the size of the buffer that is asked for; warn, once, if this is no number."""
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    _warn(f"{text}: {BUFFER_VARIABLE} is no number of bytes: lines are not buffered")
    return 0


def _write(target: Target, data: bytes) -> tuple[bytes, str]:
    """Write whole lines in one write; return those that are lost, and why."""
    try:
        if target is None:
            return data, os.strerror(errno.EBADF)
        if isinstance(target, int):
            return _write_rest(target, data)
        if isinstance(target, Path):
            descriptor = _opened(target)
            try:
                return _write_rest(descriptor, data)
            finally:
                os.close(descriptor)
        target.flush()
        stdout = sys.__stdout__
        if stdout is not None and target is stdout and stdout.encoding.lower() == "utf-8":
            # Python would keep what cannot be written, fail to write it again at its end, and exit
            # with an error
            return _write_rest(stdout.fileno(), data)
        target.write(data.decode())
        target.flush()
    except (OSError, ValueError) as error:  # ValueError: it is closed, or cannot encode the text
        return data, getattr(error, "strerror", None) or str(error)
    return b"", ""


def _write_rest(descriptor: int, data: bytes) -> tuple[bytes, str]:
    """Write with a single system call, unless the system cuts it short; return as `_write` does."""
    try:
        while data and (written := os.write(descriptor, data)):
            data = data[written:]
    except OSError as error:
        return data, error.strerror or str(error)
    return data, os.strerror(errno.EIO)


OUTPUT: Final = Output()


def _finish_at_end(output: Output) -> None:
    """Call `finish` when a process of `multiprocessing` ends, which runs no `atexit`.

    Such a process may forget its finalizers when it starts, so they are set again after a fork.
    """
    if util := sys.modules.get("multiprocessing.util"):
        util.Finalize(None, output.finish, exitpriority=0)
        util.register_after_fork(output, _finish_at_end)


atexit.register(OUTPUT.finish)
_finish_at_end(OUTPUT)
# Else a child might wait for a lock that was held, during the fork, by a thread that it lacks.
os.register_at_fork(
    before=OUTPUT.hold, after_in_parent=OUTPUT.release, after_in_child=OUTPUT.release_in_child
)


CHOSEN_VARIABLE: Final = "TRACEBIGSIM_CHOSEN"
"""Names a list of chosen SEBs: only brackets with their events and parameters print lines."""

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class _State(Enum):
    """Whether a thread's bracket is open, and whether its line is wanted."""

    CLOSED = 0
    LEFT_OUT = 1
    PRINTED = 2
    UNDECIDED = 3


class _ThisThread(threading.local):
    """The thread's bracket and its start time."""

    state = _State.CLOSED
    began_ns = 0
    with_block: bracket | None = None
    """The `with` block that opened the bracket; None if `start` did."""


_this_thread = _ThisThread()


def output(target: str | os.PathLike[str] | TextIO | None) -> None:
    """Send the lines of this process to a file (appending), a text stream, or (None) the default.

    Buffered lines are written to the former target first. A file that cannot be opened raises no
    error: a BracketWarning says that lines go to standard output.

    >>> tracebigsim.output("timings.txt")
    >>> with tracebigsim.bracket("kernel", 8):
    ...     total = sum(range(8))
    >>> tracebigsim.output(None)
    >>> from pathlib import Path
    >>> print(Path("timings.txt").read_text(), end="")
    TRACEBIGSIM: event:{ kernel }  time:{ ... }  params:{ 8.000000 }
    """
    OUTPUT.set(target)


def flush() -> None:
    """Write the lines buffered under TRACEBIGSIM_BUFFER_BYTES; also done at exit.

    >>> tracebigsim.flush()
    """
    OUTPUT.flush()


def start(event: str | None = None, *params: SupportsFloat) -> None:
    """Open this thread's bracket.

    If event and params are given, a bracket that is not on the list of chosen SEBs is skipped
    altogether; otherwise it is timed and its line left out. Raises TraceFileError for a list
    that cannot be read, and LineFormatError for an event that is no text and for params that are
    not numbers.

    >>> tracebigsim.start()
    >>> tracebigsim.end("kernel", 8)
    TRACEBIGSIM: event:{ kernel }  time:{ ... }  params:{ 8.000000 }
    """
    state = _State.UNDECIDED
    if event is not None:
        state = _State.PRINTED if _is_chosen(event, params) else _State.LEFT_OUT
    if _this_thread.state is not _State.CLOSED:
        _warn("start() within an open bracket, which is dropped")
    _this_thread.state, _this_thread.with_block = state, None
    _this_thread.began_ns = perf_counter_ns()


def end(event: str, *params: SupportsFloat) -> None:
    """Close this thread's bracket and print its timing line.

    The time is in seconds; `params` are the 0 to 20 numbers that it depends on. `start` has an
    example. Raises LineFormatError for what no line can hold, and TraceFileError if the list of
    chosen SEBs cannot be read; the bracket is closed all the same. Lines that cannot be written are
    counted, and reported on standard error at exit.
    """
    ended_ns = perf_counter_ns()
    state, _this_thread.state = _this_thread.state, _State.CLOSED
    if state is _State.CLOSED:
        _warn(f"end({event!r}) without start()")
    elif state is _State.PRINTED or (state is _State.UNDECIDED and _is_chosen(event, params)):
        OUTPUT.write(format_line(event, params, time_s=(ended_ns - _this_thread.began_ns) / 1e9))


class bracket:  # noqa: N801 - it is used as a function is
    """Time a `with` block, like `start` and `end`; a block that raises prints no line.

    Raises what `start` and `end` raise.

    >>> with tracebigsim.bracket("kernel", 8):
    ...     total = sum(range(8))
    TRACEBIGSIM: event:{ kernel }  time:{ ... }  params:{ 8.000000 }
    """

    __slots__ = ("_event", "_params")

    def __init__(self, event: str, *params: SupportsFloat) -> None:
        self._event = event
        self._params = params

    def __enter__(self) -> Self:
        """Open the bracket."""
        start(self._event, *self._params)
        _this_thread.with_block = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the bracket, with a line unless the block raised or another bracket replaced it."""
        is_own = _this_thread.with_block is self
        if kind is not None:
            _this_thread.state = _State.CLOSED if is_own else _this_thread.state
        elif is_own:
            end(self._event, *self._params)
        else:
            _warn(f"end({self._event!r}) without start()")


def bracketed(
    event: str, *params: str | Callable[..., SupportsFloat]
) -> Callable[[Callable[Arguments, Returned]], Callable[Arguments, Returned]]:
    """Bracket every call of a function.

    Each of `params` is the name of an argument of the function, or a function that takes the same
    arguments and returns a number. Raises BracketError for a name that no argument has, for
    what is neither, for a function without a signature, such as `max`, and for generators and
    coroutines, whose calls end before their work begins; LineFormatError for an event or a number
    of `params` that no line can hold.

    >>> @tracebigsim.bracketed("Cell::pairForces", "cutoff", lambda atoms, cutoff: len(atoms))
    ... def pair_forces(atoms, cutoff=2.5):
    ...     return sum(atoms)
    >>> forces = pair_forces([1.0, 2.0, 3.0])
    TRACEBIGSIM: event:{ Cell::pairForces }  time:{ ... }  params:{ 2.500000 3.000000 }
    """
    format_line(event, [0] * len(params), time_s=0)  # raises for what no line can hold

    def decorate(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError) as error:  # for a class method, or a built-in function
            raise BracketError(f"bracketed({event!r}): {error}") from error
        _check_function(event, function, signature, params)

        @functools.wraps(function)
        def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            positional, named = bound.args, bound.kwargs
            numbers = [
                bound.arguments[param] if isinstance(param, str) else param(*positional, **named)
                for param in params
            ]
            with bracket(event, *numbers):
                return function(*args, **kwargs)

        return call

    return decorate


def _check_function(
    event: str,
    function: Callable[..., object],
    signature: inspect.Signature,
    params: tuple[object, ...],
) -> None:
    """Raise BracketError for a function or parameters that `bracketed` cannot handle."""
    for param in params:
        if isinstance(param, str) and param not in signature.parameters:
            raise BracketError(f"bracketed({event!r}): the function has no argument {param!r}")
        if not isinstance(param, str) and not callable(param):
            neither = f"{param!r} is neither the name of an argument nor a function"
            raise BracketError(f"bracketed({event!r}): {neither}")
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    within = getattr(function, "__func__", type(function).__call__)  # of a static method or object
    if any(kind(function) or kind(within) for kind in kinds):
        raise BracketError(
            f"bracketed({event!r}): a generator or coroutine does its work after the call; "
            "bracket the work inside it"
        )


@functools.cache
def _kernels(path: str) -> frozenset[tuple[str, tuple[float, ...]]]:
    """Return the events of a list of chosen SEBs, each with its parameters."""
    from tracebigsim.chosen import read_chosen  # noqa: PLC0415 - most programs run without a list

    return frozenset((seb.event, seb.params) for seb in read_chosen(path))


def _is_chosen(event: str, params: tuple[SupportsFloat, ...]) -> bool:
    """Return whether this bracket is on the list of chosen SEBs, or there is no list."""
    name, path = to_name(event), os.environ.get(CHOSEN_VARIABLE)
    if not path:
        return True
    return (name, tuple(to_float(param, "a parameter") for param in params)) in _kernels(path)


def _warn(problem: str) -> None:
    """Issue a warning at the line of the program that called this module."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename == __file__:
        frame, level = frame.f_back, level + 1
    warnings.warn(problem, BracketWarning, stacklevel=level)
