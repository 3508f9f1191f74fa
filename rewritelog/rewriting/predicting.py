"""The durations that a model predicts for the records of a block, and the state of each record."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints, Table, rows_by_key
from rewritelog.formats import Columns, ParamRecords
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.models.base import EventKey, ModelFit
from rewritelog.models.checks import checked_factors, checked_prediction, total_seconds
from rewritelog.rewriting.counts import EXAMPLES, RecordState
from rewritelog.rewriting.running_sums import EventValues
from rewritelog.rewriting.spreading import drawn_numbers, ordinals
from rewritelog.rewriting.statistics import BlockStatistics, EventStatistics, Examples, RecordFlag


@dataclass(frozen=True)
class Predictor:
    """Predicts the durations of param records."""

    name: str
    """The name of the model."""
    fitted: ModelFit
    columns: Columns = "params"
    """Whether it predicts from the parameters or the counters of records."""
    spread_seed: int | None = None
    """The seed for the spread of durations; None without spread."""
    measured_totals: bool = False
    """Whether durations are corrected so that sums agree with measured ones.

    Spread durations need no correction: the residuals include the rare long calls.
    """

    def predict(self, params: ParamRecords, pes: Ints) -> Predicted:
        """Return the records with their durations; `pes` are the PEs of the block's pieces."""
        kinds, kind = params.kinds()
        seconds = np.full(len(params.seb), np.nan)
        flags = np.zeros((len(RecordFlag), len(params.seb)), dtype=np.bool_)
        for rows in rows_by_key(kind, np.ones(len(kind), dtype=np.bool_)):
            event, count = kinds[kind[rows[0]]]
            table = params.table(rows, count)
            prediction = checked_prediction(self.fitted, self.name, event, table)
            seconds[rows] = np.where(prediction.seconds < 0, 0.0, prediction.seconds)
            if self.measured_totals:
                seconds[rows] = total_seconds(self.fitted, self.name, event, table, prediction)
            flags[RecordFlag.EXACT, rows] = prediction.exact
            flags[RecordFlag.NEGATIVE, rows] = prediction.negative
            flags[RecordFlag.OUTSIDE, rows] = prediction.outside
            flags[RecordFlag.REMOTE, rows] = prediction.remote
            flags[RecordFlag.UNCOUNTED, rows] = self.columns == "counters" and count == 0
        flags[RecordFlag.REMOTE] &= ~flags[RecordFlag.OUTSIDE]
        predicted = Predicted(params, kinds, kind, seconds, seconds.copy(), flags)
        if self.spread_seed is not None:
            ordinal = ordinals(params.piece, params.seb)
            numbers = drawn_numbers(self.spread_seed, pes[params.piece], params.seb, ordinal)
            self._spread(predicted, numbers)
        return predicted

    def _spread(self, predicted: Predicted, numbers: Floats) -> None:
        """Multiply each duration by the residual drawn by its number."""
        for rows in rows_by_key(predicted.kind, ~np.isnan(predicted.seconds)):
            event, count = predicted.kinds[predicted.kind[rows[0]]]
            table = predicted.params.table(rows, count)
            factors = checked_factors(self.fitted, self.name, event, table, numbers[rows])
            predicted.flags[RecordFlag.NOT_SPREAD, rows] = factors is None
            if factors is not None:
                predicted.given_s[rows] = predicted.seconds[rows] * factors


@dataclass(frozen=True)
class Predicted:
    """The records of a block with predicted durations."""

    params: ParamRecords
    kinds: tuple[EventKey, ...]
    kind: Ints
    """Index into `kinds`."""
    seconds: Floats
    """Predicted durations before any spread; NaN where the model does not cover a record."""
    given_s: Floats
    """The durations that brackets get."""
    flags: Flags
    """Shape (flags, records)."""

    @property
    def piece(self) -> Ints:
        """The piece of each record."""
        return self.params.piece

    def values(self, records: Table) -> EventValues:
        """Return the contribution of each record to the fields of `EventSums`."""
        predicted = np.where(records["state"] == RecordState.PREDICTED, self.seconds, 0.0)
        dilated = records["state"] == RecordState.NOT_COVERED
        old, new = records["old_s"], records["new_s"]
        with np.errstate(over="ignore"):
            squares = predicted**2
        dilated_old, dilated_new = np.where(dilated, old, 0.0), np.where(dilated, new, 0.0)
        exact = self._flagged(RecordFlag.EXACT, records)
        of_exact = np.where(exact, old, 0.0), np.where(exact, new, 0.0)
        return old, new, dilated_old, dilated_new, predicted, squares, *of_exact

    def by_event(self, records: Table) -> dict[str, EventStatistics]:
        """Return the states and flags of the records of each event."""
        by_state = [self._by_event(records["state"] == which) for which in RecordState]
        by_flag = [self._by_event(self._flagged(which, records)) for which in RecordFlag]
        return {
            name: EventStatistics(
                Counter({which: by_state[which][number] for which in RecordState}),
                Counter({which: by_flag[which][number] for which in RecordFlag}),
            )
            for number, name in enumerate(self.params.events)
        }

    def add_to(self, statistics: BlockStatistics, loaded: LoadedBlock, records: Table) -> None:
        """Add the states and flags of the records, by event, to the statistics."""
        state = records["state"]
        statistics.events |= self.by_event(records)
        for which in RecordState:
            if which is not RecordState.PREDICTED:
                first = np.flatnonzero(state == which)[:EXAMPLES]
                pes = loaded.pes[self.piece[first]].tolist()
                sebs = zip(pes, self.params.seb[first].tolist(), strict=True)
                statistics.record_examples[which] = Examples.of(loaded.begin, sebs)

    def _by_event(self, chosen: Flags) -> list[int]:
        """Return how many of the chosen records each event has."""
        counts = np.bincount(self.params.event[chosen], minlength=len(self.params.events))
        by_event: list[int] = counts.tolist()
        return by_event

    def _flagged(self, flag: RecordFlag, records: Table) -> Flags:
        """Return which records count under a flag."""
        state = RecordState.NOT_COVERED if flag is RecordFlag.UNCOUNTED else RecordState.PREDICTED
        flagged: Flags = self.flags[flag] & (records["state"] == state)
        return flagged
