"""The check of traces: files that can be read, and nodes that can all run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.report import CheckReport
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.cores import limited_to
from rewritelog.errors import DamagedLogError, Location, RewriteLogError, UsageError
from rewritelog.formats.traces import MISSING, Traces, Unit, UnitEvents, load_unit, never_run
from rewritelog.running.engines import map_blocks

_RULES = (
    Rule(
        "unreadable",
        Severity.STOP,
        "Every file can be read to its end.",
        "A simulator reads all messages of a rank's file; after damage it stops, or runs a part.",
    ),
    Rule(
        "id-twice",
        Severity.STOP,
        "The nodes of a rank have different ids.",
        "Dependencies name nodes by their ids; of two nodes with the same one only one is found.",
    ),
    Rule(
        "dependency-missing",
        Severity.STOP,
        "Every dependency names a node of the same rank.",
        "A node waits for all nodes that its dependencies name, and for one that is not there "
        "forever.",
    ),
    Rule(
        "cycle",
        Severity.STOP,
        "No node waits for itself, through whatever others.",
        "The nodes of a cycle, and all that wait for them, never run.",
    ),
    Rule(
        "device-leaf",
        Severity.ODD,
        "Something depends on every node that runs on a device.",
        "The end of the run does not depend on the others, whatever their durations: a simulator "
        "may end before they do, and new durations for them change nothing.",
    ),
    Rule(
        "zero-duration",
        Severity.ODD,
        "Nodes that compute take time.",
        "A duration below half a microsecond is recorded as 0; ASTRA-sim takes 1 ns for it.",
    ),
)
"""The rules of traces, most severe first."""


def check_traces(traces: Traces, params: Path | None = None, *, jobs: int = 0) -> CheckReport:
    """Check traces; all damage is in the report. Memory is needed for the nodes of a few ranks."""
    if params is not None:
        raise UsageError(f"--params is for bgTrace logs: {traces.path} has {traces.title}")
    nodes, findings = 0, Findings()
    with limited_to(jobs):
        work = partial(_checked, traces)
        for _, (count, of_rank) in map_blocks(work, traces.units, "checking", traces.size_bytes):
            nodes += count
            findings.add_all(of_rank)
    rules = {rule.name: rule for rule in _RULES}
    return CheckReport(traces.path, None, None, nodes, 0, findings, (), traces, rules)


def _checked(traces: Traces, unit: Unit) -> tuple[int, Findings]:
    findings = Findings()
    try:
        events = load_unit(traces, unit)
    except DamagedLogError as error:
        findings.add("unreadable", [Finding(error.location, error.problem)])
        return 0, findings
    except RewriteLogError as error:
        findings.add("unreadable", [Finding(Location(), str(error))])
        return 0, findings
    for rule, rows, message in _violations(traces, events):
        first = [
            Finding(Location(unit.path, node=row), f"{message} (id {events.ids[row]}, {name})")
            for row, name in (
                (row, events.names[events.name[row]]) for row in rows[:SHOWN].tolist()
            )
        ]
        if len(rows):
            findings.add(rule, first, len(rows))
    return len(events), findings


def _violations(traces: Traces, events: UnitEvents) -> Iterator[tuple[str, Ints, str]]:
    order = np.argsort(events.ids, kind="stable")
    again = events.ids[order[1:]] == events.ids[order[:-1]]
    yield "id-twice", np.sort(order[1:][again]), "an earlier node has the same id"
    missing = events.deps == MISSING
    yield (
        "dependency-missing",
        np.unique(events.waiting[missing]),
        "waits for a node that the rank does not have",
    )
    known = ~missing
    never = never_run(events.deps[known], events.waiting[known], len(events))
    yield "cycle", never, "waits for itself, or for nodes that do"
    needed = np.zeros(len(events), dtype=np.bool_)
    needed[events.deps[known]] = True
    yield "device-leaf", np.flatnonzero(~needed & ~events.on_host), "nothing depends on it"
    computing = events.type == traces.types.index(traces.computing)
    zero = np.flatnonzero(computing & (events.duration_s == 0))
    yield "zero-duration", zero, "takes no time"
