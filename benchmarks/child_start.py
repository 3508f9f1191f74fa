"""Rewrites the sample twice and prints when each step was done: `… child_start BEGAN OUT`.

`BEGAN` is the monotonic clock of the process that started this one.
"""

import sys
import time

SAMPLE = "sample_logs/cells"
_points = [("the interpreter, and its site packages", time.monotonic())]


def _done(step: str) -> None:
    _points.append((step, time.monotonic()))


def main() -> None:
    """Go through the steps of a run."""
    import json  # noqa: PLC0415 - imports are what is measured here
    import os  # noqa: PLC0415
    import shutil  # noqa: PLC0415

    began, out = float(sys.argv[1]), sys.argv[2]
    import typer  # noqa: F401, PLC0415

    _done("import typer")
    import numpy as np  # noqa: F401, PLC0415

    _done("import numpy")
    import rewritelog.cli  # noqa: F401, PLC0415

    _done("import the command line")
    from rewritelog.commands.durations import RewriteOptions  # noqa: PLC0415
    from rewritelog.rewriting.run import rewrite  # noqa: PLC0415

    _done("import the pipeline: construct, the core")
    rewrite(SAMPLE, out, RewriteOptions(dilation=0.5))
    _done("first rewrite")
    shutil.rmtree(out)
    rewrite(SAMPLE, out, RewriteOptions(dilation=0.5))
    _done("second rewrite, not part of a run")
    shutil.rmtree(out)
    _done("")
    print(json.dumps({"began": began, "points": _points}), flush=True)
    os._exit(0)  # as the command ends, which takes nothing to pieces


if __name__ == "__main__":
    main()
