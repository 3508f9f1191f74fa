"""The rewrite of one block, on its own: read, predict, patch, write, and count."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rewritelog.kernels.walk import FAULT_SIZE
from rewritelog.logs.blocks import Block, Buffer, LoadedBlock, load_blocks, raise_fault
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.logs.params import (
    NO_RECORDS,
    ParamFolder,
    ParamNotes,
    read_params,
)
from rewritelog.output import OutputFile
from rewritelog.rewriting.dilations import Dilations
from rewritelog.rewriting.kernels.interface import (
    EXAMPLES,
    FIGURES,
    WITH_PLACES,
    Account,
)
from rewritelog.rewriting.kernels.patch import patch
from rewritelog.rewriting.predicting import Predicted, Predictor
from rewritelog.rewriting.running_sums import RunningSums
from rewritelog.rewriting.statistics import BlockFigures, EventFigures, Firsts


@dataclass(frozen=True)
class RewriteTask:
    """All that the rewrite of any block of a log set needs; it can be sent to another process."""

    logs: LogSet
    predictor: Predictor
    params: ParamFolder | None
    """None where the model predicts nothing, so that no param file is read."""
    dilations: Dilations
    keep_recv: bool
    strict: bool
    block_bytes: int
    """The size that a part of a long timeline has at the most, unless one SEB is larger."""
    output: Path | None
    """The folder with the files to write into; None to write nothing."""
    flush: bool
    """Whether what is written is brought to the disk, by a worker on another host on its own."""


_local = threading.local()


def rewrite_block(task: RewriteTask, block: Block) -> BlockFigures:
    """Rewrite a block and write it at its place; return what was counted.

    Raise `DamagedLogError` with its place, `TimingError` or `ModelError` for what cannot be
    used, and `OSError` where the output cannot be written.
    """
    if not hasattr(_local, "buffer"):
        _local.buffer = Buffer()
    file = task.logs.files[block.file]
    figures, running = BlockFigures(), RunningSums()
    with InputFile(file.path) as source:
        parts = load_blocks(source, file, block, task.logs.layout, _local.buffer, task.block_bytes)
        for loaded in parts:
            figures.add(rewrite_part(task, loaded, running))
    return figures


def rewrite_part(task: RewriteTask, loaded: LoadedBlock, running: RunningSums) -> BlockFigures:
    """Do as `rewrite_block` does for a loaded block or a part of one, in place."""
    layout = task.logs.layout
    records, figures = _predicted(task, loaded)
    account = Account(
        figures.counts,
        running.begin(len(loaded.pes)),
        np.zeros((FIGURES, EXAMPLES, 2), dtype=np.int64),
    )
    begins = np.searchsorted(records.piece, np.arange(len(loaded.pes) + 1))
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    dilation = task.dilations.for_block(loaded, layout.kernel)
    patch(
        loaded.buffer, loaded.pieces, layout.kernel, dilation, task.keep_recv, begins,
        records.kernel, account, fault,
    )  # fmt: skip
    raise_fault(fault, loaded, absolute=True)
    if task.output is not None:
        with OutputFile(task.output / loaded.file.path.name, flush=task.flush) as out:
            out.write(loaded.buffer, loaded.block.offset)
    figures.size_bytes = loaded.block.size_bytes
    done = loaded.block.part is None or loaded.block.part.last
    figures.sums = running.durations(account.sums, done=done)
    _add_examples(figures, account, loaded)
    records.add_to(figures, loaded)
    sums = running.events(records.kinds, records.kind, records.piece, records.values(), done=done)
    for (event, many), added in sums.items():
        figures.events.setdefault(event, EventFigures()).sums[many] = added
    return figures


def _predicted(task: RewriteTask, loaded: LoadedBlock) -> tuple[Predicted, BlockFigures]:
    """Return the block's records with their predictions, and the figures begun."""
    if task.params is None:
        params, notes = NO_RECORDS, ParamNotes()
    else:
        columns = task.predictor.columns
        params, notes = read_params(task.params, loaded, strict=task.strict, columns=columns)
    figures = BlockFigures(
        faulty_lines=notes.faulty,
        line_faults=Firsts.of(loaded.begin, notes.faults),
        seqno_differs=notes.seqno_differs,
        seqno_examples=Firsts.of(loaded.begin, notes.seqno_examples),
    )
    return task.predictor.predict(params, loaded.pes), figures


def _add_examples(figures: BlockFigures, account: Account, loaded: LoadedBlock) -> None:
    """Bring the kernel's examples into the block's figures."""
    for figure in WITH_PLACES:
        known = min(figures.count(figure), EXAMPLES)
        places = account.examples[figure, :known].tolist()
        found = ((int(loaded.pes[piece]), seb) for piece, seb in places)
        figures.places[figure] = Firsts.of(loaded.begin, found)
