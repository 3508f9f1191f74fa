"""The rules of traces of events, and the check of traces: rank by rank, then their collectives."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from rewritelog.arrays import Floats, Ints, occurrences_before, rows_by_key
from rewritelog.checking.dependencies import cycles
from rewritelog.checking.findings import (
    SHOWN,
    CheckReport,
    Finding,
    Findings,
    Rule,
    Severity,
)
from rewritelog.errors import Location, RewriteLogError
from rewritelog.formats.traces import (
    NO_ROW,
    Collective,
    Events,
    Traces,
    Unit,
    communicating,
    kinds_of,
    loaded,
)
from rewritelog.running.engines import map_blocks
from rewritelog.text import LABEL_WIDTH, NO_NAME, shorten

_JOINT = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.ALL_TO_ALL,
    Collective.REDUCE_SCATTER,
)
"""The types of collectives in which ranks wait for each other in ASTRA-sim."""

_COLLECTIVES = (*_JOINT, Collective.BROADCAST)
"""The types of collectives that ASTRA-sim has."""

Collectives: TypeAlias = dict[str, tuple[Ints, Floats]]
"""The joint collectives of each group on a rank: their nodes, and rows of their types and sizes.

They are in the order of their ids, by which those of different ranks belong together; `_END` is the
last row.
"""
_END = (-1.0, 0.0)

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
        "Every data dependency names a node of the same rank.",
        "A node waits for all nodes that its dependencies name, and for one that is not there "
        "forever.",
    ),
    Rule(
        "control-missing",
        Severity.STOP,
        "Every control dependency names a node of the same rank.",
        "ASTRA-sim ends with 'Node … in ctrl_dep graph, but not found in index'. Before its commit "
        "80ffc62, of August 2025, it ignored control dependencies.",
    ),
    Rule(
        "dependency-twice",
        Severity.STOP,
        "A node names each node whose data it waits for once.",
        "ASTRA-sim before its commit 80ffc62 takes one of two equal dependencies away when that "
        "node ends, and waits for the other one forever.",
    ),
    Rule(
        "communication-on-cpu",
        Severity.STOP,
        "Collectives, sends and receives are on devices.",
        "ASTRA-sim says 'Comm node should not be on CPU', and the rank never ends. Before its "
        "commit 80ffc62 such a node took its duration.",
    ),
    Rule(
        "collective-unknown",
        Severity.STOP,
        "Collectives are all-reduces, all-gathers, reduce-scatters, all-to-alls or broadcasts.",
        "ASTRA-sim has no others: the rank never ends.",
    ),
    Rule(
        "collective-differs",
        Severity.STOP,
        "The ranks of a group have the same collectives, of the same sizes, in the same order.",
        "In ASTRA-sim ranks wait for each other in all-reduces, all-gathers, reduce-scatters and "
        "all-to-alls, and forever if type or size differ or one is missing. The finding is where a "
        "rank first differs from the lowest one of the group; later ones may only be shifted.",
    ),
    Rule(
        "rank-missing",
        Severity.STOP,
        "There is a file of every rank from 0 on.",
        "ASTRA-sim ends with an error where one is missing; nothing else here needs all of them.",
    ),
    Rule(
        "file-name",
        Severity.STOP,
        "The name of every file ends in its rank, without zeros before it, and .et.",
        "ASTRA-sim looks for NAME.RANK.et, whether that is packed by gzip or not, and ends with an "
        "error where one is missing; everything here reads NAME.RANK.et.gz, too.",
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
        "Something depends on every node that computes on a device.",
        "Nothing waits for the others: unless they end last, new durations for them change "
        "nothing. A dependency may be missing.",
    ),
    Rule(
        "zero-duration",
        Severity.ODD,
        "Nodes that compute take time.",
        "A duration below half a microsecond is recorded as 0; ASTRA-sim takes 1 or 0 ns for it.",
    ),
)
TRACE_RULES = {rule.name: rule for rule in _RULES}
"""All rules of traces by name, most severe first."""


def check_traces(traces: Traces) -> CheckReport:
    """Check traces; all damage is in the report. Memory is needed for the nodes of a few ranks."""
    findings, lowest = Findings(), dict[str, tuple[int, Floats]]()
    work, size = partial(_check_rank, traces), traces.size_bytes
    for unit, (of_rank, collectives) in map_blocks(work, traces.files, "checking", size):
        findings.add_all(of_rank)
        differing = list(_differing(unit, collectives, lowest))
        findings.add("collective-differs", differing, len(differing))
    if traces.absent:
        findings.add("rank-missing", [Finding(Location(traces.path), traces.absent)])
    for unit in traces.files:
        rank = "" if traces.path == unit.path else f".{unit.rank}"
        if not unit.path.name.endswith(ending := f"{rank}{traces.ending}"):
            name = f"the name does not end in {ending}"
            findings.add("file-name", [Finding(Location(unit.path), name)])
    return CheckReport(traces.path, findings, TRACE_RULES, traces=traces)


def _differing(
    unit: Unit, collectives: Collectives, lowest: dict[str, tuple[int, Floats]]
) -> Iterator[Finding]:
    """Yield where a rank first differs from the lowest rank of each group.

    `lowest` has the number of that rank and its collectives; those of a new group are added.
    """
    for group, (rows, kinds) in collectives.items():
        rank, others = lowest.setdefault(group, (unit.rank, kinds))
        shared, name = min(len(kinds), len(others)), shorten(group, LABEL_WIDTH)
        differs = (kinds[:shared] != others[:shared]).any(axis=1)
        if not differs.any():
            continue
        at = int(np.argmax(differs))
        here, there = _collective_text(*kinds[at]), _collective_text(*others[at])
        what = f"collective {at + 1:,}{f' of group {name}' if name else ''}"
        node = int(rows[at]) if at < len(rows) else None
        message = f"{what}: {here} here, {there} on rank {rank}"
        yield Finding(Location(unit.path, node=node), message)


def _collective_text(kind: float, size_bytes: float) -> str:
    if kind == _END[0]:
        return "none"
    return f"{Collective(int(kind)).name.lower().replace('_', '-')} of {size_bytes:,.0f} bytes"


def _check_rank(traces: Traces, unit: Unit) -> tuple[Findings, Collectives]:
    findings = Findings()
    try:
        events = loaded(traces.read(unit), ("comm_type", "comm_size", "group"))
    except RewriteLogError as error:
        findings.add_unreadable(unit.path, error)
        return findings, {}
    findings.sebs = len(events)
    for rule, rows, message in _violations(traces, events):
        first = [
            Finding(
                Location(unit.path, node=row),
                f"{message} (id {events['id'][row]}, "
                f"{shorten(events['name'][row], LABEL_WIDTH) or NO_NAME})",
            )
            for row in rows[:SHOWN].tolist()
        ]
        findings.add(rule, first, len(rows))
    return findings, _collectives(traces, events)


def _collectives(traces: Traces, events: Events) -> Collectives:
    """Return the joint collectives of a rank: of the groups that it has, and of all ranks."""
    rows = communicating(events, traces.communicating[0])
    kinds = kinds_of(events, rows).T
    is_joint = np.isin(kinds[:, 0], _JOINT)
    rows, kinds = rows[is_joint], kinds[is_joint]
    group = events["group"][rows]
    by_group = rows_by_key(group.number, np.ones(len(rows), dtype=np.bool_))
    none = rows[:0], np.array([_END])
    return {"": none} | {group[of[0]]: (rows[of], np.vstack([kinds[of], _END])) for of in by_group}


def _violations(traces: Traces, events: Events) -> Iterator[tuple[str, Ints, str]]:
    """Yield each rule with the nodes that violate it, and in which way."""
    ids, deps = events["id"], events.dependencies()
    again = np.flatnonzero(occurrences_before(np.unique(ids, return_inverse=True)[1]))
    yield "id-twice", again, "an earlier node has the same id"
    exists, of_data = deps.named != NO_ROW, ~deps.by_control
    for rule, kind in (("dependency-missing", of_data), ("control-missing", deps.by_control)):
        missing = np.unique(deps.waiting[~exists & kind])
        yield rule, missing, "waits for a node that the rank does not have"
    pairs = (deps.waiting * len(events) + deps.named)[exists & of_data]
    pairs.sort(kind="stable")
    twice = np.unique(pairs[1:][pairs[1:] == pairs[:-1]] // max(1, len(events)))
    yield "dependency-twice", twice, "waits for the same node twice"
    before, after = deps.named[deps.followed], deps.waiting[deps.followed]
    group, first = cycles(after, before, len(events))
    in_cycle = np.flatnonzero(np.isin(group, group[first]))
    yield "cycle", in_cycle, "waits for itself, through others or directly"
    on_cpu = np.flatnonzero(np.isin(events["type"], traces.communicating) & events["on_host"])
    yield "communication-on-cpu", on_cpu, "communicates, but its is_cpu_op is true"
    is_known = np.isnan(events["comm_type"]) | np.isin(events["comm_type"], _COLLECTIVES)
    is_collective = (events["type"] == traces.communicating[0]) & ~events["on_host"]
    unknown = np.flatnonzero(is_collective & ~is_known)
    yield "collective-unknown", unknown, "a collective of a comm_type that ASTRA-sim lacks"
    computing = events["type"] == traces.computing
    is_leaf = computing & ~events["on_host"] & ~deps.needed(len(events))
    yield "device-leaf", np.flatnonzero(is_leaf), "nothing depends on it"
    zero = np.flatnonzero(computing & (events["duration_s"] == 0))
    yield "zero-duration", zero, "takes no time"
