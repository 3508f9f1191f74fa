"""Work grows as the input does, however the input is made: no file may hang a reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from growth import Job, check_growth
from logbuilder import bracket, message, seb, write_logs

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.core import core
from rewritelog.diffing.run import compare_logs
from rewritelog.formats.bgtrace.blocks import plan_blocks
from rewritelog.formats.bgtrace.records import distinct_names, records_of
from rewritelog.inspection.info import survey
from rewritelog.rewriting.run import rewrite
from tracebigsim.lines import scan

TEXTS: dict[str, Callable[[int], bytes]] = {
    "one line of keywords": lambda n: b"TRACEBIGSIM" * (n // 11),
    "keywords that count": lambda n: b"TRACEBIGSIM: " * (n // 13),
    "open braces": lambda n: b"TRACEBIGSIM: event:" + b"{" * n,
    "fields in names": lambda n: b"TRACEBIGSIM: event:{ " * (n // 21),
    "blanks": lambda n: b"TRACEBIGSIM:" + b" " * n + b"{",
    "digits": lambda n: b"1 TRACEBIGSIM k " + b"9" * n,
    "slow numbers": lambda n: b"1 TRACEBIGSIM k 1e-320 1e-321\n" * (n // 30),
    "names": lambda n: b"".join(b"1 TRACEBIGSIM k%06d 1\n" % k for k in range(n // 24)),
    "counters": lambda n: b"TRACEBIGSIM: event:{k} time:{1} PAPI:{" + b"1 " * (n // 2) + b"}",
    "newlines": lambda n: b"\n" * n,
    "glued lines": lambda n: b"1 TRACEBIGSIM k 1 TRACEBIGSIM\n" * (n // 31),
}


@pytest.mark.parametrize("kind", by_tier(TEXTS, [], ["names", "fields in names"]))
def test_texts(kind: str) -> None:
    def job_of(size: int) -> Job:
        text = TEXTS[kind](size)
        return lambda: scan(text)

    check_growth(job_of, 1 << 13)


def many_names(n: int) -> list[dict[str, Any]]:
    return [seb(k, k + 1, name=b"name %d" % k) for k in range(n)]


TIMELINES = {
    "names": many_names,
    "brackets": lambda n: [seb(0, n, events=[e for k in range(n) for e in bracket(k, k + 0.5)])],
    "messages": lambda n: [seb(0, 1, messages=[message(0.5)] * n)],
    "pointers": lambda n: [seb(0, 1, events=[{"type": 1, "r_time": 0.5, "data": 1}] * n)],
    "dependencies": lambda n: [seb(0, 1, backward=[0] * n, forward=[0] * n)],
}


@pytest.mark.long
@pytest.mark.parametrize("timeline_of", TIMELINES.values(), ids=TIMELINES)
def test_timelines(timeline_of: Callable[[int], list[dict[str, Any]]], tmp_path: Path) -> None:
    def job_of(size: int) -> Job:
        folder = tmp_path / str(size)
        if not folder.exists():
            write_logs(folder, [timeline_of(size)])
        logs = rewritelog.open_logs(folder)
        options = RewriteOptions(dilation=2, jobs=1, dilation_for=(("x*", 3.0),))

        def work() -> None:
            survey(logs)
            rewrite(logs, None, options)
            compare_logs(logs, logs)

        return work

    check_growth(job_of, 500)


@pytest.mark.slow
def test_names_cannot_be_chosen_to_meet_in_one_slot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that the hash alone, with the key 0 for each table, would put into one slot."""
    numbers = np.arange(1, 3_000_000, dtype=np.uint64)
    numbers *= np.uint64(11_400_714_819_323_198_485)
    letters = np.stack([(numbers >> np.uint64(7 * k)) & np.uint64(127) for k in range(9)]) + 128
    mixed = np.full(len(numbers), 9, dtype=np.uint64)  # the length, with the key 0
    for word in np.split(letters.astype(np.uint64), [8]):
        for place, letter in enumerate(word):
            mixed ^= letter << np.uint64(8 * place)
        for _ in range(2):
            mixed ^= mixed >> np.uint64(32)
    slots = 2048  # of the table of up to 1023 names
    meeting = np.flatnonzero((mixed >> np.uint64(32)) & np.uint64(slots - 1) == 133)
    chosen = letters[:, meeting[: slots // 2 - 1]].T.astype(np.uint8)
    logs = rewritelog.open_logs(
        write_logs(tmp_path / "in", [[seb(0, 1, name=name.tobytes()) for name in chosen]])
    )
    block = next(logs.load(plan_blocks(logs.files[0])))
    number_texts, tables = core.number_texts, []

    def number_and_keep(*args: Any) -> int:
        tables.append(args[5])
        return int(number_texts(*args))

    monkeypatch.setattr(core, "number_texts", number_and_keep)
    assert len(distinct_names(records_of(block).sebs)[0]) == len(chosen) > 900
    (table,) = tables
    taken = np.flatnonzero(table != 0)
    assert len(table) == slots
    longest = max(map(len, np.split(taken, np.flatnonzero(np.diff(taken) > 1) + 1)))
    assert longest < 100
