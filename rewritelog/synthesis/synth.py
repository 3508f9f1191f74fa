"""Synthetic log sets of any size, which resemble real ones and violate no rule of `check`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.cores import cores
from rewritelog.format import KernelLayout, layout
from rewritelog.format.declaration import (
    MAGIC,
    PRIMITIVES,
    ByteOrder,
    summary_struct,
    timeline_file_struct,
)
from rewritelog.logs.summary import Summary
from rewritelog.logs.timelines import pes_of_file
from rewritelog.output import new_folder
from rewritelog.progress import report_progress
from rewritelog.synthesis.events import events_for, timing_lines
from rewritelog.synthesis.kernels import write as kernels
from rewritelog.synthesis.kernels.program import SyntheticProgram
from rewritelog.synthesis.plan import SynthOptions, check_options, program_of
from rewritelog.text import Readable, bytes_text, count_text

__all__ = ["SynthOptions", "Synthesis", "synthesise"]

_BUFFER_BYTES = 4 << 20
_TEXT_BYTES = 1 << 20
_HEADER_VERSION = 1
_OFFSET_RANGE = 1 << 32


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


def synthesise(out: Path, options: SynthOptions, *, force: bool = False) -> Synthesis:
    """Write a synthetic log set to the folder `out`: timelines, param files and `timings.txt`.

    The same options produce the same bytes on every machine. Raise `UsageError` naming the option
    for an invalid value, and `OutputError` if `out` exists (without `force`) or is not writable.
    """
    began = time.perf_counter()
    check_options(options)
    program = program_of(options)
    summary = _summary(options, program)
    with new_folder(out, force=force) as draft:
        (draft / "bgTrace").write_bytes(_summary_bytes(summary))
        timings = "".join(timing_lines(options.seed, options.timings, events_for(options.cells)))
        (draft / "timings.txt").write_text(timings, encoding="ascii")
        writer = _Writer(draft, program, layout(options.log_version, options.order).kernel, summary)
        with ThreadPoolExecutor(min(options.files, cores())) as pool:
            jobs = [
                pool.submit(copy_context().run, writer.write_file, index)
                for index in range(options.files)
            ]
            parts = [job.result() for job in jobs]
    totals = np.array(parts, dtype=np.int64).sum(axis=0)
    sebs, messages, records, size = (int(total) for total in totals)
    seconds = time.perf_counter() - began
    return Synthesis(options.pes, sebs, messages, records, size, seconds)


def _summary(options: SynthOptions, program: SyntheticProgram) -> Summary:
    return Summary(
        order=options.order,
        header_version=_HEADER_VERSION,
        total_pes=options.pes,
        x=program.x,
        y=program.y,
        z=program.z,
        num_cth=1,
        num_wth=options.wth,
        stack_size=0,
        timing_method=2,
        files=options.files,
        log_version=options.log_version,
        thread_entry_point=1,
    )


def _summary_bytes(summary: Summary) -> bytes:
    fields = {**vars(summary), "machine": _machine(summary.order)}
    return bytes(summary_struct(summary.order).build(fields))


def _machine(order: ByteOrder) -> dict[str, object]:
    """Return the machine header of usual 64-bit machines."""
    number_format = 1 if order == "little" else 0
    sizes = {
        "char_size": 1,
        "short_size": 2,
        "int_size": 4,
        "long_size": 8,
        "int128_size": 16,
        "integer_format": number_format,
        "float_size": 4,
        "double_size": 8,
        "float_format": number_format,
        "bool_size": 1,
        "pointer_size": 8,
    }
    return {"magic": MAGIC, "header_version": _HEADER_VERSION, "sizes": sizes}


def timeline_file_head(order: ByteOrder, begins: Iterable[int]) -> bytes:
    """Return the head of a timeline file, given the offsets of its timelines, which wrap at 2³²."""
    offsets = [begin % _OFFSET_RANGE for begin in begins]
    fields = {"machine": _machine(order), "count": len(offsets), "offsets": offsets}
    return bytes(timeline_file_struct(order).build(fields))


@dataclass(frozen=True)
class _Writer:
    """Writes timeline files; several threads may use it at a time."""

    folder: Path
    program: SyntheticProgram
    layout: KernelLayout
    summary: Summary
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """A counter of the PEs that all threads have written, for the progress."""

    def write_file(self, index: int) -> tuple[int, int, int, int]:
        """Write a timeline file and the param files of its PEs.

        Return the numbers of its SEBs, messages, param records and bytes.
        """
        pes = [int(pe) for pe in pes_of_file(self.summary, index)]
        integer = PRIMITIVES[self.summary.order].i4
        buffer = np.empty(max(_BUFFER_BYTES, self.program.largest), dtype=np.uint8)
        text = np.empty(_TEXT_BYTES, dtype=np.uint8)
        sebs = messages = records = 0
        begins = []
        with (self.folder / f"bgTrace{index}").open("xb") as file:
            file.write(timeline_file_head(self.summary.order, [0] * len(pes)))
            for pe in pes:
                report_progress("writing PE", next(self.numbers), self.summary.total_pes)
                begins.append(file.tell())
                total = kernels.timeline_sebs(self.program, pe)
                file.write(integer.build(total))
                state = np.zeros(kernels.STATE_SIZE, dtype=np.int64)
                while state[kernels.INDEX] < total:
                    used = kernels.write_sebs(
                        buffer, text, self.program, self.layout, pe, total, state
                    )
                    file.write(buffer[:used].data)
                    self._add_params(pe, text[: state[kernels.TEXT]])
                    state[kernels.TEXT] = 0
                sebs += total
                messages += int(state[kernels.MESSAGES])
                records += int(state[kernels.RECORDS])
            size = file.tell()
            file.seek(0)
            file.write(timeline_file_head(self.summary.order, begins))
        return sebs, messages, records, size

    def _add_params(self, pe: int, text: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
        if len(text) > 0:
            with (self.folder / f"param.{pe}").open("ab") as file:
                file.write(text.data)
