"""A process that has rewritten logs once, and forks another such run for each line it reads.

A run lasts as long as its work, without the second of imports and of loading kernels: signals at
random moments then hit the work. It is told logs and timings on its command line, then commands as
lists in JSON; it answers with the run's process and, when that has ended, its exit status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from rewritelog.cli import main
from rewritelog.commands.durations import RewriteOptions
from rewritelog.rewriting.run import rewrite


def run(words: list[str]) -> None:
    """Be the command, with nowhere to print to."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    sys.argv = ["rewritelog", *words]
    main()


def tell(number: int) -> None:
    """Answer whoever started this process."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logs, timings = (Path(word) for word in sys.argv[1:])
    rewrite(logs, None, RewriteOptions(model="least-squares", timings=(timings,)))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                run(json.loads(line))
            finally:
                os._exit(99)
        tell(child)
        tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
