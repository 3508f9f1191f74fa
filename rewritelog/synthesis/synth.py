"""Synthetic log sets of any size, which resemble real ones and violate no rule of `check`.

`program` determines what the SEBs do and when. The bytes of a SEB are a copy of the record of its
row, with the fields put in that differ from SEB to SEB; times become seconds here.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, structs

from rewritelog.arrays import Bytes, Flags, Ints, Keys, Table, spans
from rewritelog.commands.logs import SynthCommand
from rewritelog.formats.bgtrace.declaration import (
    COUNT_BYTES,
    INTEGER_FORMATS,
    MAGIC,
    ByteOrder,
    Layout,
    layout,
    summary_struct,
)
from rewritelog.formats.bgtrace.heads import Summary, pes_of_file, timeline_file_head
from rewritelog.formats.bgtrace.records import Records
from rewritelog.output.folders import new_folder
from rewritelog.progress import report_progress
from rewritelog.running.engines import cores, in_threads
from rewritelog.stopping import raise_if_stopped
from rewritelog.synthesis.plan import program_of
from rewritelog.synthesis.program import PARAM_DRAW, SyntheticProgram, send_offset, timing_lines
from rewritelog.text import Readable, bytes_text, count_text

_HEADER_VERSION = 1


@dataclass(frozen=True, repr=False)
class Synthesis(Readable):
    """The size of a synthetic log set."""

    pes: int
    sebs: int
    messages: int
    records: int
    """The number of param records."""
    bytes: int
    """The total size of the timeline files."""
    seconds: float
    """The time that the synthesis took."""

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as a JSON object."""
        return asdict(self)

    def text(self) -> str:
        """Return the numbers as text."""
        return (
            f"{count_text(self.pes, 'PE')}, {count_text(self.sebs, 'SEB')}, "
            f"{count_text(self.messages, 'message')}, "
            f"{count_text(self.records, 'param record')}, {bytes_text(self.bytes)} of timelines "
            f"in {self.seconds:.1f} s"
        )


def synthesise(options: SynthCommand) -> Synthesis:
    """Write a synthetic log set: timelines, param files and `timings.txt`.

    The same options produce the same bytes on every machine. Raise `UsageError` if a timeline would
    be too large, and `OutputError` as `new_folder` does.
    """
    began = time.perf_counter()
    program = program_of(options)
    summary = _summary(options, program)
    with new_folder(options.out, force=options.force, flush=not options.no_flush) as draft:
        fields = {**structs.asdict(summary), "machine": _machine(summary.order)}
        (draft / "bgTrace").write_bytes(summary_struct(summary.order).build(fields))
        timings = "".join(timing_lines(options.seed, options.timings, program.kernels))
        (draft / "timings.txt").write_text(timings, encoding="ascii")
        lay = layout(options.log_version, options.byte_order)
        batches = BatchWriter(program, lay)
        write = partial(_write_file, draft, batches, summary, count(1))
        files = options.timeline_files
        threads, context = min(files, cores()), copy_context()  # with the listener to progress
        writing = (partial(context.copy().run, write, index) for index in range(files))
        parts = list(in_threads(operator.call, writing, threads))
    sebs, messages, records, size = map(sum, zip(*parts, strict=True))
    seconds = time.perf_counter() - began
    return Synthesis(options.pes, sebs, messages, records, size, seconds)


def _summary(options: SynthCommand, program: SyntheticProgram) -> Summary:
    return Summary(
        order=options.byte_order,
        header_version=_HEADER_VERSION,
        total_pes=options.pes,
        **dict(zip("xyz", program.shape, strict=True)),
        num_cth=1,
        num_wth=options.wth,
        stack_size=0,
        timing_method=2,
        files=options.timeline_files,
        log_version=options.log_version,
        thread_entry_point=1,
    )


_SIZES = {
    "char_size": 1, "short_size": 2, "int_size": 4, "long_size": 8, "int128_size": 16,
    "float_size": 4, "double_size": 8, "bool_size": 1, "pointer_size": 8,
}  # fmt: skip


def _machine(order: ByteOrder) -> dict[str, object]:
    """Return the machine header of usual 64-bit machines."""
    number_format = INTEGER_FORMATS[order]
    sizes = {**_SIZES, "integer_format": number_format, "float_format": number_format}
    return {"magic": MAGIC, "header_version": _HEADER_VERSION, "sizes": sizes}


def _write_file(
    folder: Path, writer: BatchWriter, summary: Summary, numbers: Iterator[int], index: int
) -> tuple[int, int, int, int]:
    """Write a timeline file and the param files of its PEs.

    `numbers` counts the PEs that all threads have written, for the progress. Return the numbers of
    SEBs, messages, param records and bytes.
    """
    pes = pes_of_file(summary, index)
    totals = np.zeros(3, dtype=np.int64)
    begins = []
    with (folder / f"bgTrace{index}").open("xb") as file:
        file.write(timeline_file_head(_machine(summary.order), [0] * len(pes), summary.order))
        for batch in writer.batches(pes):
            raise_if_stopped()
            for begin in batch.begins:
                report_progress("writing PE", next(numbers), summary.total_pes)
                begins.append(file.tell() + begin)
            file.write(batch.data)
            for pe, lines in batch.params:
                with (folder / f"param.{pe}").open("ab") as params:
                    params.write(lines.encode())
            totals += (batch.sebs, batch.messages, batch.records)
        size = file.tell()
        file.seek(0)
        file.write(timeline_file_head(_machine(summary.order), begins, summary.order))
    sebs, messages, records = totals.tolist()
    return sebs, messages, records, size


BATCH_SEBS = 16_384
"""About this many SEBs are made at a time."""

_NS_PER_S = 1e9


class Batch(NamedTuple):
    """The bytes of consecutive SEBs of one or several timelines, with their SEB counts."""

    data: bytearray
    begins: list[int]
    """The offsets of the timelines that begin here."""
    params: list[tuple[int, str]]
    """The param lines of PEs."""
    sebs: int
    messages: int
    records: int


class _Sebs(Struct, frozen=True):
    """SEBs of one or several PEs, in the order of the timelines."""

    pe: Ints
    iteration: Ints
    index: Ints
    position: Ints
    """The position over all iterations; for an extra SEB, that of the next one."""
    total: Ints
    """The number of SEBs of the PE."""
    row: Ints
    keys: Keys


class BatchWriter(Struct, frozen=True):
    """Makes the batches of some PEs."""

    program: SyntheticProgram
    layout: Layout

    def batches(self, pes: Ints) -> Iterator[Batch]:
        """Yield the timelines of PEs, in this order, in batches that end where iterations end."""
        iterations = self.program.iterations
        at_once = max(1, BATCH_SEBS // self.program.slots)
        several = max(1, at_once // iterations)
        for first in range(0, len(pes), several):
            chosen = pes[first : first + several]
            pe = np.repeat(chosen, iterations)
            iteration = np.tile(np.arange(iterations), len(chosen))
            extra = self.program.has_extra(pe, iteration)
            counts = extra.reshape(len(chosen), iterations).cumsum(axis=1)
            index = iteration * self.program.slots + counts.reshape(-1) - extra
            total = np.repeat(self.program.length + counts[:, -1], iterations)
            for begin in range(0, len(pe), at_once):
                part = slice(begin, begin + at_once)
                columns = (pe[part], iteration[part], index[part], total[part], extra[part])
                yield self._batch(self._sebs(*columns))

    def _sebs(self, pe: Ints, iteration: Ints, first: Ints, total: Ints, extra: Flags) -> _Sebs:
        """Return the SEBs of iterations of PEs.

        `first` are the indices of their first SEBs, `total` the numbers of SEBs of the PEs, and
        `extra` says which have an extra one.
        """
        program = self.program
        plain = np.minimum(program.slots, program.length - iteration * program.slots)
        sizes = plain + extra
        unit = np.repeat(np.arange(len(sizes)), sizes)
        within = spans(0, sizes)
        pe, iteration = pe[unit], iteration[unit]
        position = iteration * program.slots + within
        is_extra = within == plain[unit]
        row = np.where(is_extra, program.slots, within)
        row[(pe == 0) & (position == 0)] = program.slots + 1
        keys = program.keys(pe, position)
        keys[is_extra] = program.extra_keys(pe[is_extra], iteration[is_extra])
        return _Sebs(pe, iteration, first[unit] + within, position, total[unit], row, keys)

    def _batch(self, sebs: _Sebs) -> Batch:
        rows = self.program.rows[sebs.row]
        regions = self.program.regions(sebs.row, sebs.keys)
        start = self.program.start_ns(sebs.row, sebs.iteration, sebs.keys)
        left = np.maximum(self.program.length - sebs.position - 1, 0)
        forward = np.minimum(rows["forward"], left)
        data, at, ends = self._copies(sebs, rows["forward"] - forward)
        buffer = np.frombuffer(data, dtype=np.uint8)
        heads = _places(buffer, self.layout.seb, at)
        heads.put("seqno", sebs.index)
        begin, end = start / _NS_PER_S, (start + regions.sum(axis=0)) / _NS_PER_S
        unclosed = (sebs.pe == 0) & (sebs.index == sebs.total - 1)
        heads.put("start_time", begin)
        heads.put("exec_time", np.where(unclosed, 0.0, end - begin))
        heads.put("end_time", np.where(unclosed, -1.0, end))
        self._put_starters(heads, sebs, rows, start)
        messages = self._put_messages(buffer, at, sebs, rows, regions, start)
        self._put_event_times(buffer, at, rows, regions, start)
        self._put_dependencies(buffer, ends, sebs.index, rows["backward"], forward)
        lines = self._param_lines(sebs, rows["event"])
        begins = (at[sebs.index == 0] - COUNT_BYTES).tolist()
        return Batch(data, begins, lines, len(at), messages, int((rows["event"] >= 0).sum()))

    def _copies(self, sebs: _Sebs, unused: Ints) -> tuple[bytearray, Ints, Ints]:
        """Return copies of the rows' SEBs, where each begins, and where its dependencies end.

        `unused` forward dependencies at the end of a SEB are left out. The SEB count of a PE
        precedes its first SEB.
        """
        records = self.program.records
        parts = [records[row] for row in sebs.row.tolist()]
        for k in np.flatnonzero(unused).tolist():
            parts[k] = parts[k][: -COUNT_BYTES * int(unused[k])]
        sizes = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
        begins = np.flatnonzero(sebs.index == 0)
        counts = sebs.total[begins].astype(self.layout.count).view(f"V{COUNT_BYTES}")
        for k, head in zip(begins.tolist(), counts.tolist(), strict=True):
            parts[k] = head + parts[k]
        ends = np.cumsum(sizes + COUNT_BYTES * (sebs.index == 0))
        return bytearray().join(parts), ends - sizes, ends

    def _put_starters(self, heads: Records, sebs: _Sebs, rows: Table, start: Ints) -> None:
        """Put in starting messages and receive times; SEBs with dependencies have their chain's."""
        first = sebs.position == 0
        root = ~first & (rows["root"] == 1)
        started = np.flatnonzero(~first & ~root & (rows["started"] >= 0))
        columns = (sebs.pe[started], sebs.iteration[started], rows["started"][started])
        sender, number, received = self._starting_messages(*columns)
        heads.put("src_pe", sender, started)
        heads.put("msg_id", number, started)
        effective = np.where(root, start, 0)
        effective[started] = received
        depends = ~first & ~root
        depends[started] = False
        effective = effective[np.maximum.accumulate(np.where(depends, 0, np.arange(len(first))))]
        seconds = effective / _NS_PER_S
        heads.put("recv_time", np.where(depends, -1.0, seconds))
        heads.put("eff_recv_time", seconds)

    def _starting_messages(
        self, pe: Ints, iteration: Ints, started: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Return sender, number and receive time in ns of the starting messages of SEBs.

        Those of the first iteration are broadcasts of PE 0's first SEB.
        """
        program = self.program
        slot, index_in_seb, send = program.starters[started].T
        early = iteration == 0
        direction = send % program.directions
        sender = np.where(early, 0, program.neighbours(pe, direction, -1))
        before = np.maximum(iteration - 1, 0)
        number = np.where(early, started - 1, program.numbers(sender, before, send))
        after_broadcasts = (sender == 0) & (iteration == 1) & (slot == 0)
        index_in_seb = index_in_seb + np.where(after_broadcasts, program.broadcasts, 0)
        sent = program.send_ns(
            sender, before, np.where(early, 0, slot), np.where(early, started - 1, index_in_seb)
        )
        transit = np.where(early, 0, program.latency_ns(sender, pe, direction))
        return sender, number, sent + transit

    def _put_messages(
        self, buffer: Bytes, at: Ints, sebs: _Sebs, rows: Table, regions: Ints, start: Ints
    ) -> int:
        """Put in the messages; return their number."""
        program, lay = self.program, self.layout
        to_all = rows["broadcasts"]
        counts = to_all + rows["sends"]
        seb = np.repeat(np.arange(len(counts)), counts)
        index_in_seb = spans(0, counts)
        sent = start[seb] + send_offset(regions[:, seb], index_in_seb, counts[seb])
        number, received = index_in_seb.copy(), sent.copy()
        own = np.flatnonzero(index_in_seb >= to_all[seb])
        pe, iteration = sebs.pe[seb[own]], sebs.iteration[seb[own]]
        send = rows["first_send"][seb[own]] + (index_in_seb - to_all[seb])[own]
        direction = send % program.directions
        receiver = program.neighbours(pe, direction, 1)
        number[own] = program.numbers(pe, iteration, send)
        received[own] += program.latency_ns(pe, receiver, direction)
        first = at + lay.seb.itemsize + COUNT_BYTES
        messages = _places(buffer, lay.message, first[seb] + index_in_seb * lay.message.itemsize)
        messages.put("dst_node", receiver // program.workers, own)
        messages.put("tid", receiver % program.workers, own)
        messages.put("msg_id", number)
        messages.put("send_time", sent / _NS_PER_S)
        messages.put("recv_time", received / _NS_PER_S)
        return len(seb)

    def _put_event_times(
        self, buffer: Bytes, at: Ints, rows: Table, regions: Ints, start: Ints
    ) -> None:
        """Put in the times of log events: the bounds of the bracket, or the middle of the SEB."""
        begin, middle, _ = regions
        half = np.where(rows["event"] >= 0, begin, begin // 2)
        kind = np.dtype([("time", self.layout.event["r_time"])])
        for name, offset in (("time_1", half), ("time_2", begin + middle)):
            which = np.flatnonzero(rows[name] > 0)
            times = (start + offset) / _NS_PER_S - start / _NS_PER_S
            _places(buffer, kind, (at + rows[name])[which]).put("time", times[which])

    def _put_dependencies(
        self, buffer: Bytes, ends: Ints, index: Ints, backward: Ints, forward: Ints
    ) -> None:
        """Put in the lists at the ends of SEBs: backward, then forward dependencies."""
        kind = np.dtype([("other", self.layout.count)])
        begin = ends - COUNT_BYTES * (forward + 1)
        _places(buffer, kind, begin).put("other", forward)
        for counts, step in ((backward, -1), (forward, 1)):
            for k in range(1, int(counts.max(initial=0)) + 1):
                which = np.flatnonzero(counts >= k)
                places = _places(buffer, kind, (begin + step * k * COUNT_BYTES)[which])
                places.put("other", index[which] + step * k)

    def _param_lines(self, sebs: _Sebs, event: Ints) -> list[tuple[int, str]]:
        """Return the param lines of each PE with brackets."""
        marked = np.flatnonzero(event >= 0)
        values = self.program.kernels.params(event[marked], sebs.keys[marked], PARAM_DRAW)
        columns = (sebs.pe[marked], sebs.index[marked], event[marked], values)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [
            (pe, "".join(self._line(*row) for _, *row in of_pe))
            for pe, of_pe in groupby(rows, key=lambda row: row[0])
        ]

    def _line(self, index: int, kernel: int, values: list[int]) -> str:
        kernels = self.program.kernels
        params = "".join(f"{value}.000000 " for value in values[: kernels.parameters[kernel]])
        return (
            f"{index} TRACEBIGSIM: event:{{ {kernels.names[kernel]} }} seqno: {{ {index} }}    "
            f"params:{{ {params}}}\n"
        )


def _places(buffer: Bytes, dtype: np.dtype[Any], at: Ints) -> Records:
    """Return records of one kind in a buffer, to put fields in."""
    return Records(buffer, dtype, dtype, at, at)
