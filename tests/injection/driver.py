"""A process that forks a command for each line that it reads, with one fault armed in each.

It runs with the shim preloaded, and is told commands that warm it up. A line is JSON: the command's
words, the call that fails, its number, the errno (0: half is done), the folder of the files that
count, and a file for what is printed. It answers with the exit status and the number of such calls.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
from pathlib import Path
from typing import Any

from rewritelog.cli import main


def run(words: list[str], printed: str) -> None:
    """Be the command, and print into a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for stream in (1, 2):
        os.dup2(out, stream)
    sys.argv = ["rewritelog", *words]
    main()


def ended(case: dict[str, Any], shim: ctypes.CDLL) -> tuple[int, int]:
    """Run a case in a process of its own; return how that ended, and how often the call came."""
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    seen = ctypes.c_int.from_buffer(shared)
    child = os.fork()
    if child == 0:
        try:
            call, folder = case["call"].encode(), os.fsencode(case["folder"])
            shim.arm(call, folder, case["number"], case["errno"], ctypes.byref(seen))
            run(case["words"], case["printed"])
        finally:
            os._exit(99)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code, seen.value


if __name__ == "__main__":
    import rewritelog.rewriting.run  # noqa: F401 - so that no child has to
    from rewritelog.commands.durations import RewriteOptions
    from rewritelog.rewriting.run import rewrite

    logs, timings = map(Path, sys.argv[1:])
    rewrite(logs, None, RewriteOptions(model="least-squares", timings=(timings,)))
    armed = ctypes.CDLL(None)
    for line in sys.stdin:
        sys.stdout.write("{} {}\n".format(*ended(json.loads(line), armed)))
        sys.stdout.flush()
