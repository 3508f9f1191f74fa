"""Loads logs and replays them, with a clock: `… child_replaying SMALL LOGS [GAINS]`.

Prints JSON: the sizes, the seconds of both on the clock and of the processor, and what is left out.
"""

from __future__ import annotations

import json
import sys
import time

from rewritelog.commands.runs import ReplayOptions
from rewritelog.replaying.network import Network
from rewritelog.replaying.replay import prepare
from rewritelog.replaying.run import replay_prepared, replay_whole


def main() -> None:
    """Replay, after a first one of a small log set, which imports all that is needed."""
    warm, logs, *rest = sys.argv[1:]
    options = ReplayOptions(gains=int(rest[0]) if rest else None)
    replay_whole(warm, Network(), options)
    clocks = [(time.perf_counter(), time.process_time())]
    prepared = prepare(logs, options)
    clocks.append((time.perf_counter(), time.process_time()))
    report = replay_prepared(prepared, Network(), options).report
    clocks.append((time.perf_counter(), time.process_time()))
    (began, began_cpu), (loaded, loaded_cpu), (ended, ended_cpu) = clocks
    figures = {
        "sebs": report.sebs,
        "messages": report.messages,
        "pes": report.pes,
        "replays": 1 + len(report.gains) + len(report.event_gains),
        "load_s": loaded - began,
        "load_cpu_s": loaded_cpu - began_cpu,
        "replay_s": ended - loaded,
        "replay_cpu_s": ended_cpu - loaded_cpu,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
