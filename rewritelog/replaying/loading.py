"""Loading of a log set for replays: columns of blocks in parallel, then assembled by PE."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Floats, Ints, spans
from rewritelog.commands.durations import DurationOptions
from rewritelog.core import core
from rewritelog.cores import limited_to
from rewritelog.errors import RewriteLogError
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock, fault_error
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import Paired, ParamFolder, list_params, read_params
from rewritelog.formats.bgtrace.records import (
    BlockRecords,
    distinct_names,
    offset_of,
    records_of,
)
from rewritelog.replaying.workload import (
    NO_MESSAGE,
    NOT_SENT,
    Messages,
    Numbers,
    PairedRegions,
    Sebs,
    Workload,
    grouped,
)
from rewritelog.rewriting.block import patch, records_for
from rewritelog.rewriting.predicting import Predictor
from rewritelog.stopping import in_steps


@dataclass(frozen=True)
class BlockColumns:
    """The columns of a block or part."""

    levels: dict[str, dict[str, Any]]
    """The columns of `sebs`, `messages`, `backward` dependencies and `regions`, by name."""
    pes: Ints
    """The PE of each piece."""
    firsts: Ints
    """The index of each piece's first SEB in its timeline."""
    counts: Ints
    """The number of rows of each level in each piece, shape (pieces, levels)."""
    latest_s: float
    names: list[bytes]
    events: tuple[str, ...]
    uncovered: Counter[str] = field(default_factory=Counter)
    """The number of param records of each event that the model does not cover."""


def columns_of(
    loaded: LoadedBlock, params: ParamRecords, given_s: Floats, *, predicts: bool
) -> BlockColumns:
    """Return the columns of a block, given its param records and their predicted seconds.

    Raise `DamagedLogError` for damage, and for times that are not finite.
    """
    block = records_of(loaded)
    refuse_infinite(block)
    sebs, messages, backward = block.sebs, block.messages, block.backward
    paired, (names, name) = Paired.of(block, params), distinct_names(sebs)
    with np.errstate(over="ignore"):
        scaled, fixed = _durations(block, paired, params, given_s, predicts=predicts)
        transit_s = messages["recv_time"] - messages["send_time"]
    depends = block.walked["backward"] > 0
    levels = {
        "sebs": {
            "scaled_s": scaled[0],
            "fixed_s": fixed[0],
            "name": name.astype(np.int32),
            "follows": (block.index > 0)
            & (sebs["msg_id"] < 0)
            & (~depends | (sebs["recv_time"] != -1.0)),
            "source": sebs["src_pe"],
            "number": sebs["msg_id"],
            "messages": block.walked["messages"].astype(np.int32),
            "dependencies": block.walked["backward"].astype(np.int32),
        },
        "messages": {
            "scaled_s": scaled[1],
            "fixed_s": fixed[1],
            "transit_s": transit_s,
            "size_bytes": messages["size"],
            "number": messages["msg_id"],
            "node": messages["dst_node"],
            "worker": messages["tid"],
        },
        "backward": {"other": backward["other"]},
        "regions": {
            "seb": block.index[paired.seb].astype(np.int32),
            "event": params.event[paired.record].astype(np.int32),
            "begin_scaled_s": scaled[2],
            "begin_fixed_s": fixed[2],
            "scaled_s": scaled[3],
            "fixed_s": fixed[3],
        },
    }
    of_rows = (np.arange(len(sebs)), messages.seb, backward.seb, paired.seb)
    counts = [np.bincount(block.piece[of], minlength=len(block.pieces.counts)) for of in of_rows]
    return BlockColumns(
        levels,
        loaded.pes.copy(),
        loaded.pieces.firsts.copy(),
        np.column_stack(counts),
        float(sebs["end_time"].max(initial=0.0)),
        names,
        params.events,
    )


def _durations(
    block: BlockRecords, paired: Paired, params: ParamRecords, given_s: Floats, *, predicts: bool
) -> tuple[list[Floats], list[Floats]]:
    """Return what `_spent` does: the scaled seconds, and the fixed ones, which a model predicts.

    They are those of the block after a rewrite in which predicted regions take no time, and after
    one in which nothing else takes any. Without a model nothing is fixed.
    """
    if not predicts:
        return _spent(block, paired), [np.empty(0)] * 4
    modelled = np.zeros(len(block.sebs), dtype=np.bool_)
    modelled[paired.seb[~np.isnan(given_s[paired.record])]] = True
    lengths_s = block.sebs["end_time"] - block.sebs["start_time"]
    rows = np.flatnonzero(modelled)

    def rewritten(seconds: Floats, factors: Floats) -> list[Floats]:
        loaded = replace(block.loaded, buffer=block.loaded.buffer.copy())
        records_of(loaded).sebs.put("exec_time", lengths_s[rows], rows)  # if no region changes
        records = records_for(loaded, params, seconds, np.zeros(len(params), dtype=np.bool_))
        patch(loaded, records, factors, None, keep_recv=True)
        return _spent(records_of(loaded), paired)

    scaled = rewritten(0.0 * given_s, np.ones(len(modelled)))
    fixed = rewritten(given_s, np.where(modelled, 0.0, 1.0))
    of_rows = modelled, modelled[block.messages.seb], *[modelled[paired.seb]] * 2
    pairs = zip(of_rows, fixed, strict=True)
    return scaled, [np.where(chosen, seconds, 0.0) for chosen, seconds in pairs]


def _spent(block: BlockRecords, paired: Paired) -> list[Floats]:
    """Return the seconds of SEBs, of these before each message, and before and in each bracket.

    Brackets that are longer than the execTime of their SEB are cut to it.
    """
    sebs, messages = block.sebs, block.messages
    start, end = sebs["start_time"], sebs["end_time"]
    duration_s = np.where(end >= start, np.maximum(sebs["exec_time"], 0.0), 0.0)
    since_s = messages["send_time"] - start[messages.seb]
    begins_s, ends_s = np.minimum(paired.times(block).T, duration_s[paired.seb])
    return [
        duration_s,
        np.clip(since_s, 0.0, duration_s[messages.seb]),
        begins_s,
        ends_s - begins_s,
    ]


def refuse_infinite(block: BlockRecords) -> None:
    """Raise `DamagedLogError` for the first SEB with a time that is not finite."""
    sebs, messages = block.sebs, block.messages
    times = np.stack([sebs[name] for name in ("start_time", "end_time", "exec_time")])
    wrong = np.flatnonzero(~np.isfinite(times).all(axis=0))[:1]
    sent = np.flatnonzero(~np.isfinite(messages["send_time"]))[:1]
    if not len(wrong) and not len(sent):
        return
    if len(wrong) and not (messages.seb[sent] < wrong).any():
        code, records, row, field = core.TIME_NOT_FINITE, sebs, wrong[0], "start_time"
    else:
        code, records, row, field = core.SEND_NOT_FINITE, messages, sent[0], "send_time"
    seb, at = records.seb[row], records.at[row] + offset_of(records.dtype, field)
    fault = np.array([code, at, 0, block.piece[seb], block.index[seb]])
    raise fault_error(fault, block.loaded, absolute=True)


_give_back = getattr(ctypes.CDLL(None), "malloc_trim", int)
"""Returns freed memory to the system, as far as the C library can: it keeps it for later, although
large arrays that follow the many small ones of loading cannot use it."""

_BLOCK_BYTES = 4 << 20
"""A block and its copies while it is loaded are to be small beside the columns that are kept."""

_MOST = np.iinfo(np.int32).max

Name = TypeVar("Name", str, bytes)


def load_workload(logs: LogSet, predictor: Predictor, options: DurationOptions) -> Workload:
    """Load a log set for replays, with a model's durations for bracketed regions.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    or `ModelError`.
    """
    params = list_params(options.params or logs.folder)
    work = partial(_parts_of, params, predictor, options.strict)
    with limited_to(options.jobs):
        blocks = replace(logs, block_bytes=_BLOCK_BYTES).map(work, in_turn=True)
        return _assembled(logs, list(chain.from_iterable(blocks)))


def _parts_of(
    folder: ParamFolder, predictor: Predictor, strict: bool, parts: Iterator[LoadedBlock]
) -> list[BlockColumns]:
    """Return the columns of each part of a block."""
    fitted, columns_of_parts = predictor.fitted, []
    for loaded in parts:
        params, _ = read_params(folder, loaded, strict=strict, columns=fitted.columns)
        predicted = predictor.predict(params, loaded.pes)
        of_part = columns_of(
            loaded, params, predicted.given_s, predicts=predictor.fitted.uses_params
        )
        if predictor.fitted.uses_params:
            of_part.uncovered.update(predicted.uncovered())
        for columns in of_part.levels.values():
            for name, column in columns.items():
                if column.base is not None:  # it would keep all of that
                    columns[name] = column.copy()
        columns_of_parts.append(of_part)
    return columns_of_parts


def _assembled(logs: LogSet, parts: list[BlockColumns]) -> Workload:
    """Assemble the parts of all blocks in the order of the PEs; they lose their columns."""
    pes, firsts, counts = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("pes", "firsts", "counts")
    )
    sizes = counts.sum(axis=0).tolist()
    if max(sizes) >= _MOST:
        raise RewriteLogError(
            f"{logs.folder}: a replay takes at most {_MOST:,} SEBs, messages and "
            f"dependencies; the log set has {max(sizes):,}"
        )
    names = _renumbered(parts, "sebs", "name", [part.names for part in parts])
    events = _renumbered(parts, "regions", "event", [list(part.events) for part in parts])
    order = np.lexsort((firsts, pes))
    sebs, messages, backward, regions = (
        _joined(parts, level, counts[:, number], order)
        for number, level in enumerate(list(parts[0].levels))
    )
    of_pe = np.bincount(pes, counts[:, 0], minlength=logs.summary.total_pes)
    first_of_pe = _first(of_pe.astype(np.int64))
    regions["seb"] += first_of_pe[np.repeat(pes[order], counts[order, 3])]
    pe = np.repeat(np.arange(len(of_pe), dtype=np.int32), np.diff(first_of_pe))
    first_message = _first(sebs.pop("messages"))
    bounds, source, number = first_message[first_of_pe], sebs.pop("source"), sebs.pop("number")
    starter, repeated = _starters(messages.pop("number"), bounds, source, number)
    lacking = np.flatnonzero(starter == NOT_SENT)
    not_sent = np.column_stack([lacking, source[lacking], number[lacking]])
    del source, number
    workers = logs.summary.num_wth
    to = messages.pop("node"), messages.pop("worker")
    misaddressed = _misaddressed(starter, pe, *to, workers)
    depends, follows = sebs.pop("dependencies"), sebs.pop("follows")
    waiting, beyond = _waiting(first_of_pe, pe, depends, follows, backward.pop("other"))
    links = np.empty(len(pe) + 1, dtype=core.structs["seb_links"])
    links["first_message"], links["first_waiting"] = first_message, waiting[0]
    receivers = np.flatnonzero(starter >= 0).astype(np.int32)
    receivers_of = grouped(starter[receivers], receivers, int(first_message[-1]))
    return Workload(
        Sebs(
            **sebs,
            pe=pe,
            starter=starter,
            inputs=depends + follows + (starter != NO_MESSAGE),
            links=links,
            waiting=waiting[1],
            first_of_pe=first_of_pe.astype(np.int32),
        ),
        Messages(**messages, first_receiver=receivers_of[0], receivers=receivers_of[1]),
        PairedRegions(**regions),
        names=tuple(name.decode("utf-8", "backslashreplace") for name in names),
        events=tuple(events),
        workers=workers,
        recorded_s=max(part.latest_s for part in parts),
        not_sent=not_sent,
        beyond=beyond,
        repeated_numbers=repeated,
        misaddressed=misaddressed,
        uncovered=sum((part.uncovered for part in parts), Counter()),
    )


def _renumbered(
    parts: list[BlockColumns], level: str, column: str, lists: list[list[Name]]
) -> list[Name]:
    """Give each name the same number in all parts; return the sorted names."""
    every = sorted({name for names in lists for name in names})
    numbers = {name: number for number, name in enumerate(every)}
    for part, names in zip(parts, lists, strict=True):
        codes = np.array([numbers[name] for name in names], dtype=np.int32)
        if names:
            part.levels[level][column] = codes[part.levels[level][column]]
    return every


def _joined(parts: list[BlockColumns], level: str, counts: Ints, order: Ints) -> dict[str, Any]:
    """Return the columns of a level of all parts, whose pieces come in this order."""
    places = None
    if (np.diff(order) < 0).any():
        places = spans((np.cumsum(counts) - counts)[order], counts[order])
    columns = {}
    for name in list(parts[0].levels[level]):
        joined = np.concatenate([part.levels[level].pop(name) for part in parts])
        _give_back(0)
        columns[name] = joined if places is None or not len(joined) else joined[places]
    return columns


def _starters(sent: Numbers, bounds: Ints, source: Numbers, number: Numbers) -> tuple[Numbers, int]:
    """Return the message that starts each SEB, `NO_MESSAGE` or `NOT_SENT`.

    `sent` has the numbers of all messages, and `bounds` the first message of each PE; `source` and
    `number` are what SEBs name. Of messages with the same number the first one is found, and the
    others are counted in the second result.
    """
    keys, order = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) << 32, None
    keys += sent
    if (keys[1:] < keys[:-1]).any():
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
    starter = np.full(len(source), NO_MESSAGE, dtype=np.int32)
    for step in in_steps(len(source)):
        named = np.flatnonzero(number[step] >= 0)
        pes = source[step][named].astype(np.int64)
        known = np.flatnonzero((pes >= 0) & (pes < len(bounds) - 1))
        sought = (pes[known] << 32) + number[step][named[known]]
        at = np.searchsorted(keys, sought)
        hit = at < len(keys)
        hit[hit] = keys[at[hit]] == sought[hit]
        starters = np.full(len(named), NOT_SENT, dtype=np.int32)
        starters[known[hit]] = at[hit] if order is None else order[at[hit]]
        starter[step][named] = starters
    return starter, int(np.count_nonzero(keys[1:] == keys[:-1]))


def _misaddressed(
    starter: Numbers, pe: Numbers, node: Numbers, worker: Numbers, workers: int
) -> tuple[int, int]:
    """Return how many SEBs are started by a message that is not for their PE, and the first one.

    The list of a multicast is not in the log, so that it may be for any PE (FORMAT 4).
    """
    count, first = 0, -1
    for step in in_steps(len(starter)):
        sebs = np.flatnonzero(starter[step] >= 0)
        message, to = starter[step][sebs], pe[step][sebs]
        to_node, to_worker = node[message].astype(np.int64), worker[message]
        for_worker = (to_worker == -1) | (to_worker == to % workers)
        for_node = (to_node == -1) | (to_node == to // workers)
        excepted = (to_node < -2) & ~((-100 - to_node == to // workers) & for_worker)
        wrong = sebs[~((to_node == -2) | (for_node & for_worker) | excepted)]
        if len(wrong) and not count:
            first = step.start + int(wrong[0])
        count += len(wrong)
    return count, first


def _waiting(
    first_of_pe: Ints, pe: Numbers, depends: Numbers, follows: Numbers, other: Numbers
) -> tuple[tuple[Numbers, Numbers], Numbers]:
    """Return the SEBs that wait for the end of each one, grouped by it.

    Then those that depend on a SEB beyond their timeline, with its index.
    """
    owner = np.repeat(np.arange(len(pe), dtype=np.int32), depends)
    base = first_of_pe[pe[owner]]
    length = first_of_pe[pe[owner] + 1] - base
    exists = (other >= 0) & (other < length)
    beyond = np.column_stack([owner[~exists], other[~exists]])
    following = np.flatnonzero(follows)
    awaited = np.concatenate([(base + other)[exists], following - 1]).astype(np.int32)
    waiting = np.concatenate([owner[exists], -1 - following]).astype(np.int32)
    return grouped(awaited, waiting, len(pe)), beyond


def _first(counts: Any) -> Ints:
    """Return the sum of the counts before each element, and of all."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
