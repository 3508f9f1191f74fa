"""The complete check of a log set: heads, blocks in parallel, then references between PEs."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from rewritelog.checking.blocks import Checked, CheckTask, check_block, find_not_sent
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.heads import Heads, read_heads
from rewritelog.checking.kernels.violations import MessageFlags
from rewritelog.checking.report import CheckReport
from rewritelog.cores import cores, in_order
from rewritelog.errors import Location
from rewritelog.logs.blocks import BLOCK_BYTES, Block, plan_blocks
from rewritelog.logs.logset import log_folder
from rewritelog.logs.params import ParamFolder, list_params
from rewritelog.logs.summary import Summary
from rewritelog.logs.timelines import TimelineFile
from rewritelog.progress import report_progress

_AHEAD = 4
"""The number of blocks in progress per thread."""

_FEWEST_FLAGS, _MOST_FLAGS = 1 << 10, 1 << 25
_BYTES_A_FLAG = 32

Work = tuple[TimelineFile, Block]


def check_logs(
    path: str | Path,
    params: Path | None = None,
    *,
    jobs: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> CheckReport:
    """Check a log set and its params, by default those in the same folder.

    All damage is in the report. Raise `RewriteLogError` if there is no log set at all, or if the
    folder of the params cannot be read.
    """
    folder = log_folder(path)
    given = list_params(params or folder)
    source = given if given.pes or params is not None else None
    heads = read_heads(folder)
    if heads.summary is None:
        unread = ("the timelines: the summary cannot be used",)
        return CheckReport(folder, None, None, 0, 0, heads.findings, unread)
    task = CheckTask(
        heads.summary, source, _message_flags(heads), secrets.randbits(64), block_bytes
    )
    threads = cores(jobs)
    checked = Checked(findings=heads.findings, whole=heads.whole)
    with ThreadPoolExecutor(threads) as executor:
        run = partial(_check_one, task)
        results = in_order(executor, run, _blocks(heads, block_bytes), _AHEAD * threads)
        size = sum(file.size_bytes for file in heads.files)
        read_bytes = 0
        for (_, block), done in zip(_blocks(heads, block_bytes), results, strict=True):
            checked.add(done)
            read_bytes += block.size_bytes
            report_progress("checking", read_bytes, size, "bytes")
        why = _not_checked(heads.summary, checked)
        if not why:
            _add_not_sent(task, heads, executor, threads, checked.findings)
    if source is not None:
        _check_folder(source, heads.summary, checked.findings)
    folder_of_params = None if source is None else source.folder
    counts = checked.sebs, checked.records
    return CheckReport(folder, heads.summary, folder_of_params, *counts, checked.findings, why)


def _blocks(heads: Heads, block_bytes: int) -> Iterator[Work]:
    for file in heads.files:
        for block in plan_blocks(file, block_bytes):
            yield file, block


def _check_one(task: CheckTask, work: Work) -> Checked:
    return check_block(task, *work)


def _find_one(task: CheckTask, work: Work) -> Findings:
    return find_not_sent(task, *work)


def _message_flags(heads: Heads) -> MessageFlags:
    """Return flags for the number of messages that the files may contain, up to a limit."""
    size = sum(file.size_bytes for file in heads.files)
    flags = min(max(_FEWEST_FLAGS, 1 << (size // _BYTES_A_FLAG).bit_length()), _MOST_FLAGS)
    return MessageFlags(np.zeros(flags, dtype=np.uint8), np.zeros(flags, dtype=np.uint8))


def _not_checked(summary: Summary, checked: Checked) -> tuple[str, ...]:
    """Return why the rule not-sent is not checked, as a tuple of at most one sentence."""
    if not checked.whole:
        return ("not-sent: some timelines cannot be read to their end",)
    if summary.log_version == 0 and summary.num_wth > 1:
        return ("not-sent: in logs of version 0 a message may be named by its node",)
    return ()


def _add_not_sent(
    task: CheckTask, heads: Heads, executor: Executor, threads: int, findings: Findings
) -> None:
    """Add findings of SEBs whose starting message no PE has sent, if there may be any."""
    if (task.message_flags.awaited <= task.message_flags.sent).all():
        return
    blocks = _blocks(heads, task.block_bytes)
    for found in in_order(executor, partial(_find_one, task), blocks, _AHEAD * threads):
        findings.add_all(found)


def _check_folder(source: ParamFolder, summary: Summary, findings: Findings) -> None:
    unknown = sorted(pe for pe in source.pes if pe >= summary.total_pes)
    problem = f"the log has PEs 0 to {summary.total_pes - 1}"
    found = [Finding(Location(source.path(pe)), problem) for pe in unknown[:SHOWN]]
    findings.add_many("param-pe", len(unknown), found)
