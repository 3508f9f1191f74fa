"""Rewrites logs on one thread, with a clock at each stage: `… child_stages LOGS OUT`.

Prints JSON: the seconds of each stage, for each model.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

from rewritelog.commands.durations import RewriteOptions
from rewritelog.formats.bgtrace import params
from rewritelog.formats.files import InputFile
from rewritelog.models.fitted import Fitted
from rewritelog.output import files
from rewritelog.rewriting import block
from rewritelog.rewriting.block import RewriteTask
from rewritelog.rewriting.predicting import Predicted, Predictor
from rewritelog.rewriting.run import rewrite
from rewritelog.rewriting.statistics import BlockStatistics

STAGES: list[tuple[Any, str, str]] = [
    (RewriteTask, "rewrite", "block: what the stages below leave"),
    (InputFile, "read_into", "read the bytes of timelines and param files"),
    (block, "read_params", "params: open the files, join, sort"),
    (params, "scan", "params: scan the text"),
    (Predictor, "predict", "params: records of the block"),
    (Fitted, "prediction", "predict"),
    (block, "patch", "walk, map and patch"),
    (files, "write_at", "write"),
    (Predicted, "by_event", "counts and sums by event"),
    (BlockStatistics, "set_durations", "sums of durations"),
]
"""Owner, name and label of the functions that a stage is; each has its time less that of others."""


class Clock:
    """Adds up the time of stages, each without that of the stages within it."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._local = threading.local()

    def timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return the function with its time counted under the stage."""

        @wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            stack = self._local.__dict__.setdefault("stack", [])
            stack.append(0.0)
            began = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                took = time.perf_counter() - began
                self.seconds[stage] += took - stack.pop()
                if stack:
                    stack[-1] += took

        return counted


def stages(logs: Path, out: Path, options: RewriteOptions) -> dict[str, float]:
    """Rewrite twice, and return the seconds of each stage of the second time."""
    rewrite(logs, out, options)
    shutil.rmtree(out)
    clock = Clock()
    originals = [getattr(owner, name) for owner, name, _ in STAGES]
    for (owner, name, stage), function in zip(STAGES, originals, strict=True):
        setattr(owner, name, clock.timed(function, stage))
    began = time.perf_counter()
    rewrite(logs, out, options)
    total = time.perf_counter() - began
    for (owner, name, _), function in zip(STAGES, originals, strict=True):
        setattr(owner, name, function)
    shutil.rmtree(out)
    rest = total - sum(clock.seconds.values())
    seconds = {stage: clock.seconds[stage] for _, _, stage in STAGES}
    return {**seconds, "outside blocks: heads, fit, report": rest, "all": total}


if __name__ == "__main__":
    _logs, _out = map(Path, sys.argv[1:])
    _constant = RewriteOptions(dilation=0.5, jobs=1)
    _fitted = replace(_constant, model="least-squares", timings=(_logs / "timings.txt",))
    _seconds = {
        options.model_name: stages(_logs, _out, options) for options in (_constant, _fitted)
    }
    print(json.dumps(_seconds))
