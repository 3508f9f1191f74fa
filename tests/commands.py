"""The commands, run in this process with the streams and the exit codes that their own would have.

A process of their own takes a second to import and to load kernels. Only tests of processes need
one: signals, environments, streams that are no files, start-up; `faulty.started` starts it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

from rewritelog.cli import process
from tracebigsim.__main__ import main as print_folder

Done = CompletedProcess[str]
"""What a command printed, and its exit code."""


def rewritelog(
    *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Done:
    """Run `rewritelog` with these words, in a folder and with more of an environment."""
    return _run("rewritelog", words, _rewritelog_main, cwd, env)


def tracebigsim(*words: object, cwd: Path | None = None) -> Done:
    """Run `tracebigsim` with these words, in a folder."""
    ours = {"stats", "merge"}.intersection(map(str, words))
    return _run("tracebigsim", words, _rewritelog_main if ours else print_folder, cwd, None)


def _rewritelog_main() -> None:
    plain: Any = sys.stderr
    sys.stderr = process.EscapedMessages(plain.detach(), "utf-8", "backslashreplace")
    sys.exit(process.exit_code())


def _run(
    name: str,
    words: tuple[object, ...],
    main: Callable[[], None],
    cwd: Path | None,
    env: Mapping[str, str] | None,
) -> Done:
    command = [name, *map(str, words)]
    with (
        mock.patch.object(sys, "argv", command),
        mock.patch.object(sys.modules["__main__"], "__package__", None),  # click's name for usage
        mock.patch.dict(os.environ, env or {}),
        chdir(cwd or Path.cwd()),
        _streams() as (out, errors),
    ):
        try:
            main()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        printed = [stream.getvalue().decode() for stream in (out, errors)]
    return CompletedProcess(command, code, *printed)


@contextmanager
def _streams() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    """Put streams of bytes in place of the three standard ones; yield the two written to."""
    out, errors = io.BytesIO(), io.BytesIO()
    with (
        Path(os.devnull).open(encoding="utf-8") as nothing,
        mock.patch.object(sys, "stdin", nothing),
        mock.patch.object(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8")),
        mock.patch.object(sys, "stderr", io.TextIOWrapper(errors, encoding="utf-8")),
    ):
        yield out, errors
