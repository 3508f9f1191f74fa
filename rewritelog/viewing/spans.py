"""SEBs and brackets of a log set or of a replay, with names, events and times, and messages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from msgspec import Struct, field

from rewritelog.arrays import Flags, Floats, Ints, Table, occurrences_before, pair_keys
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.bgtrace.params import Paired, ParamFolder, ParamNotes, read_params
from rewritelog.formats.bgtrace.records import MESSAGE_ROW, Records, message_rows, records_of
from rewritelog.formats.traces import Events, first_start_us
from rewritelog.replaying.replay import ReplayedRun
from rewritelog.running.locks import cached_property
from rewritelog.text import NO_NAME, printable


class Spans(Struct, frozen=True, dict=True):
    """SEBs and brackets with absolute times: those of a part of a block, or of a replay.

    The columns have rows for all SEBs, and then for all brackets.
    """

    labels: Sequence[str]
    """Names of SEBs, and then events, all made printable."""
    name_count: int
    """How many of the labels are names."""
    seb_count: int
    """How many of the rows are SEBs."""
    pe: Ints
    seb: Ints
    """The index of the SEB in its timeline, or of the node in its file."""
    start_s: Floats
    end_s: Floats
    label: Ints
    """Index into `labels`; −1 for a bracket whose event no param record names."""
    seb_row: Ints
    """The row of the SEB itself, or of a bracket's SEB."""
    malformed: int = 0
    """The number of malformed param lines."""

    @classmethod
    def _of(
        cls,
        names: Iterable[str | bytes],
        sebs: tuple[Ints, Ints, Floats, Floats, Ints],
        events: Iterable[str] = (),
        brackets: tuple[Ints, Floats, Floats, Ints] | None = None,
        malformed: int = 0,
    ) -> Spans:
        """Join `sebs`: pe, seb, start_s, end_s, name; and `brackets`: of, start_s, end_s, event."""
        pe, seb, start_s, end_s, name = sebs
        labels = [printable(text) or NO_NAME for text in names]
        count, seb_row = len(labels), np.arange(len(pe))
        if brackets is not None:
            seb_row = np.append(seb_row, brackets[0])
            start_s, end_s = np.append(start_s, brackets[1]), np.append(end_s, brackets[2])
            event = brackets[3].astype(np.int64)
            name = np.append(name, np.where(event < 0, -1, event + count))
            labels += [printable(text) for text in events]
        rows = pe[seb_row], seb[seb_row], start_s, end_s, name, seb_row
        return cls(labels, count, len(pe), *rows, malformed)

    @classmethod
    def of_block(cls, loaded: LoadedBlock, params: ParamFolder | None) -> Spans:
        """Return the spans of a part of a block; without params, no event is known."""
        block = records_of(loaded)
        names, name = block.names
        start_s, end_s = block.sebs["start_time"], block.sebs["end_time"]
        sebs = block.pe, block.index, start_s, end_s, name
        brackets, events, notes = block.brackets, tuple[str, ...](), ParamNotes()
        seb_row, times, event = brackets.seb, brackets.times, np.full(len(brackets), -1)
        if params is not None and params.pes:
            records, notes = read_params(params, loaded, strict=False)
            paired, events = Paired.of(block, records), records.events
            rest = ~np.isin(seb_row, paired.seb)
            seb_row = np.append(paired.seb, seb_row[rest])
            times = np.concatenate([paired.times(block), times[rest]])
            event = np.append(records.event[paired.record], event[rest])
        with np.errstate(over="ignore", invalid="ignore"):
            begins_s, ends_s = start_s[seb_row] + times.T
        return cls._of(names, sebs, events, (seb_row, begins_s, ends_s, event), notes.malformed)

    @classmethod
    def of_replay(cls, outcome: ReplayedRun) -> Spans:
        """Return the spans of a replay, with the brackets that have a param record."""
        workload, times = outcome.workload, outcome.times
        sebs, regions = workload.sebs, workload.regions
        index = workload.places_of(np.arange(len(sebs)))[1]
        after_s, lengths_s = outcome.regions_s
        begins_s = times.start_s[regions.seb] + after_s
        brackets = regions.seb, begins_s, begins_s + lengths_s, regions.event
        columns = sebs.pe, index, times.start_s, times.end_s, sebs.name
        malformed = workload.unused["malformed"]
        return cls._of(workload.names, columns, workload.events, brackets, malformed)

    @classmethod
    def of_events(cls, events: Events, lane: Ints) -> Spans:
        """Return the spans of nodes of traces, in seconds since their first start.

        `lane` is the thread, stream or network of each.
        """
        start_us = events["start_us"]
        since_first_us = start_us - np.uint64(first_start_us([events]))
        start_s = np.where(start_us > 0, since_first_us / 1e6, np.nan)
        end_s, names = start_s + events["duration_s"], events["name"]
        return cls._of(names.distinct, (lane, events["number"], start_s, end_s, names.number))

    @cached_property
    def finite(self) -> Flags:
        """Whether each row is a SEB with finite times, or a bracket in one."""
        return (np.isfinite(self.start_s) & np.isfinite(self.end_s))[self.seb_row]

    @cached_property
    def closed(self) -> Flags:
        """Whether each row is a SEB that is also closed, or a bracket in one."""
        return self.finite & (self.end_s >= self.start_s)[self.seb_row]

    def extent(self, drawn: Flags, window: tuple[float, float]) -> Extent:
        """Return the first start and last end, and the seconds of each name and event in a picture.

        `drawn` says which PEs are drawn, in the time window.
        """
        start_s, end_s = self.start_s[: self.seb_count], self.end_s[: self.seb_count]
        named = self.closed & (self.label >= 0) & drawn[self.pe]
        with np.errstate(over="ignore", invalid="ignore"):
            seconds = np.minimum(self.end_s, window[1]) - np.maximum(self.start_s, window[0])
        seconds = np.maximum(seconds[named], 0.0)
        sums = np.bincount(self.label[named], seconds, len(self.labels)).tolist()
        name_s, event_s = Counter[str](), Counter[str]()
        for number, (label, total) in enumerate(zip(self.labels, sums, strict=True)):
            (name_s if number < self.name_count else event_s)[label] += total
        return Extent(
            float(start_s[self.finite[: self.seb_count]].min(initial=math.inf)),
            float(end_s[self.closed[: self.seb_count]].max(initial=-math.inf)),
            name_s,
            event_s,
            self.malformed,
        )


class Extent(Struct, frozen=True):
    """First start, last end, and the drawn seconds of each SEB name and of each event."""

    earliest_s: float = math.inf
    latest_s: float = -math.inf
    name_s: Counter[str] = field(default_factory=Counter)
    event_s: Counter[str] = field(default_factory=Counter)
    malformed: int = 0
    """The number of malformed param lines."""

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            min(self.earliest_s, other.earliest_s),
            max(self.latest_s, other.latest_s),
            self.name_s + other.name_s,
            self.event_s + other.event_s,
            self.malformed + other.malformed,
        )


MOST_MESSAGES = 2_000
"""At most this many messages, a random sample by seed, are drawn."""


class MessageLines(Struct, frozen=True):
    """Lines between PEs of a figure, one for each PE on which a drawn message starts a SEB.

    Where they begin and end is in rows, from the top.
    """

    from_row: Floats
    to_row: Floats
    sent_s: Floats
    arrived_s: Floats
    in_window: int
    """Messages in the window, drawn or not."""
    drawn: int
    """Messages chosen to be drawn."""


def message_lines(
    logs: LogSet, outcome: ReplayedRun | None, rows: Floats, window: tuple[float, float], seed: int
) -> MessageLines:
    """Return the lines of the messages sent in a time window, of the log or as in a replay.

    `rows` are the places of the PEs, −1 for those that are not drawn. Reads the log twice: for the
    messages, and for the SEBs that the chosen messages start.
    """
    if outcome is not None:
        return _replayed_lines(outcome, rows, window, seed)
    draw, count = np.random.default_rng(seed), 0
    chosen, numbers = np.empty(0, MESSAGE_ROW), np.empty(0)
    for of_unit in logs.map(partial(_sent, rows, logs.summary.num_wth, window)):
        count += len(of_unit)
        numbers = np.append(numbers, draw.random(len(of_unit)))
        first = np.argsort(numbers, kind="stable")[:MOST_MESSAGES]
        chosen, numbers = np.append(chosen, of_unit)[first], numbers[first]
    keys = pair_keys(chosen["pe"], chosen["msg_id"])
    order = np.argsort(keys, kind="stable")
    blocks = list(logs.map(partial(_started, keys[order], rows)))
    place, to_row = (np.concatenate(columns) for columns in zip(*blocks, strict=True))
    message = chosen[order[place]]
    times = message["send_time"], message["recv_time"]
    return MessageLines(rows[message["pe"]], to_row, *times, count, len(chosen))


def _sent(
    rows: Floats, workers: int, window: tuple[float, float], parts: Iterator[LoadedBlock], /
) -> Table:
    """Return the messages of a block sent in the time window between PEs that are drawn.

    As in a replay, of several with the same number the first one starts SEBs; others are left out.
    """
    messages, shown, keys = list[Table](), list[Flags](), list[Ints]()
    for part in parts:
        block = records_of(part)
        pe, sent = block.pe[block.messages.seb], block.messages["send_time"]
        inside = (rows[pe] >= 0) & (sent >= window[0]) & (sent <= window[1])
        inside &= _goes_to(rows, workers, block.messages)
        messages.append(message_rows(block)[inside])
        shown.append(inside)
        keys.append(pair_keys(pe, block.messages["msg_id"]))
    first: Flags = occurrences_before(np.concatenate(keys)) == 0
    return np.concatenate(messages)[first[np.concatenate(shown)]]


def _goes_to(rows: Floats, workers: int, messages: Records) -> Flags:
    """Return which messages go to a PE that is drawn, as any to several nodes may (FORMAT 4)."""
    node, worker = messages["dst_node"].astype(np.int64), messages["tid"]
    begin = node * workers + np.maximum(worker, 0)
    ends = begin, begin + np.where(worker < 0, workers, 1)
    drawn = np.append(0, np.cumsum(rows >= 0))
    before = (drawn[np.clip(end, 0, len(rows))] for end in ends)
    return np.asarray((node < 0) | np.not_equal(*before))


def _started(keys: Ints, rows: Floats, parts: Iterator[LoadedBlock], /) -> tuple[Ints, Floats]:
    """Return, for SEBs that messages start, the message's place in `keys` and the SEB's row."""
    places, to_rows = [], []
    for part in parts:
        block = records_of(part)
        named = pair_keys(block.sebs["src_pe"], block.sebs["msg_id"])
        place, row = np.searchsorted(keys, named), rows[block.pe]
        hit = (row >= 0) & (place < len(keys))
        hit[hit] = keys[place[hit]] == named[hit]
        places.append(place[hit])
        to_rows.append(row[hit])
    return np.concatenate(places), np.concatenate(to_rows)


def _replayed_lines(
    outcome: ReplayedRun, rows: Floats, window: tuple[float, float], seed: int
) -> MessageLines:
    sebs, times = outcome.workload.sebs, outcome.times
    message = sebs.starter
    to = np.flatnonzero((message >= 0) & ~np.isnan(times.start_s))
    sender = sebs.senders(message[to])
    sent_s = outcome.sent_s(sender, message[to])
    from_row, to_row = rows[sebs.pe[sender]], rows[sebs.pe[to]]
    inside = (sent_s >= window[0]) & (sent_s <= window[1]) & (from_row >= 0) & (to_row >= 0)
    sent = np.unique(message[to[inside]])
    shown = sent
    if len(sent) > MOST_MESSAGES:
        shown = np.random.default_rng(seed).choice(sent, MOST_MESSAGES, replace=False)
    chosen = np.flatnonzero(inside & np.isin(message[to], shown))
    arrived_s = times.ready_s[to[chosen]]
    return MessageLines(
        from_row[chosen], to_row[chosen], sent_s[chosen], arrived_s, len(sent), len(shown)
    )
