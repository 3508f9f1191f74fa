"""The durations that a model gives the records of a block, and what became of the records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Table
from rewritelog.logs.blocks import LoadedBlock
from rewritelog.logs.params import Columns, ParamRecords
from rewritelog.models.base import FittedModel
from rewritelog.models.checks import checked_factors, checked_prediction
from rewritelog.rewriting.kernels.interface import RECORD, RecordState
from rewritelog.rewriting.running_sums import EventValues, Kind
from rewritelog.rewriting.spreading import drawn_numbers, ordinals
from rewritelog.rewriting.statistics import EXAMPLES_SHOWN, BlockFigures, EventFigures, Firsts, Mark


@dataclass(frozen=True)
class Predictor:
    """What gives the records of any block their durations."""

    name: str
    """The model's."""
    fitted: FittedModel
    columns: Columns = "params"
    """Which numbers of the records it predicts from."""
    spread_seed: int | None = None
    """Decides how far durations lie from their means; None where all have the mean."""

    def predict(self, params: ParamRecords, pes: Ints) -> Predicted:
        """Return the records with their durations; `pes` are the PEs of the block's pieces."""
        kinds, kind = _kinds(params)
        seconds = np.full(len(params.seb), np.nan)
        marks = np.zeros((len(Mark), len(params.seb)), dtype=np.bool_)
        for number, (event, count) in enumerate(kinds):
            rows = np.flatnonzero(kind == number)
            judged = checked_prediction(self.fitted, self.name, event, params.table(rows, count))
            seconds[rows] = np.where(judged.seconds < 0, 0.0, judged.seconds)
            marks[Mark.EXACT, rows] = judged.exact
            marks[Mark.NEGATIVE, rows] = judged.negative
            marks[Mark.OUTSIDE, rows] = judged.outside
            marks[Mark.REMOTE, rows] = judged.remote
            marks[Mark.UNCOUNTED, rows] = self.columns == "counters" and count == 0
        marks[Mark.REMOTE] &= ~marks[Mark.OUTSIDE]
        kernel = np.zeros(len(params.seb), dtype=RECORD)
        kernel["seb"] = params.seb
        kernel["seconds"] = seconds
        kernel["exact"] = marks[Mark.EXACT]
        found = Predicted(params, kernel, kinds, kind, seconds, marks)
        if self.spread_seed is not None:
            self._spread(found, drawn_numbers(
                self.spread_seed, pes[params.piece], params.seb, ordinals(params.piece, params.seb)
            ))  # fmt: skip
        return found

    def _spread(self, found: Predicted, numbers: Floats) -> None:
        """Multiply each duration that is to be written by the residual that its number draws."""
        for number, (event, count) in enumerate(found.kinds):
            rows = np.flatnonzero((found.kind == number) & ~np.isnan(found.seconds))
            table = found.params.table(rows, count)
            factors = checked_factors(self.fitted, self.name, event, table, numbers[rows])
            found.marks[Mark.NOT_SPREAD, rows] = factors is None
            if factors is not None:
                found.kernel["seconds"][rows] = found.seconds[rows] * factors


def _kinds(params: ParamRecords) -> tuple[tuple[Kind, ...], Ints]:
    """Return the kinds of records, and which of them each record is of."""
    most = int(params.param_count.max(initial=0)) + 1
    keys = params.event * most + params.param_count
    present = np.flatnonzero(np.bincount(keys))
    pairs = (divmod(key, most) for key in present.tolist())
    kinds = tuple((params.events[event], count) for event, count in pairs)
    return kinds, np.searchsorted(present, keys)


@dataclass(frozen=True)
class Predicted:
    """A block's records with the model's durations."""

    params: ParamRecords
    kernel: Table
    """The records as the rewrite takes them, and fills them in."""
    kinds: tuple[Kind, ...]
    kind: Ints
    """Index into `kinds`."""
    seconds: Floats
    """What the model predicts, before any spread; NaN where it covers nothing."""
    marks: Flags
    """Shape (marks, records)."""

    @property
    def piece(self) -> Ints:
        """The piece of each record."""
        return self.params.piece

    def values(self) -> EventValues:
        """Return what each record adds to the sums of its kind."""
        state = self.kernel["state"]
        predicted = np.where(state == RecordState.PREDICTED, self.seconds, 0.0)
        dilated = state == RecordState.NOT_COVERED
        old, new = self.kernel["old"], self.kernel["new"]
        with np.errstate(over="ignore"):
            squares = predicted**2
        return (
            old,
            new,
            np.where(dilated, old, 0.0),
            np.where(dilated, new, 0.0),
            predicted,
            squares,
        )

    def add_to(self, figures: BlockFigures, loaded: LoadedBlock) -> None:
        """Count what became of the records, by event."""
        state = self.kernel["state"].astype(np.int64)
        events = len(self.params.events)
        by_state = np.bincount(self.params.event * len(RecordState) + state,
                               minlength=events * len(RecordState))  # fmt: skip
        by_mark = [
            np.bincount(self.params.event, weights=self._marked(mark), minlength=events)
            for mark in Mark
        ]
        for number, name in enumerate(self.params.events):
            states = by_state[number * len(RecordState) :][: len(RecordState)]
            figures.events[name] = EventFigures(
                {kind: int(states[kind]) for kind in RecordState},
                {mark: int(by_mark[mark][number]) for mark in Mark},
            )
        for kind in RecordState:
            if kind is not RecordState.PREDICTED:
                first = np.flatnonzero(state == kind)[:EXAMPLES_SHOWN]
                pes = loaded.pes[self.piece[first]].tolist()
                places = zip(pes, self.params.seb[first].tolist(), strict=True)
                figures.record_places[kind] = Firsts.of(loaded.begin, places)

    def _marked(self, mark: Mark) -> Flags:
        """Return which records count under a mark."""
        wanted = RecordState.NOT_COVERED if mark is Mark.UNCOUNTED else RecordState.PREDICTED
        marked: Flags = self.marks[mark] & (self.kernel["state"] == wanted)
        return marked
