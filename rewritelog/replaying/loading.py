"""Loading of a log set for replays: columns of blocks in parallel, then assembled by PE."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Floats, Ints
from rewritelog.core import core
from rewritelog.cores import limited_to
from rewritelog.errors import RewriteLogError
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock, fault_error, plan_in_turn
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params, read_params
from rewritelog.formats.bgtrace.records import BlockRecords, NameTable, offset_of, records_of
from rewritelog.replaying.regions import BlockRegions
from rewritelog.replaying.workload import (
    NO_MESSAGE,
    NOT_SENT,
    Irregularities,
    Messages,
    Numbers,
    PairedRegions,
    Sebs,
    Workload,
    grouped,
    spans,
)
from rewritelog.rewriting.options import DurationOptions
from rewritelog.rewriting.predicting import Predictor
from rewritelog.stopping import in_steps


@dataclass(frozen=True)
class Starters:
    """The messages of all PEs, to be found by sender and number."""

    keys: Ints
    """Sender and number of each message, ascending."""
    order: Ints | None
    """The message of each key; None if messages are in this order."""
    bounds: Ints
    """The first key of each PE, shape (PEs + 1,)."""
    repeated: int
    """How many messages have the number of an earlier one."""

    @classmethod
    def of(cls, number: Numbers, bounds: Ints) -> Starters:
        """Sort messages, given their numbers and the first message of each PE."""
        keys = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) << 32
        keys += number
        order = None
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
        return cls(keys, order, bounds, int(np.count_nonzero(keys[1:] == keys[:-1])))

    def find(self, source: Numbers, number: Numbers) -> Numbers:
        """Return the message that starts each SEB, `NO_MESSAGE` or `NOT_SENT`.

        Of messages with the same number the first one is found.
        """
        starter = np.full(len(source), NO_MESSAGE, dtype=np.int32)
        for step in in_steps(len(source)):
            told = np.flatnonzero(number[step] >= 0)
            starters = np.full(len(told), NOT_SENT, dtype=np.int32)
            pes = source[step][told]
            known = np.flatnonzero((pes >= 0) & (pes < len(self.bounds) - 1))
            if len(self.keys):
                starters[known] = self._find(pes[known].astype(np.int64), number[step][told[known]])
            starter[step][told] = starters
        return starter

    def _find(self, pes: Ints, number: Numbers) -> Ints:
        """Find messages of PEs that exist.

        Numbers mostly have no gaps, so the place that follows from a PE's first one is tried first.
        """
        keys, last = self.keys, len(self.keys) - 1
        sought = (pes << 32) + number
        low = np.minimum(self.bounds[pes], last)
        at = np.clip(low + (sought - keys[low]), 0, last)
        missed = np.flatnonzero(
            (keys[at] != sought) | ((at > 0) & (keys[np.maximum(at - 1, 0)] == sought))
        )
        at[missed] = np.minimum(np.searchsorted(keys, sought[missed]), last)
        rows = at if self.order is None else self.order[at]
        return np.where(keys[at] == sought, rows, NOT_SENT)

    @staticmethod
    def misaddressed(
        starter: Numbers, pe: Numbers, node: Numbers, worker: Any, workers: int
    ) -> Ints:
        """Return the SEBs that are started by a message that is not for their PE."""
        parts = []
        for step in in_steps(len(starter)):
            sebs = np.flatnonzero(starter[step] >= 0)
            message = starter[step][sebs]
            to = pe[step][sebs]
            wrong = ~_addresses(node[message].astype(np.int64), worker[message], to, workers)
            parts.append(sebs[wrong] + step.start)
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])


def _addresses(node: Ints, worker: Any, to: Numbers, workers: int) -> Any:
    """Return whether the destinations of messages include PEs (FORMAT 4).

    The list of a multicast is not in the log, so that such a message may be for any PE.
    """
    any_worker = (worker == -1) | (worker == to % workers)
    excepted = (-100 - node == to // workers) & any_worker
    that_node = (node == to // workers) & any_worker
    return np.select([node == -2, node == -1, node >= 0], [True, any_worker, that_node], ~excepted)


LEVELS = ("sebs", "messages", "backward", "regions")
"""What columns belong to; the name of each one begins with its level."""


@dataclass(frozen=True)
class BlockColumns:
    """The columns of a block or part."""

    columns: dict[str, Any]
    pes: Ints
    """The PE of each piece."""
    firsts: Ints
    """The index of each piece's first SEB in its timeline."""
    counts: Ints
    """The number of rows of each level in each piece, shape (pieces, levels)."""
    latest_s: float
    names: list[bytes]
    events: tuple[str, ...]


def columns_of(
    loaded: LoadedBlock, params: ParamRecords, given_s: Floats, *, predicts: bool
) -> BlockColumns:
    """Return the columns of a block, given its param records and their predicted seconds.

    Raise `DamagedLogError` for damage, and for times that are not finite.
    """
    block = records_of(loaded)
    refuse_infinite(block)
    sebs, messages, backward = block.sebs, block.messages, block.backward
    start, end = sebs["start_time"], sebs["end_time"]
    duration_s = np.where(end >= start, np.maximum(sebs["exec_time"], 0.0), 0.0)
    regions = BlockRegions.of(block, params, given_s, duration_s, predicts=predicts)
    spent = regions.durations(duration_s)
    since_s = messages["send_time"] - start[messages.seb]
    sent = regions.split(messages.seb, since_s, duration_s)
    names = NameTable()
    depends = block.counts[:, 2] > 0
    columns = {
        "sebs.scaled_s": spent[0],
        "sebs.fixed_s": spent[1] if predicts else np.empty(0),
        "sebs.name": names.add(sebs).astype(np.int32),
        "sebs.follows": (block.index > 0)
        & (sebs["msg_id"] < 0)
        & (~depends | (sebs["recv_time"] != -1.0)),
        "sebs.source": sebs["src_pe"],
        "sebs.number": sebs["msg_id"],
        "sebs.messages": block.counts[:, 0].astype(np.int32),
        "sebs.dependencies": block.counts[:, 2].astype(np.int32),
        "sebs.cut": regions.cut,
        "messages.scaled_s": sent[0],
        "messages.fixed_s": sent[1] if predicts else np.empty(0),
        "messages.transit_s": messages["recv_time"] - messages["send_time"],
        "messages.size_bytes": messages["size"],
        "messages.number": messages["msg_id"],
        "messages.node": messages["dst_node"],
        "messages.worker": messages["tid"],
        "backward.other": backward["other"],
        **regions.columns(block, params.event),
    }
    of_rows = (np.arange(len(sebs)), messages.seb, backward.seb, regions.paired.seb)
    counts = [np.bincount(block.piece[of], minlength=len(block.walked)) for of in of_rows]
    return BlockColumns(
        columns,
        loaded.pes.copy(),
        loaded.pieces.firsts.copy(),
        np.column_stack(counts),
        float(end.max(initial=0.0)),
        names.names,
        params.events,
    )


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

_MOST = np.iinfo(np.int32).max

Name = TypeVar("Name", str, bytes)


def _parts_of(
    folder: ParamFolder, predictor: Predictor, strict: bool, parts: Iterator[LoadedBlock]
) -> list[BlockColumns]:
    """Return the columns of each part of a block."""
    columns_of_parts = []
    for loaded in parts:
        params, _ = read_params(folder, loaded, strict=strict, columns=predictor.columns)
        given_s = predictor.predict(params, loaded.pes).given_s
        of_part = columns_of(loaded, params, given_s, predicts=predictor.predicts)
        for name, column in of_part.columns.items():
            if column.base is not None:  # it would keep all of that
                of_part.columns[name] = column.copy()
        columns_of_parts.append(of_part)
    return columns_of_parts


def load_workload(logs: LogSet, predictor: Predictor, options: DurationOptions) -> Workload:
    """Load a log set for replays, with a model's durations for bracketed regions.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    or `ModelError`.
    """
    params = list_params(options.params or logs.folder)
    work = partial(_parts_of, params, predictor, options.strict)
    with limited_to(options.jobs):
        blocks = logs.map(work, blocks=plan_in_turn(logs.files))
        return _Assembly(logs, list(chain.from_iterable(blocks))).workload()


class _Assembly:
    """Assembles the parts of all blocks in the order of the PEs; they lose their columns."""

    def __init__(self, logs: LogSet, parts: list[BlockColumns]) -> None:
        self._logs, self._parts = logs, parts
        pes, firsts, counts = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("pes", "firsts", "counts")
        )
        self._order = np.lexsort((firsts, pes))
        self._counts, self._pes = counts, pes
        sizes = counts.sum(axis=0).tolist()
        if max(sizes) >= _MOST:
            raise RewriteLogError(
                f"{logs.folder}: a replay takes at most {_MOST:,} SEBs, messages and "
                f"dependencies; the log set has {max(sizes):,}"
            )
        self._places: dict[str, Ints] = {}
        """Where the rows of a level are in the parts, in the order of the PEs."""
        total = logs.summary.total_pes
        of_pe = np.bincount(pes, counts[:, 0], minlength=total).astype(np.int64)
        self.first_of_pe = _first(of_pe)

    def column(self, name: str) -> Any:
        """Return a column of all parts."""
        joined = np.concatenate([part.columns.pop(name) for part in self._parts])
        _give_back(0)
        level = name.partition(".")[0]
        if (np.diff(self._order) > 0).all():
            return joined
        if level not in self._places:
            counts = self._counts[:, LEVELS.index(level)]
            begins = np.cumsum(counts) - counts
            self._places[level] = spans(begins[self._order], counts[self._order])
        places = self._places[level]
        return joined[places] if len(joined) == len(places) else joined

    def done_with(self, level: str) -> None:
        """Forget where the rows of a level are, which takes memory."""
        self._places.pop(level, None)

    def recode(self, column: str, lists: list[list[Name]]) -> list[Name]:
        """Give each name the same number in all parts; return the sorted names."""
        every = sorted({name for names in lists for name in names})
        numbers = {name: number for number, name in enumerate(every)}
        for part, names in zip(self._parts, lists, strict=True):
            codes = np.array([numbers[name] for name in names], dtype=np.int32)
            if names:
                part.columns[column] = codes[part.columns[column]]
        return every

    def workload(self) -> Workload:
        """Return the assembled workload."""
        names = self.recode("sebs.name", [part.names for part in self._parts])
        events = self.recode("regions.event", [list(part.events) for part in self._parts])
        regions = self._regions()
        sebs, messages, irregular = self._linked()
        return Workload(
            sebs,
            messages,
            regions,
            names=tuple(name.decode("utf-8", "backslashreplace") for name in names),
            events=tuple(events),
            workers=self._logs.summary.num_wth,
            recorded_s=max((part.latest_s for part in self._parts), default=0.0),
            irregular=irregular,
        )

    def _regions(self) -> PairedRegions:
        """Return the middle regions, with the numbers of their SEBs in the log set."""
        columns = {
            field.name: self.column(f"regions.{field.name}") for field in fields(PairedRegions)
        }
        counts = self._counts[self._order, LEVELS.index("regions")]
        pe = np.repeat(self._pes[self._order], counts)
        columns["seb"] = (self.first_of_pe[pe] + columns["seb"]).astype(np.int32)
        return PairedRegions(**columns)

    def _linked(self) -> tuple[Sebs, Messages, Irregularities]:
        """Return SEBs and messages with the links between them, and their irregularities."""
        count = int(self.first_of_pe[-1])
        pe = np.repeat(
            np.arange(len(self.first_of_pe) - 1, dtype=np.int32), np.diff(self.first_of_pe)
        )
        first_message = _first(self.column("sebs.messages"))
        bounds = first_message[self.first_of_pe]
        sent = Starters.of(self.column("messages.number"), bounds)
        source, number = self.column("sebs.source"), self.column("sebs.number")
        starter = sent.find(source, number)
        not_sent = np.flatnonzero(starter == NOT_SENT).astype(np.int32)
        not_sent_ids = np.column_stack([source[not_sent], number[not_sent]])
        del source, number
        misaddressed = sent.misaddressed(
            starter,
            pe,
            self.column("messages.node"),
            self.column("messages.worker"),
            self._logs.summary.num_wth,
        )
        waiting, beyond, inputs = self._waiting(pe)
        inputs += starter != NO_MESSAGE
        cut = np.flatnonzero(self.column("sebs.cut"))
        links = np.empty(count + 1, dtype=core.structs["seb_links"])
        links["first_message"], links["first_waiting"] = first_message, waiting[0]
        columns = {name: self.column(f"sebs.{name}") for name in ("scaled_s", "fixed_s", "name")}
        self.done_with("sebs")
        sebs = Sebs(
            **columns,
            pe=pe,
            starter=starter,
            inputs=inputs,
            links=links,
            waiting=waiting[1],
            first_of_pe=self.first_of_pe.astype(np.int32),
        )
        receivers = np.flatnonzero(starter >= 0).astype(np.int32)
        receivers_of = grouped(starter[receivers], receivers, int(first_message[-1]))
        names = ("scaled_s", "fixed_s", "transit_s", "size_bytes")
        kept = {name: self.column(f"messages.{name}") for name in names}
        messages = Messages(**kept, first_receiver=receivers_of[0], receivers=receivers_of[1])
        irregular = Irregularities(
            not_sent=not_sent,
            not_sent_ids=not_sent_ids,
            beyond=beyond,
            misaddressed=len(misaddressed),
            misaddressed_example=int(misaddressed[0]) if len(misaddressed) else -1,
            repeated_numbers=sent.repeated,
            negative_transit=int(np.count_nonzero(~(messages.transit_s >= 0))),
            cut=len(cut),
            cut_example=int(cut[0]) if len(cut) else -1,
        )
        return sebs, messages, irregular

    def _waiting(self, pe: Numbers) -> tuple[tuple[Numbers, Numbers], Numbers, Numbers]:
        """Return the SEBs that wait for the end of each one, grouped by it.

        Then those that depend on a SEB beyond their timeline, with its index, and the number of
        ends that each SEB waits for.
        """
        depends, follows = self.column("sebs.dependencies"), self.column("sebs.follows")
        owner = np.repeat(np.arange(len(pe), dtype=np.int32), depends)
        other = self.column("backward.other")
        self.done_with("backward")
        base = self.first_of_pe[pe[owner]]
        length = self.first_of_pe[pe[owner] + 1] - base
        exists = (other >= 0) & (other < length)
        beyond = np.column_stack([owner[~exists], other[~exists]])
        following = np.flatnonzero(follows)
        awaited = np.concatenate([(base + other)[exists], following - 1]).astype(np.int32)
        waiting = np.concatenate([owner[exists], -1 - following]).astype(np.int32)
        return grouped(awaited, waiting, len(pe)), beyond, depends + follows


def _first(counts: Any) -> Ints:
    """Return the sum of the counts before each element, and of all."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
