"""A request to stop ends long parts of a replay between two steps, in any thread."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from rewritelog import stopping
from rewritelog.commands.durations import RewriteOptions
from rewritelog.replaying.analysis import Gain, GainCandidate, find_critical_path, gain_of
from rewritelog.replaying.lost_cycles import lost_cycles
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import ReplayedRun, prepare, replay_workload
from rewritelog.stopping import Stopped

SAMPLE = Path(__file__).parents[2] / "sample_logs" / "cells"


def first_gain(outcome: ReplayedRun) -> Gain:
    candidate = GainCandidate(outcome.workload.names[0], 1.0)
    return gain_of(outcome, candidate, replace(outcome.case, free_name=candidate.name))


PARTS: dict[str, Callable[[ReplayedRun], object]] = {
    "loading": lambda run: prepare(SAMPLE, RewriteOptions()),
    "the replay": lambda run: replay_workload(run.workload, run.case),
    "a gain": first_gain,
    "lost cycles": lost_cycles,
    "the critical path": find_critical_path,
}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_of_a_replay_ends(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepare(SAMPLE, RewriteOptions())
    outcome = replay_workload(prepared.workload, prepared.case(Network()))
    PARTS[part](outcome)
    monkeypatch.setattr(stopping._request, "raised", Stopped(signal.SIGTERM))
    with pytest.raises(Stopped):
        PARTS[part](outcome)
