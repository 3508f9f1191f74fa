"""Reads text in this process, on one core; prints JSON: `… child_reading FOLDER LOGS`."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.forms import FORMS, text_of
from rewritelog import open_logs
from rewritelog.formats.bgtrace.blocks import plan_blocks
from rewritelog.formats.bgtrace.params import list_params, read_params
from tracebigsim.files import scan_file
from tracebigsim.lines import LineTable, scan

TEXT_BYTES = 32 << 20
REPEATS = 7


def _measured(form: str, size_bytes: int, lines: int, job: Callable[[], object]) -> dict[str, Any]:
    job()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        job()
        times.append(time.perf_counter() - began)
    seconds = statistics.median(times)
    return {
        "form": form,
        "line_bytes": size_bytes / lines,
        "mb_s": size_bytes / 1e6 / seconds,
        "lines_s": lines / seconds,
    }


def _scan_file(path: Path) -> list[LineTable]:
    return list(scan_file(path))


def _forms(folder: Path) -> Iterator[dict[str, Any]]:
    for form in FORMS:
        text = text_of(form, TEXT_BYTES)
        lines = text.count(b"\n")
        table = scan(text)
        assert table.fault_count == 0, form
        yield _measured(form, len(text), lines, partial(scan, text))
        if form == "timing, 2 params":
            path = folder / "lines.txt"
            path.write_bytes(text)
            yield _measured(f"{form}, from a file", len(text), lines, partial(_scan_file, path))
            path.unlink()


def _param_files(logs: Path) -> dict[str, Any]:
    """Read a log set's param files as a rewrite does, block by block."""
    params = list_params(logs)
    texts = [params.path(pe).read_bytes() for pe in sorted(params.pes)]
    size, lines = sum(map(len, texts)), sum(text.count(b"\n") for text in texts)
    seconds = []
    for _ in range(REPEATS):
        spent = 0.0
        opened = open_logs(logs)
        for loaded in opened.load(chain.from_iterable(map(plan_blocks, opened.files))):
            began = time.perf_counter()
            read_params(params, loaded, strict=False)
            spent += time.perf_counter() - began
        seconds.append(spent)
    middle = statistics.median(seconds)
    return {
        "form": f"{len(texts)} `param.P` files, opened, read, scanned and sorted",
        "line_bytes": size / lines,
        "mb_s": size / 1e6 / middle,
        "lines_s": lines / middle,
    }


if __name__ == "__main__":
    _folder, _logs = map(Path, sys.argv[1:])
    print(json.dumps([*_forms(_folder), _param_files(_logs)]))
