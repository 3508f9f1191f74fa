"""Loading of a log set for replays: columns of blocks in parallel, then assembled by PE."""

from __future__ import annotations

import ctypes
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rewritelog.arrays import Ints, spans
from rewritelog.core import core
from rewritelog.errors import DamagedLogError, Location, RewriteLogError
from rewritelog.formats import NO_RECORDS, ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.declaration import FAULTS, Record, format_names
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import Paired, ParamFolder, ParamNotes, read_params
from rewritelog.formats.bgtrace.records import BlockRecords, Records, offset_of, records_of
from rewritelog.models.base import EventKey
from rewritelog.replaying.workload import (
    NO_MESSAGE,
    NOT_SENT,
    Messages,
    Numbers,
    PairedRegions,
    Sebs,
    Seconds,
    Workload,
    grouped,
)
from rewritelog.rewriting.block import RewriteTask
from rewritelog.stopping import in_steps
from rewritelog.text import decoded

_LEVELS = {
    "of_sebs": "sebs",
    "until_sent": "messages",
    "in_transit": "messages",
    "until_regions": "regions",
    "in_regions": "regions",
}
"""The level of each field of `Seconds`."""


class BlockColumns(Struct, frozen=True):
    """The columns of a block or part."""

    levels: dict[str, dict[Any, Any]]
    """The columns of `sebs`, `messages`, `backward` dependencies and `regions`, by name; those of
    `Seconds` by field and index of the task."""
    pes: Ints
    """The PE of each piece."""
    firsts: Ints
    """The index of each piece's first SEB in its timeline."""
    counts: Ints
    """The number of rows of each level in each piece, shape (pieces, levels)."""
    latest_s: float
    exec_differing: int
    """The number of SEBs whose execTime is not endTime − startTime."""
    names: list[bytes]
    events: tuple[str, ...]
    uncovered: Counter[EventKey]
    """The number of param records of each event that the model does not cover."""
    unused: Counter[str]
    """How many param lines or records are not used, by the reasons of `Workload.unused`."""


def columns_of(
    loaded: LoadedBlock, params: ParamFolder | None, tasks: Sequence[RewriteTask]
) -> BlockColumns:
    """Return the columns of a block, with the times that each task gives it.

    Tasks may differ only in their dilations, or change nothing; all use the predictions of the last
    one's model. Raise `DamagedLogError` for damage and for times that are not finite, `TimingError`
    for param records that cannot be used, or `ModelError`.
    """
    block, (*_, task) = records_of(loaded), tasks
    refuse_infinite(block)
    records, notes, fitted = NO_RECORDS, ParamNotes(), task.predictor.fitted
    if params is not None:
        records, notes = read_params(params, loaded, strict=task.strict, columns=fitted.columns)
    predicted = task.predictor.predict(records if fitted.uses_params else NO_RECORDS, loaded.pes)
    paired = Paired.of(block, records)
    levels = _recorded(block, records, paired)
    for number, each in enumerate(tasks):
        after = block
        if each.changes_durations:
            copy = replace(loaded, buffer=loaded.buffer.copy())
            each.rewrite_loaded(copy, predicted)
            after = replace(block, loaded=copy)
        seconds = _seconds(after, paired)
        for name, level in _LEVELS.items():
            levels[level][name, number] = getattr(seconds, name)
    of_rows = (np.arange(len(block.sebs)), block.messages.seb, block.backward.seb, paired.seb)
    counts = [np.bincount(block.piece[of], minlength=len(block.pieces.counts)) for of in of_rows]
    return BlockColumns(
        levels,
        loaded.pes.copy(),
        loaded.pieces.firsts.copy(),
        np.column_stack(counts),
        float(block.sebs["end_time"].max(initial=0.0)),
        int(np.count_nonzero(block.exec_differs)),
        block.names[0],
        records.events,
        predicted.uncovered(),
        Counter(
            malformed=notes.malformed,
            unpaired=paired.unpaired,
            of_no_length=paired.of_no_length,
        ),
    )


def _recorded(
    block: BlockRecords, records: ParamRecords, paired: Paired
) -> dict[str, dict[Any, Any]]:
    """Return the columns that no task changes."""
    sebs, messages, backward = block.sebs, block.messages, block.backward
    depends = block.walked["backward"]
    waits = (depends > 0) & (sebs["recv_time"] == -1.0)
    return {
        "sebs": {
            "name": block.names[1].astype(np.int32),
            "follows": (block.index > 0) & (sebs["msg_id"] < 0) & ~waits,
            "source": sebs["src_pe"],
            "number": sebs["msg_id"],
            "messages": block.walked["messages"].astype(np.int32),
            "dependencies": depends.astype(np.int32),
        },
        "messages": {
            "size_bytes": messages["size"],
            "number": messages["msg_id"],
        },
        "backward": {"other": backward["other"]},
        "regions": {
            "seb": block.index[paired.seb].astype(np.int32),
            "event": records.event[paired.record].astype(np.int32),
        },
    }


@np.errstate(over="ignore")
def _seconds(block: BlockRecords, paired: Paired) -> Seconds:
    """Return the times in a block; brackets are cut to the execTime of their SEB."""
    sebs, messages = block.sebs, block.messages
    start, end = sebs["start_time"], sebs["end_time"]
    duration_s = np.where(end >= start, np.maximum(sebs["exec_time"], 0.0), 0.0)
    since_s = messages["send_time"] - start[messages.seb]
    begins_s, ends_s = np.minimum(paired.times(block).T, duration_s[paired.seb])
    return Seconds(
        duration_s,
        np.clip(since_s, 0.0, duration_s[messages.seb]),
        messages["recv_time"] - messages["send_time"],
        begins_s.copy(),  # a view would keep the ends
        ends_s - begins_s,
    )


def refuse_infinite(block: BlockRecords) -> None:
    """Raise `DamagedLogError` for a time that a replay takes and that is not finite."""
    kinds: tuple[tuple[Record, Records, tuple[str, ...]], ...] = (
        ("seb", block.sebs, ("start_time", "exec_time", "end_time")),
        ("message", block.messages, ("send_time",)),
    )
    loaded = block.loaded
    for kind, records, names in kinds:
        for name in names:
            wrong = np.flatnonzero(~np.isfinite(records[name]))
            if len(wrong):
                at = int(records.at[wrong[0]]) + offset_of(records.dtype, name)
                pe, seb = (int(of[records.seb[wrong[0]]]) for of in (block.pe, block.index))
                offset, field = loaded.block.offset + at, format_names(kind)[name]
                location = Location(loaded.file.path, offset, pe, seb, field)
                raise DamagedLogError(location, FAULTS[core.TIME_NOT_FINITE].problem)


_give_back = getattr(ctypes.CDLL(None), "malloc_trim", int)
"""Returns freed memory to the system if the C library can. Otherwise the memory of the many small
arrays of loading would be kept, although the large arrays that follow cannot use it."""

_BLOCK_BYTES = 4 << 20
"""Small, so that a block and its copies take little memory beside the columns that are kept."""

_MOST = np.iinfo(np.int32).max

Name = TypeVar("Name", str, bytes)


def load_workload(tasks: Sequence[RewriteTask], params: ParamFolder | None) -> Workload:
    """Load a log set for replays, with the times that each task gives it, as `columns_of` says.

    Without a folder of params no middle regions are known.
    """
    work = partial(_parts_of, params, tasks)
    blocks = dataclasses.replace(tasks[0].logs, block_bytes=_BLOCK_BYTES).map(work, in_turn=True)
    return _assembled(tasks[0].logs, list(chain.from_iterable(blocks)), len(tasks))


def _parts_of(
    params: ParamFolder | None, tasks: Sequence[RewriteTask], parts: Iterator[LoadedBlock]
) -> list[BlockColumns]:
    return [columns_of(loaded, params, tasks) for loaded in parts]


def _assembled(logs: LogSet, parts: list[BlockColumns], tasks: int) -> Workload:
    """Assemble the parts of all blocks in the order of the PEs; the parts lose their columns."""
    pes, firsts, counts = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("pes", "firsts", "counts")
    )
    _refuse_too_many(logs, int(counts.sum(axis=0).max()))
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
    starter, not_sent, repeated = _starters(
        messages["number"], first_message[first_of_pe], sebs.pop("source"), sebs.pop("number")
    )
    depends, follows = sebs.pop("dependencies"), sebs.pop("follows")
    waiting, beyond = _waiting(first_of_pe, pe, depends, follows, backward.pop("other"))
    links = np.empty(len(pe) + 1, dtype=core.structs["seb_links"])
    links["first_message"], links["first_waiting"] = first_message, waiting[0]
    receivers = np.flatnonzero(starter >= 0).astype(np.int32)
    receivers_of = grouped(starter[receivers], receivers, int(first_message[-1]))
    columns = {"sebs": sebs, "messages": messages, "regions": regions}
    seconds = tuple(
        Seconds(*(columns[level].pop((name, number)) for name, level in _LEVELS.items()))
        for number in range(tasks)
    )
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
        seconds,
        Messages(**messages, first_receiver=receivers_of[0], receivers=receivers_of[1]),
        PairedRegions(**regions),
        names=tuple(map(decoded, names)),
        events=tuple(events),
        workers=logs.summary.num_wth,
        recorded_s=max(part.latest_s for part in parts),
        exec_differing=sum(part.exec_differing for part in parts),
        not_sent=not_sent,
        beyond=beyond,
        repeated_numbers=repeated,
        asked=events,
        uncovered=sum((part.uncovered for part in parts), Counter()),
        unused=sum((part.unused for part in parts), Counter()),
    )


def _refuse_too_many(logs: LogSet, most: int) -> None:
    if most >= _MOST:
        raise RewriteLogError(
            f"{logs.folder}: a replay takes at most {_MOST:,} SEBs, messages and "
            f"dependencies; the log set has {most:,}"
        )


def _renumbered(
    parts: list[BlockColumns], level: str, column: str, lists: list[list[Name]]
) -> list[Name]:
    """Give each name the same number in all parts; return the sorted names."""
    all_names = sorted({name for names in lists for name in names})
    numbers = {name: number for number, name in enumerate(all_names)}
    for part, names in zip(parts, lists, strict=True):
        codes = np.array([numbers[name] for name in names], dtype=np.int32)
        part.levels[level][column] = codes[part.levels[level][column]]
    return all_names


def _joined(parts: list[BlockColumns], level: str, counts: Ints, order: Ints) -> dict[Any, Any]:
    """Join the columns of a level of all parts, with the pieces in this order; parts lose them."""
    places = None
    if (np.diff(order) < 0).any():
        places = spans((np.cumsum(counts) - counts)[order], counts[order])
    columns = {}
    for name in list(parts[0].levels[level]):
        joined = np.concatenate([part.levels[level].pop(name) for part in parts])
        _give_back(0)
        columns[name] = joined if places is None else joined[places]
    return columns


def _starters(
    sent: Numbers, bounds: Ints, source: Numbers, number: Numbers
) -> tuple[Numbers, Numbers, int]:
    """Return the message that starts each SEB, `NO_MESSAGE` or `NOT_SENT`.

    `sent` has the numbers of all messages, and `bounds` the first message of each PE; `source` and
    `number` name the message that starts each SEB. The second result has the SEBs whose message is
    not sent, with its source and number. Of messages of a PE with the same number the first one is
    taken, and the third result counts the others.
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
    lacking = np.flatnonzero(starter == NOT_SENT)
    not_sent = np.column_stack([lacking, source[lacking], number[lacking]])
    return starter, not_sent, int(np.count_nonzero(keys[1:] == keys[:-1]))


def _waiting(
    first_of_pe: Ints, pe: Numbers, depends: Numbers, follows: Numbers, other: Numbers
) -> tuple[tuple[Numbers, Numbers], Numbers]:
    """Return the SEBs that wait for each SEB to end, grouped by the SEB that they wait for.

    The second result has the SEBs that depend on one beyond their timeline, with its index.
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
