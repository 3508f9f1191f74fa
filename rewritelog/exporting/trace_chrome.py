"""Traces in Chrome's trace event format: a process for each rank, a track for each lane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.errors import UsageError
from rewritelog.exporting.exported import Exported
from rewritelog.exporting.options import ExportOptions
from rewritelog.formats.traces import Part, Traces
from rewritelog.output import new_folder
from rewritelog.replaying.network import Network
from rewritelog.replaying.options import ReplayOptions
from rewritelog.replaying.traces import prepared_task, replay_task
from rewritelog.text import count_text, printable
from rewritelog.units import chosen_pes

_US = 1e6


def export_traces(
    traces: Traces,
    out: Path,
    options: ExportOptions,
    network: Network | None = None,
    *,
    force: bool = False,
) -> Exported:
    """Write `trace.json` into a new folder, with the starts that are recorded, or of a replay."""
    if options.to != "chrome":
        raise UsageError(f"--to {options.to} is for bgTrace logs: {traces.title} have --to chrome")
    ranks = [unit.rank for unit in traces.units]
    pes = chosen_pes(options.pes, len(traces.pes))
    chosen = ranks if pes is None else [rank for rank in ranks if rank in set(pes)]
    starts = None
    if network is not None:
        task, _ = prepared_task(traces, ReplayOptions())
        starts = replay_task(task, network).starts_s
    written, left_out = 0, 0
    with new_folder(out, [unit.path for unit in traces.units], force=force) as folder:
        with (folder / "trace.json").open("x", encoding="ascii") as file:
            file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
            before = ""
            for unit in traces.units:
                if unit.rank not in chosen:
                    continue
                for part in traces.read(unit):
                    start_s = part.start_s
                    if starts is not None:
                        start_s = starts[unit.rank][part.first : part.first + len(part)]
                    lines = list(_slices(traces, part, start_s, options))
                    left_out += int(np.isnan(start_s).sum())
                    written += len(lines)
                    if lines:
                        file.write(before + ",\n".join(lines))
                        before = ",\n"
                named = {"name": "process_name", "ph": "M", "pid": unit.rank}
                file.write(before + json.dumps({**named, "args": {"name": f"rank {unit.rank}"}}))
                before = ",\n"
            file.write("\n]}\n")
        if not written and left_out:
            raise UsageError(
                f"{traces.path}: no start times are recorded, so there is no time axis: "
                "--replayed takes those of a replay"
            )
    warnings = (f"{count_text(left_out, 'node')} left out: no start is recorded",)
    return Exported(out, options.to, len(chosen), {"nodes": written}, warnings if left_out else ())


def _slices(traces: Traces, part: Part, start_s: Floats, options: ExportOptions) -> Iterator[str]:
    names, name = part.names
    end_s = start_s + part.duration_s
    within = (start_s < options.end_s) & (end_s >= options.begin_s)  # False without a start
    columns = (part.ids, name, part.type, part.on_host, part.lane, start_s, part.duration_s)
    for row in zip(*(column[within].tolist() for column in columns), strict=True):
        number, called, kind, on_host, lane, begin_s, duration_s = row
        yield json.dumps(
            {
                "name": printable(names[called]),
                "cat": traces.types[kind],
                "ph": "X",
                "pid": part.unit.rank,
                "tid": f"{'CPU' if on_host else 'stream'} {lane}",
                "ts": begin_s * _US,
                "dur": duration_s * _US,
                "args": {"id": number},
            }
        )
