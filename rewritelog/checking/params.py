"""The check of a block's param records against its timelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewritelog.checking.findings import SHOWN, Finding, Findings
from rewritelog.checking.kernels.violations import RecordedSebs
from rewritelog.errors import Location, RewriteLogError
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.logs.params import ParamFolder, ParamNotes, ParamRecords, read_params
from rewritelog.text import count_text, printable

NO_RECORDS = np.zeros(0, dtype=np.int64)


def check_params(
    source: ParamFolder, loaded: LoadedBlock, findings: Findings
) -> tuple[RecordedSebs, int]:
    """Read a block's params and add their findings; return the SEBs with records for the kernel.

    The second result is the number of records.
    """
    params, notes = _read(source, loaded, findings)
    _add_notes(notes, findings)
    nowhere = np.flatnonzero(params.seb >= loaded.totals[params.piece])
    findings.add_many(
        "param-seb",
        len(nowhere),
        [_nowhere(source, loaded, params, int(row)) for row in nowhere[:SHOWN]],
    )
    begins = np.searchsorted(params.piece, np.arange(len(loaded.pes) + 1))
    return RecordedSebs(wanted=True, begins=begins, sebs=params.seb), len(params.seb)


def _nowhere(source: ParamFolder, loaded: LoadedBlock, params: ParamRecords, row: int) -> Finding:
    piece = int(params.piece[row])
    pe, seb = int(loaded.pes[piece]), int(params.seb[row])
    event = printable(params.events[params.event[row]])
    total = count_text(int(loaded.totals[piece]), "SEB")
    problem = f"a record of event {event!r}, but the timeline has {total}"
    return Finding(Location(source.path(pe), pe=pe, seb=seb), problem)


def _read(
    source: ParamFolder, loaded: LoadedBlock, findings: Findings
) -> tuple[ParamRecords, ParamNotes]:
    """Read the params of a block, without the files that cannot be read."""
    try:
        return read_params(source, loaded, strict=False)
    except RewriteLogError:
        readable = set()
        for pe in sorted(source.pes.intersection(loaded.pes.tolist())):
            alone = replace(source, pes=frozenset([pe]))
            try:
                read_params(alone, loaded, strict=False)
                readable.add(pe)
            except RewriteLogError as error:
                path = source.path(pe)
                if loaded.block.part is None or loaded.block.part.first_seb == 0:
                    problem = str(error).removeprefix(f"{path}: ")
                    findings.add("param-file", Location(path, pe=pe), problem)
        return read_params(replace(source, pes=frozenset(readable)), loaded, strict=False)


def _add_notes(notes: ParamNotes, findings: Findings) -> None:
    findings.add_many(
        "param-line", notes.faulty, [Finding(Location(), text) for text in notes.faults]
    )
    examples = [Finding(Location(), text) for text in notes.seqno_examples]
    findings.add_many("param-seqno", notes.seqno_differs, examples)
