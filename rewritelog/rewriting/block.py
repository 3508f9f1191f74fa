"""The rewrite of one block, on its own: read, predict, patch, write, and count."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewritelog.kernels.account import (
    EXAMPLES,
    FIGURES,
    RECORD,
    SUMS,
    WITH_PLACES,
    Account,
    Records,
    RecordState,
)
from rewritelog.kernels.patch import patch
from rewritelog.kernels.sums import sum_by_group
from rewritelog.kernels.walk import FAULT_SIZE
from rewritelog.logs.blocks import Block, Buffer, LoadedBlock, load_blocks, raise_fault
from rewritelog.logs.files import InputFile
from rewritelog.logs.logset import LogSet
from rewritelog.models.base import FittedModel
from rewritelog.models.checks import checked_prediction
from rewritelog.output import OutputFile
from rewritelog.rewriting.dilations import Dilations
from rewritelog.rewriting.figures import EXAMPLES_SHOWN, BlockFigures, EventFigures, ExactSum
from rewritelog.rewriting.params import (
    NO_RECORDS,
    ParamFolder,
    ParamNotes,
    ParamRecords,
    read_params,
)

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Task:
    """All that the rewrite of any block of a log set needs; it can be sent to another process."""

    logs: LogSet
    model_name: str
    fitted: FittedModel
    params: ParamFolder | None
    """None where the model predicts nothing, so that no param file is read."""
    dilations: Dilations
    keep_recv: bool
    strict: bool
    block_bytes: int
    """The size that a part of a long timeline has at the most, unless one SEB is larger."""
    output: Path | None
    """The folder with the files to write into; None to write nothing."""


_local = threading.local()


def rewrite_block(task: Task, block: Block) -> BlockFigures:
    """Rewrite a block and write it at its place; return what was counted.

    Raise `DamagedLogError` with its place, `TimingError` or `ModelError` for what cannot be
    used, and `OSError` where the output cannot be written.
    """
    if not hasattr(_local, "buffer"):
        _local.buffer = Buffer()
    file = task.logs.files[block.file]
    figures = BlockFigures()
    with InputFile(file.path) as source:
        parts = load_blocks(source, file, block, task.logs.layout, _local.buffer, task.block_bytes)
        for loaded in parts:
            figures.add(_rewrite_part(task, loaded))
    return figures


def _rewrite_part(task: Task, loaded: LoadedBlock) -> BlockFigures:
    layout = task.logs.layout
    records, figures = _predicted(task, loaded)
    account = Account(
        figures.counts,
        np.zeros((len(loaded.pes), SUMS)),
        np.zeros((FIGURES, EXAMPLES, 2), dtype=np.int64),
    )
    begins = np.searchsorted(records.piece, np.arange(len(loaded.pes) + 1))
    fault = np.zeros(FAULT_SIZE, dtype=np.int64)
    dilation = task.dilations.for_block(loaded, layout.kernel)
    patch(
        loaded.buffer, loaded.pieces, layout.kernel, dilation, task.keep_recv, begins,
        records.kernel, account, fault,
    )  # fmt: skip
    raise_fault(
        fault, loaded.file, loaded.block.offset, loaded.pes, np.zeros_like(loaded.pieces.firsts)
    )
    if task.output is not None:
        with OutputFile(task.output / loaded.file.path.name) as out:
            out.write(loaded.buffer, loaded.block.offset)
    figures.size_bytes = loaded.block.size_bytes
    _add_account(figures, account, loaded)
    records.add_to(figures, loaded.pes)
    return figures


@dataclass(frozen=True)
class _Predicted:
    """A block's records with the model's durations."""

    params: ParamRecords
    kernel: Records
    negative: Flags
    outside: Flags

    @property
    def piece(self) -> Ints:
        """The piece of each record."""
        return self.params.piece

    def add_to(self, figures: BlockFigures, pes: Ints) -> None:
        """Count what became of the records, by event."""
        state = self.kernel["state"].astype(np.int64)
        used = state == RecordState.PREDICTED
        events = len(self.params.events)
        by_state = np.bincount(self.params.event * len(RecordState) + state,
                               minlength=events * len(RecordState))  # fmt: skip
        sums = [
            sum_by_group(self.params.event, np.ascontiguousarray(self.kernel[name]), events)
            for name in ("old", "new")
        ]
        flags = [
            np.bincount(self.params.event, weights=used & flag, minlength=events)
            for flag in (self.kernel["exact"] != 0, self.negative, self.outside)
        ]
        for number, name in enumerate(self.params.events):
            states = by_state[number * len(RecordState) :][: len(RecordState)]
            exact, negative, outside = (int(flag[number]) for flag in flags)
            old_s, new_s = (ExactSum().plus(total[number].tolist()) for total in sums)
            figures.events[name] = EventFigures(
                {kind: int(states[kind]) for kind in RecordState},
                exact, negative, outside, old_s, new_s,
            )  # fmt: skip
        for kind in RecordState:
            if kind is not RecordState.PREDICTED:
                first = np.flatnonzero(state == kind)[:EXAMPLES_SHOWN]
                places = zip(pes[self.piece[first]], self.params.seb[first], strict=True)
                figures.record_places[kind] = [(int(pe), int(seb)) for pe, seb in places]


def _predicted(task: Task, loaded: LoadedBlock) -> tuple[_Predicted, BlockFigures]:
    """Return the block's records with their predictions, and the figures begun."""
    if task.params is None:
        params, notes = NO_RECORDS, ParamNotes()
    else:
        params, notes = read_params(task.params, loaded, strict=task.strict)
    figures = BlockFigures(
        faulty_lines=notes.faulty,
        line_faults=notes.faults[:EXAMPLES_SHOWN],
        seqno_differs=notes.seqno_differs,
        seqno_examples=notes.seqno_examples[:EXAMPLES_SHOWN],
    )
    kernel = np.zeros(len(params.seb), dtype=RECORD)
    kernel["seb"] = params.seb
    negative, outside = (np.zeros(len(params.seb), dtype=np.bool_) for _ in range(2))
    most = int(params.param_count.max(initial=0)) + 1
    keys = params.event * most + params.param_count
    for key in np.flatnonzero(np.bincount(keys)):
        rows = np.flatnonzero(keys == key)
        event, count = divmod(int(key), most)
        judged = checked_prediction(
            task.fitted, task.model_name, params.events[event], params.table(rows, count)
        )
        negative[rows] = judged.seconds < 0
        outside[rows] = judged.outside
        kernel["seconds"][rows] = np.where(judged.seconds < 0, 0.0, judged.seconds)
        kernel["exact"][rows] = judged.exact
    return _Predicted(params, kernel, negative, outside), figures


def _add_account(figures: BlockFigures, account: Account, loaded: LoadedBlock) -> None:
    """Bring the kernel's sums and examples into the block's figures."""
    figures.sums = tuple(
        ExactSum().plus(account.sums[:, 2 * k : 2 * k + 2].ravel().tolist())
        for k in range(SUMS // 2)
    )
    for figure in WITH_PLACES:
        known = min(figures.count(figure), EXAMPLES)
        places = account.examples[figure, :known].tolist()
        figures.places[figure] = [(int(loaded.pes[piece]), seb) for piece, seb in places]
