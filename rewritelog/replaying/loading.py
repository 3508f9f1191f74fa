"""Loading of a log set for replays: columns of blocks in parallel, then assembled by PE."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.core import core
from rewritelog.errors import RewriteLogError
from rewritelog.formats.bgtrace.blocks import LoadedBlock, plan_in_turn
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import ParamFolder, list_params, read_params
from rewritelog.replaying.columns import LEVELS, BlockColumns, columns_of
from rewritelog.replaying.links import Starters, grouped, spans
from rewritelog.replaying.workload import (
    NO_MESSAGE,
    NOT_SENT,
    Irregularities,
    Messages,
    Numbers,
    PairedRegions,
    Sebs,
    Workload,
)
from rewritelog.rewriting.predicting import Predictor

_MOST = np.iinfo(np.int32).max

Name = TypeVar("Name", str, bytes)


@dataclass(frozen=True)
class _LoadTask:
    """Loads any block."""

    params: ParamFolder
    predictor: Predictor
    predicts: bool
    """Whether the model predicts from param records."""
    strict: bool

    def __call__(self, parts: Iterator[LoadedBlock], /) -> list[BlockColumns]:
        """Return the columns of each part of a block."""
        return [self._columns(part) for part in parts]

    def _columns(self, loaded: LoadedBlock) -> BlockColumns:
        columns = self.predictor.columns
        params, _ = read_params(self.params, loaded, strict=self.strict, columns=columns)
        given_s = self.predictor.predict(params, loaded.pes).given_s
        loaded_columns = columns_of(loaded, params, given_s, predicts=self.predicts)
        for name, column in loaded_columns.columns.items():
            if column.base is not None:  # it would keep all of that
                loaded_columns.columns[name] = column.copy()
        return loaded_columns


def load_workload(
    logs: LogSet,
    predictor: Predictor,
    *,
    predicts: bool,
    params: Path | None = None,
    strict: bool = False,
) -> Workload:
    """Load a log set for replays, with a model's durations for bracketed regions.

    Raise `DamagedLogError` with its location, `TimingError` for param records that cannot be used,
    or `ModelError`.
    """
    task = _LoadTask(list_params(params or logs.folder), predictor, predicts, strict)
    loaded_blocks = logs.map(task, blocks=plan_in_turn(logs.files))
    parts = [part for of_block in loaded_blocks for part in of_block]
    return _Assembly(logs, parts).workload()


class _Assembly:
    """Assembles the parts of all blocks in the order of the PEs; they lose their columns."""

    def __init__(self, logs: LogSet, parts: list[BlockColumns]) -> None:
        self._logs, self._parts = logs, parts
        pes, firsts, counts = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("pes", "firsts", "counts")
        )
        self._order = np.lexsort((firsts, pes))
        self._counts = counts
        sizes = counts.sum(axis=0).tolist()
        if max(sizes) >= _MOST:
            raise RewriteLogError(
                f"{logs.folder}: a replay takes at most {_MOST:,} SEBs, messages and "
                f"dependencies; the log set has {max(sizes):,}"
            )
        self._places: dict[str, Ints | None] = {}
        total = logs.summary.total_pes
        of_pe = np.bincount(pes, counts[:, 0], minlength=total).astype(np.int64)
        self.first_of_pe = _first(of_pe)
        self._begins = self.first_of_pe[pes] + firsts

    def column(self, name: str) -> Any:
        """Return a column of all parts."""
        joined = np.concatenate([part.columns.pop(name) for part in self._parts])
        core.give_back(0)
        level = name.partition(".")[0]
        if level not in self._places:
            self._places[level] = self._places_of(LEVELS.index(level))
        places = self._places[level]
        return joined if places is None or len(joined) != len(places) else joined[places]

    def _places_of(self, level: int) -> Ints | None:
        """Return where the rows of a level are in the parts, in the order of the PEs."""
        counts = self._counts[:, level]
        begins = np.cumsum(counts) - counts
        if (np.diff(self._order) > 0).all():
            return None
        return spans(begins[self._order], counts[self._order])

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
        done = 0
        for part in self._parts:
            of_piece = part.counts[:, LEVELS.index("regions")]
            begins = self._begins[done : done + len(part.pes)]
            shift = begins - (np.cumsum(part.counts[:, 0]) - part.counts[:, 0])
            moved = part.columns["regions.seb"] + np.repeat(shift, of_piece)
            part.columns["regions.seb"] = moved.astype(np.int32)
            done += len(part.pes)
        return PairedRegions(
            *(self.column(f"regions.{field.name}") for field in fields(PairedRegions))
        )

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
