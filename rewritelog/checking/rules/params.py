"""Rules of the param files and their records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.checking.block import CheckedBlock, Violations
from rewritelog.checking.findings import SHOWN, Finding
from rewritelog.checking.rules.rule import Rule, Severity
from rewritelog.errors import Location
from rewritelog.formats.bgtrace.records import IRREGULAR
from rewritelog.text import count_text, printable


@Rule(
    "param-file",
    Severity.MISLEAD,
    "A param file is a regular file that can be read.",
    "Without it the brackets of its PE have no params, and a rewrite stops there.",
)
def _param_file(block: CheckedBlock) -> Iterator[Violations]:
    part = block.records.loaded.block.part
    if block.params and (part is None or part.first_seb == 0):
        yield Violations(len(block.params.unreadable), block.params.unreadable)


@Rule(
    "param-line",
    Severity.ODD,
    "A line of a param file has an event, a SEB and parameters.",
    "A torn or malformed line is ignored, and its bracket is dilated.",
)
def _param_line(block: CheckedBlock) -> Iterator[Violations]:
    if block.params:
        notes = block.params.notes
        yield Violations(notes.faulty, [Finding(Location(), text) for text in notes.faults])


PARAM_PE = Rule(
    "param-pe",
    Severity.ODD,
    "The PE of a param file exists in the log.",
    "The file is not used. The params may belong to other logs.",
)


@Rule(
    "param-seb",
    Severity.MISLEAD,
    "The SEB of a param record exists in its PE's timeline.",
    "The record is not used. With params of another emulation, brackets get the parameters of "
    "other work, and a rewrite predicts wrong durations.",
)
def _param_seb(block: CheckedBlock) -> Iterator[Violations]:
    if block.params is None:
        return
    records, loaded = block.params.records, block.records.loaded
    unplaced = np.flatnonzero(records.seb >= loaded.totals[records.piece])
    findings = []
    for row in unplaced[:SHOWN].tolist():
        pe, total = (int(column[records.piece[row]]) for column in (loaded.pes, loaded.totals))
        event = printable(records.events[records.event[row]])
        problem = f"a record of event {event!r}, but the timeline has {count_text(total, 'SEB')}"
        location = Location(block.params.source.path(pe), pe=pe, seb=int(records.seb[row]))
        findings.append(Finding(location, problem))
    yield Violations(len(unplaced), findings)


@Rule(
    "param-seqno",
    Severity.ODD,
    "The number at the start of a param line equals the seqno in it.",
    "Both are the SEB's index. A rewrite uses the first.",
)
def _param_seqno(block: CheckedBlock) -> Iterator[Violations]:
    if block.params:
        notes = block.params.notes
        findings = [Finding(Location(), text) for text in notes.seqno_examples]
        yield Violations(notes.seqno_differs, findings)


@Rule(
    "param-records",
    Severity.ODD,
    "A SEB has as many param records as brackets.",
    "A rewrite pairs them in order. A SEB with one record and no marks is taken as bracketed "
    "from end to end; a bracket without a record, or a SEB where the numbers differ "
    "otherwise, is dilated. Nothing is checked if there are no param files.",
)
def _param_records(block: CheckedBlock) -> Iterator[Violations]:
    if block.params is None:
        return
    params, pieces = block.params.records, block.records.loaded.pieces
    inside = params.seb - pieces.firsts[params.piece]
    walked = (inside >= 0) & (inside < block.records.walked[params.piece])
    seb = (block.begins[params.piece] + inside)[walked]
    records = np.bincount(seb, minlength=len(block.records.sebs))
    brackets = block.brackets.counts
    yield block.where(
        "sebs",
        (brackets != IRREGULAR) & (records != brackets),
        lambda k: (
            f"{count_text(int(records[k]), 'param record')} and "
            f"{count_text(int(brackets[k]), 'bracket')}"
        ),
    )
