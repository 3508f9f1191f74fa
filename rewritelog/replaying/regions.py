"""The regions of SEBs whose brackets are paired with param records, in the columns of a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewritelog.arrays import Flags, Floats, Ints
from rewritelog.core import core
from rewritelog.formats import ParamRecords
from rewritelog.formats.bgtrace.records import BlockRecords, brackets_of

_ROUNDING = 4.0 * np.finfo(np.float64).eps


def rounding_s(start_s: Floats, end_s: Floats) -> Floats:
    """Return the largest rounding errors of the durations of SEBs."""
    return np.asarray(_ROUNDING * np.maximum(np.abs(start_s), np.abs(end_s)))


@dataclass(frozen=True)
class Paired:
    """Brackets with the param records that they are paired with; seconds since their SEB's start.

    A SEB without marks and with one record is a bracket from start to end.
    """

    seb: Ints
    """The SEB of each bracket, counted over the whole block."""
    record: Ints
    begins_s: Floats
    ends_s: Floats

    @classmethod
    def of(cls, block: BlockRecords, params: ParamRecords, whole_s: Floats) -> Paired:
        """Pair the brackets of each SEB with its records if there are as many of both."""
        begins = np.cumsum(block.walked) - block.walked
        rows = params.seb - block.loaded.pieces.firsts[params.piece]
        known = np.flatnonzero((rows >= 0) & (rows < block.walked[params.piece]))
        rows = rows[known] + begins[params.piece[known]]
        records = np.bincount(rows, minlength=len(block.sebs))
        brackets = brackets_of(block)
        usable = (records > 0) & (whole_s > 0)
        marked = usable & (brackets.counts == records)
        unmarked = usable & (brackets.counts == 0) & (records == 1)
        chosen = marked[rows] | unmarked[rows]
        seb = rows[chosen]
        begins_s, ends_s = np.zeros(len(seb)), whole_s[seb]
        from_marks, paired = marked[seb], marked[brackets.seb]
        begins_s[from_marks], ends_s[from_marks] = brackets.starts[paired], brackets.ends[paired]
        return cls(seb, known[chosen], begins_s, ends_s)

    def cut_to(self, duration_s: Floats, slack_s: Floats, which: Flags) -> tuple[Paired, Flags]:
        """Cut the brackets of some SEBs to their durations; return for which SEBs that matters."""
        cut = np.zeros(len(duration_s), dtype=np.bool_)
        too_long = which[self.seb] & (self.ends_s > (duration_s + slack_s)[self.seb])
        cut[self.seb[too_long]] = True
        most = np.where(cut, duration_s, np.inf)[self.seb]
        begins_s, ends_s = np.minimum(self.begins_s, most), np.minimum(self.ends_s, most)
        return Paired(self.seb, self.record, begins_s, ends_s), cut


@dataclass(frozen=True)
class BlockRegions:
    """The regions of all SEBs that have paired brackets: bounds in ascending order for each SEB.

    The first bound is 0, and the last one the end; each bracket is a middle region between two.
    """

    paired: Paired
    middle: Ints
    """The bound at which each middle region begins."""
    seb: Ints
    """The SEB of each bound."""
    bound_s: Floats
    given_s: Floats
    """The predicted length of the region that begins at a bound; NaN if it is only scaled."""
    before_s: Floats
    """The scaled and the fixed seconds before each bound, shape (2, bounds)."""
    modelled: Flags
    """Whether any region of a SEB of the block has a predicted length."""
    cut: Flags
    """Whether brackets of a SEB of the block reached beyond its duration."""

    @classmethod
    def of(
        cls,
        block: BlockRecords,
        params: ParamRecords,
        given_s: Floats,
        duration_s: Floats,
        *,
        predicts: bool,
    ) -> BlockRegions:
        """Return the regions of a block, given the predicted seconds of its param records.

        Brackets of SEBs without predictions are cut to `duration_s`, which may be shorter than the
        time from start to end.
        """
        start, end = block.sebs["start_time"], block.sebs["end_time"]
        with np.errstate(over="ignore"):
            whole_s = end - start
        paired = Paired.of(block, params, whole_s)
        modelled = np.zeros(len(block.sebs), dtype=np.bool_)
        modelled[paired.seb[~np.isnan(given_s[paired.record])]] = predicts
        paired, cut = paired.cut_to(duration_s, rounding_s(start, end), ~modelled)
        owners, first, counts = np.unique(paired.seb, return_index=True, return_counts=True)
        begins = 2 * first + 2 * np.arange(len(owners))
        middle = 2 * np.arange(len(paired.seb)) + 2 * np.repeat(np.arange(len(owners)), counts) + 1
        bound_s = np.zeros(2 * len(paired.seb) + 2 * len(owners))
        bound_s[middle], bound_s[middle + 1] = paired.begins_s, paired.ends_s
        bound_s[begins + 2 * counts + 1] = np.where(cut, duration_s, whole_s)[owners]
        predicted_s = np.full(len(bound_s), np.nan)
        predicted_s[middle] = given_s[paired.record]
        lengths = np.diff(bound_s, append=0.0)
        lengths[begins + 2 * counts + 1] = 0.0
        before_s = np.empty((2, len(bound_s)))
        core.add_up(begins, np.where(np.isnan(predicted_s), lengths, 0.0), before_s[0])
        core.add_up(begins, np.nan_to_num(predicted_s), before_s[1])
        seb = np.repeat(owners, 2 * counts + 2)
        return cls(paired, middle, seb, bound_s, predicted_s, before_s, modelled, cut)

    def durations(self, duration_s: Floats) -> Floats:
        """Return the scaled and fixed seconds of all SEBs of the block, shape (2, SEBs)."""
        parts = np.stack([duration_s, np.zeros(len(duration_s))])
        last = np.flatnonzero(np.diff(self.seb, append=-1))
        last = last[self.modelled[self.seb[last]]]
        parts[:, self.seb[last]] = self.before_s[:, last]
        return parts

    def split(self, seb: Ints, since_s: Floats, duration_s: Floats) -> Floats:
        """Return the scaled and fixed seconds before moments within SEBs, shape (2, moments)."""
        parts = np.stack([np.clip(since_s, 0.0, duration_s[seb]), np.zeros(len(seb))])
        rows, known = np.flatnonzero(self.modelled[seb]), np.flatnonzero(self.modelled[self.seb])
        if len(rows):
            at, since_s = self._place(known, seb[rows], since_s[rows])
            given_s, inside_s = self.given_s[at], since_s - self.bound_s[at]
            length_s = np.append(self.bound_s, 0.0)[at + 1] - self.bound_s[at]
            share = np.divide(inside_s, length_s, out=np.zeros(len(at)), where=length_s > 0)
            scales = np.isnan(given_s)
            parts[:, rows] = self.before_s[:, at]
            parts[0, rows] += np.where(scales, inside_s, 0.0)
            parts[1, rows] += np.where(scales, 0.0, share * given_s)
        return parts

    def _place(self, known: Ints, seb: Ints, since_s: Floats) -> tuple[Ints, Floats]:
        """Return the last of the `known` bounds up to each moment, and moments cut to their SEB."""
        last = known[np.searchsorted(self.seb[known], seb, side="right") - 1]
        since_s = np.clip(since_s, 0.0, self.bound_s[last])
        moment = np.repeat([False, True], [len(known), len(seb)])
        order = np.lexsort(
            (
                moment,
                np.concatenate([self.bound_s[known], since_s]),
                np.concatenate([self.seb[known], seb]),
            )
        )
        bounds_before = np.empty(len(order), dtype=np.int64)
        bounds_before[order] = np.cumsum(~moment[order])
        return known[bounds_before[len(known) :] - 1], since_s

    def columns(self, block: BlockRecords, event: Ints) -> dict[str, Any]:
        """Return the columns of the middle regions; `event` is that of each param record.

        Their SEBs are counted within timelines.
        """
        lengths = self.before_s[:, self.middle + 1] - self.before_s[:, self.middle]
        return {
            "regions.seb": block.index[self.paired.seb].astype(np.int32),
            "regions.event": event[self.paired.record].astype(np.int32),
            "regions.begin_scaled_s": self.before_s[0, self.middle],
            "regions.begin_fixed_s": self.before_s[1, self.middle],
            "regions.scaled_s": lengths[0],
            "regions.fixed_s": lengths[1],
        }
