"""Rules of the dependencies between the SEBs of a timeline."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.arrays import Flags, Ints, mix
from rewritelog.checking.findings import SHOWN, CheckedBlock, Finding, Rule, Severity, Violations
from rewritelog.errors import Location
from rewritelog.formats.bgtrace.records import Records
from rewritelog.text import count_text

MOST_SUMS = 1 << 20
"""The most sums of dependencies for a timeline: one for each SEB, or for several adjacent ones."""


def cycles(waits: Ints, others: Ints, total: int) -> tuple[Ints, Ints]:
    """Return the strongly connected component of each item, and the first item of each cycle."""
    if (others < waits).all():
        return np.arange(total), np.zeros(0, dtype=np.int64)
    from scipy.sparse import coo_array  # noqa: PLC0415 - slow to import, and seldom needed
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    graph = coo_array((np.ones(len(waits)), (waits, others)), shape=(total, total)).tocsr()
    _, group = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(group, minlength=total)
    sizes[group[waits[waits == others]]] += 1  # one that waits for itself is a cycle alone
    inside = np.flatnonzero(sizes[group] > 1)
    _, first = np.unique(group[inside], return_index=True)
    return group, inside[first]


@Rule(
    "dependency-order",
    Severity.STOP,
    "A backward dependency is the index of an earlier SEB of the timeline, and a forward one "
    "that of a later SEB.",
    "A SEB that waits for a later one, for itself or for one that does not exist never runs.",
)
def _dependency_order(block: CheckedBlock) -> Iterator[Violations]:
    earlier, later = block.records.backward["other"], block.records.forward["other"]
    index = block.records.index
    total = block.total[block.records.forward.seb]
    yield block.violations(
        "backward",
        (earlier < 0) | (earlier >= index[block.records.backward.seb]),
        lambda k: f"SEB {earlier[k]}, which is not an earlier one",
    )
    yield block.violations(
        "forward",
        (later <= index[block.records.forward.seb]) | (later >= total),
        lambda k: (
            f"SEB {later[k]}, which is not a later one of the timeline's "
            f"{count_text(int(total[k]), 'SEB')}"
        ),
    )


@Rule(
    "dependencies-disagree",
    Severity.STOP,
    "SEB j is a forward dependency of SEB i exactly as often as i is a backward dependency of j.",
    "The simulator counts what a SEB waits for by one list and releases it by the other; "
    "where they differ, it runs too early or never. In timelines of more than a million SEBs "
    "the location is given to within a few SEBs.",
)
def _dependencies_disagree(block: CheckedBlock) -> Iterator[Violations]:
    records, pieces = block.records, block.records.pieces
    if "dependencies-disagree" not in block.state:
        block.state["dependencies-disagree"] = _Sums(records.loaded.totals, block.key)
    sums: _Sums = block.state["dependencies-disagree"]
    seb, other = _pairs(block, records.forward)
    sums.add(records.piece[seb], records.index[seb], other, np.add)
    seb, other = _pairs(block, records.backward)
    sums.add(records.piece[seb], other, records.index[seb], np.subtract)
    ended = pieces.counts == records.loaded.totals - pieces.firsts
    piece, first = sums.wrong(ended)
    shared = (1 << sums.shift) - 1
    message = "its forward dependencies do not match the backward dependencies on it"
    if shared:
        message += f", or those of one of the {shared} SEBs after it"
    locations = (_location(block, *place) for place in zip(piece[:SHOWN], first, strict=False))
    yield len(piece), [Finding(location, message) for location in locations]


@Rule(
    "dependency-cycle",
    Severity.STOP,
    "No SEB depends on itself through others.",
    "None of the SEBs in the cycle ever runs. Cycles are looked for where `dependency-order` "
    "is violated, since there can be none elsewhere, and in timelines that fit into one "
    "block.",
)
def _dependency_cycle(block: CheckedBlock) -> Iterator[Violations]:
    records = block.records
    seb, other = _pairs(block, records.backward)
    piece = records.piece[seb]
    are_whole = records.pieces.counts == records.loaded.totals
    disordered = np.zeros(len(are_whole), dtype=np.bool_)
    disordered[piece[other >= records.index[seb]]] = True
    chosen = (disordered & are_whole)[piece]
    if chosen.any():
        group, heads = cycles(
            seb[chosen], (records.pieces.first_rows[piece] + other)[chosen], len(records.sebs)
        )
        is_first = np.isin(np.arange(len(group)), heads)

        def says(head: int) -> str:
            members = records.index[group == group[head]]
            named = ", ".join(map(str, members[:SHOWN])) + (", …" if len(members) > SHOWN else "")
            return f"these SEBs wait for one another: {named}"

        yield block.violations("sebs", is_first, says)


def _pairs(block: CheckedBlock, dependencies: Records) -> tuple[Ints, Ints]:
    """Return the SEB that lists each dependency, and the SEB listed, for SEBs that exist.

    The former is an index in the block, the latter an index in the timeline.
    """
    other = dependencies["other"].astype(np.int64)
    exists = (other >= 0) & (other < block.total[dependencies.seb])
    return dependencies.seb[exists], other[exists]


class _Sums:
    """Sums of the hashes of forward minus backward dependencies, 0 where both lists agree.

    Each SEB that others depend on has a sum; in long timelines 2^shift adjacent SEBs share one.
    """

    def __init__(self, totals: Ints, key: int) -> None:
        longest = int(totals.max(initial=1))
        self.shift = max(0, (longest - 1).bit_length() - (MOST_SUMS - 1).bit_length())
        self._begins = np.concatenate([[0], np.cumsum(((totals - 1) >> self.shift) + 1)])
        self._sums = np.zeros(self._begins[-1], dtype=np.uint64)
        self._key = np.uint64(key)

    def add(self, piece: Ints, before: Ints, after: Ints, how: np.ufunc) -> None:
        """Add or subtract the dependencies of the SEBs `after` on the SEBs `before`."""
        pairs = before.astype(np.uint64) << np.uint64(32) | after.astype(np.uint64)
        how.at(self._sums, self._begins[piece] + (before >> self.shift), mix(pairs + self._key))

    def wrong(self, ended: Flags) -> tuple[Ints, Ints]:
        """Return the piece and first SEB of each sum that is not 0, in pieces that have ended."""
        entries = np.flatnonzero(self._sums)
        piece = np.searchsorted(self._begins, entries, side="right") - 1
        entries, piece = entries[ended[piece]], piece[ended[piece]]
        return piece, (entries - self._begins[piece]) << self.shift


def _location(block: CheckedBlock, piece: Ints, index: Ints) -> Location:
    """Return the location of a SEB of a timeline, without an offset if it is in another part."""
    loaded, seb = block.records.loaded, int(block.records.pieces.rows(piece, index))
    if seb >= 0:
        return block.location(seb, int(block.records.sebs.at[seb]))
    return Location(loaded.file.path, None, int(loaded.pes[piece]), int(index))


DEPENDENCY_RULES = (_dependency_order, _dependencies_disagree, _dependency_cycle)
