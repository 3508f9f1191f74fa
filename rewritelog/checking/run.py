"""The complete check of a log set: heads, blocks, then references between PEs, then params."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import singledispatch
from pathlib import Path
from typing import Any

from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.heads import Heads, read_heads
from rewritelog.checking.message_flags import MessageFlags
from rewritelog.checking.passes import Checked, CheckPass, CheckTask, NotSentPass
from rewritelog.checking.report import CheckReport
from rewritelog.checking.trace_rules import check_traces
from rewritelog.cores import limited_to
from rewritelog.errors import Location
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES, Block, plan_blocks
from rewritelog.formats.bgtrace.logset import log_folder
from rewritelog.formats.bgtrace.params import ParamFolder, list_params
from rewritelog.formats.bgtrace.summary import Summary
from rewritelog.formats.traces import Traces
from rewritelog.running.engines import map_blocks, map_over


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
    with limited_to(jobs):
        return _check(log_folder(path), params, block_bytes)


def _check(folder: Path, params: Path | None, block_bytes: int) -> CheckReport:
    given = list_params(params or folder)
    source = given if given.pes or params is not None else None
    heads = read_heads(folder)
    if heads.summary is None:
        unread = ("the timelines: the summary cannot be used",)
        return CheckReport(folder, None, None, 0, 0, heads.findings, unread)
    files = {file.index: file for file in heads.files}
    task = CheckTask(heads.summary, files, source, secrets.randbits(64), block_bytes)
    size = sum(file.size_bytes for file in heads.files)
    checked, flags = Checked(findings=heads.findings, whole=heads.whole), MessageFlags(size)
    blocks = _blocks(heads, block_bytes)
    for _, found in map_blocks(CheckPass(task, flags), blocks, "checking", size):
        checked.add(found)
    why_not = _not_checked(heads.summary, checked)
    missing = flags.never_sent()
    if not why_not and len(missing.flags):
        for more in map_over(NotSentPass(task, missing), _blocks(heads, block_bytes)):
            checked.findings.add_all(more)
    if source is not None:
        _check_folder(source, heads.summary, checked.findings)
    return CheckReport(
        folder=folder,
        summary=heads.summary,
        params=None if source is None else source.folder,
        sebs=checked.sebs,
        records=checked.records,
        findings=checked.findings,
        not_checked=why_not,
    )


def _blocks(heads: Heads, block_bytes: int) -> Iterator[Block]:
    for file in heads.files:
        yield from plan_blocks(file, block_bytes)


def _not_checked(summary: Summary, checked: Checked) -> tuple[str, ...]:
    """Return why the rule not-sent is not checked, as a tuple of at most one sentence."""
    if not checked.whole:
        return ("not-sent: some timelines cannot be read to their end",)
    if summary.log_version == 0 and summary.num_wth > 1:
        return ("not-sent: in logs of version 0 a message may be named by its node",)
    return ()


def _check_folder(source: ParamFolder, summary: Summary, findings: Findings) -> None:
    unknown = sorted(pe for pe in source.pes if pe >= summary.total_pes)
    problem = f"the log has PEs 0 to {summary.total_pes - 1}"
    found = [Finding(Location(source.path(pe)), problem) for pe in unknown[:SHOWN]]
    findings.add("param-pe", found, len(unknown))


@singledispatch
def check_opened(source: Path | Traces, params: Path | None = None, *, jobs: int = 0) -> Any:
    """Check the log set of a path, or traces."""
    raise NotImplementedError


check_opened.register(Path, check_logs)
check_opened.register(Traces, check_traces)
