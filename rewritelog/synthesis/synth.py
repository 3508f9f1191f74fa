"""Synthetic log sets of any size, which resemble real ones and violate no rule of `check`."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from contextvars import copy_context
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.commands.logs import SynthCommand
from rewritelog.formats.bgtrace.declaration import (
    MAGIC,
    ByteOrder,
    layout,
    summary_struct,
)
from rewritelog.formats.bgtrace.heads import Summary, pes_of_file, timeline_file_head
from rewritelog.output.folders import new_folder
from rewritelog.progress import report_progress
from rewritelog.running.engines import cores, in_threads
from rewritelog.stopping import raise_if_stopped
from rewritelog.synthesis.plan import program_of
from rewritelog.synthesis.program import SyntheticProgram, timing_lines
from rewritelog.synthesis.write import BatchWriter
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
    """The time that it took."""

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
        fields = {**vars(summary), "machine": _machine(summary.order)}
        (draft / "bgTrace").write_bytes(summary_struct(summary.order).build(fields))
        timings = "".join(timing_lines(options.seed, options.timings, program.kernels))
        (draft / "timings.txt").write_text(timings, encoding="ascii")
        lay = layout(options.log_version, options.byte_order)
        batches = BatchWriter(program, lay)
        write = partial(_write_file, draft, batches, summary, count(1))
        files = options.timeline_files
        threads, context = min(files, cores()), copy_context()  # the listener to progress
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
    number_format = 1 if order == "little" else 0
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
