"""Commands that predict whole runs: `replay`, `sweep`, `lost-cycles` and `predict-run`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from rewritelog.commands.command import (
    REPORT,
    Command,
    Logs,
    LogsOrTraces,
    ManyTraces,
    ModelFile,
    OptionalTraces,
    function,
)
from rewritelog.commands.durations import DurationOptions, NetworkOptions, OutputOptions
from rewritelog.errors import UsageError, spelled
from rewritelog.options import (
    ADVANCED,
    OUTPUT,
    AppendedFile,
    As,
    Kind,
    NodeChoice,
    OptionalFolder,
    OptionalOutput,
    argument,
    option,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rewritelog.evaluation.totals import RunPrediction
    from rewritelog.replaying.network import Network
    from rewritelog.replaying.report import ReplayReport
    from rewritelog.replaying.study import StudyRun, Variables
    from rewritelog.replaying.sweep import Axes, Sweep

Vary: TypeAlias = Annotated[
    As["Mapping[str, Iterable[float | str | Network]]", "Axes"],
    Kind("replaying.sweep:axes_of", several=True, use="text"),
]
VariablesOfRun: TypeAlias = Annotated[
    As["Mapping[str, float] | None", "Variables"],
    Kind("replaying.study:variables_of", several=True, nothing=(), use="text"),
]
RunPoint: TypeAlias = Annotated[
    As["Mapping[str, float]", "Mapping[str, float]"],
    Kind("evaluation.totals:to_point", several=True, use="text"),
]


CategoriesByName: TypeAlias = Annotated[
    As["Mapping[str, str] | Iterable[tuple[str, str]] | None", "tuple[tuple[str, str], ...]"],
    Kind("options:pairs", several=True, nothing=(), shown="Mapping[str, str] | None", use="text"),
]


class LostTimeOptions(DurationOptions):
    """The options of a replay that counts lost time."""

    lost_as: CategoriesByName = option(
        "Count SEBs of that name, or middle regions of that event, in a category; the last match "
        "wins.",
        default=None, metavar="PATTERN=CATEGORY", complete="event=", for_traces=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lost_as:
            from tracebigsim.writing import name_problem
        for pattern, category in self.lost_as:
            problem = name_problem(category) if isinstance(category, str) else "is not a text"
            if problem:
                rule = f"{spelled('lost_as')} {pattern}={category}"
                raise UsageError(f"{rule}: invalid category name: it {problem}")


class ReplayOptions(OutputOptions, LostTimeOptions):
    """The options of a replay, apart from the network."""

    names_groups = True

    write: OptionalFolder = option(
        "Write the logs with their replayed times to this folder.",
        default=None, metavar="OUT", group=OUTPUT, for_traces=False,
    )  # fmt: skip
    gains: int | None = option(
        "Replay with each of the N largest SEB names and events taking no time [default: 10; "
        "fewer for more than 500,000 SEBs].",
        default=None, metavar="N", group=ADVANCED, rare=True, least=0,
    )  # fmt: skip


class ReplayCommand(ReplayOptions, NetworkOptions, Command["ReplayReport"]):
    """Predict how long the whole program takes, and what bounds it.

    SEBs run on their PEs in the order that messages and dependencies allow, with their recorded
    durations or those of a dilation or a model. The network is simple: see docs/replay.md.

    >>> report = rewritelog.replay("sample_logs/cells", latency="1us", gains=0)
    >>> report.pes
    16
    """

    job = "replaying.run:replay_runs"
    shell = REPORT | {"engine", "verbose"}
    rare = frozenset({"lost_as", "force", "speedup", "dilation_for", "event_params"})

    logs: ManyTraces = argument(
        "The log folder, or Chakra traces; of several, or of a folder with a folder for each, a "
        "table compares the runs.",
        metavar="LOGS...", kw_only=False,
    )  # fmt: skip
    against: OptionalTraces = option(
        "Compare with the state before: other logs with the same options, or LOGS as recorded.",
        default=None, metavar="OTHER",
    )  # fmt: skip
    html: OptionalOutput = option(
        "Write a page with the timeline and the critical path.",
        default=None, metavar="PAGE", group=OUTPUT,
    )  # fmt: skip

    def returned(self, result: Any) -> Any:
        """Return the run time and what it is spent on; a comparison if there is another replay."""
        return getattr(result, "shown", result)

    report = returned


class SweepCommand(NodeChoice, DurationOptions, NetworkOptions, LogsOrTraces, Command["Sweep"]):
    """Predict the run time at every point of a grid; the logs are read once.

    >>> grid = {"dilation": [0.5, 1], "latency": ["1us", "10us"]}
    >>> swept = rewritelog.sweep("sample_logs/cells", grid)
    >>> [point.values for point in swept.points]
    [('0.5', '1us'), ('0.5', '10us'), ('1', '1us'), ('1', '10us')]
    """

    job = "viewing.replay_page:sweep_and_draw"
    shell = REPORT | {"html", "engine"}
    rare = frozenset({"speedup", "dilation_for"})

    vary: Vary = option(
        "The values of machine, latency, bandwidth, cost-per-packet, packet-size, node-latency or "
        "dilation.",
        metavar="NAME=VALUE,VALUE,...", kw_only=False,
    )  # fmt: skip
    output: OptionalOutput = option(
        "Write the grid to this file as CSV [default: none]; - is standard output.",
        default=None, group=OUTPUT,
    )  # fmt: skip
    plot: OptionalOutput = option(
        "Draw the grid: .png, .svg or .pdf; needs rewritelog[view].", default=None, group=OUTPUT
    )

    def also_read(self) -> Iterator[Path]:
        """Yield the files of machines."""
        from pathlib import Path

        for machine in self.vary.get("machine", ()):
            if os.path.isfile(machine):  # noqa: PTH113 - no error for a long text
                yield Path(machine)


class LostCyclesCommand(LostTimeOptions, NetworkOptions, Logs, Command["StudyRun"]):
    """Split all PE time of a replay into useful work and lost cycles.

    Several runs make a study: their timing lines, in one file, are fitted and verified like any
    others, and `predict-run` adds the categories up at sizes that were never run.

    >>> run = rewritelog.lost_cycles("sample_logs/cells", latency="1us")
    >>> sorted(run.lost.totals_s)[:2]
    ['communication', 'end']
    """

    job = "replaying.study:study_run"
    shell = REPORT | {"engine"}
    rare = frozenset({"speedup", "dilation_for"})

    variables: VariablesOfRun = option(
        "A variable of the run, as in D=128, for its timing lines.",
        default=None, flag="--var", metavar="NAME=VALUE",
    )  # fmt: skip
    timings_out: AppendedFile = option(
        "Append a timing line for each category to this file.", default=None, group=OUTPUT
    )


class PredictRunCommand(ModelFile, Command["RunPrediction"]):
    """Predict the run time of a program from a model of its lost cycles.

    The categories of `lost-cycles`, each fitted to several runs, are added up for a number of PEs
    and a problem size that were never run.

    >>> study = {"lost::idle": ([[16], [32], [64]], [0.16, 0.32, 0.64])}  # PE-seconds by PEs
    >>> rewritelog.predict_run(rewritelog.fit(study), {"P": 4096})
    <RunPrediction: Predicted run time: 10.00 ms at P = 4096>
    """

    job = "evaluation.totals:predict_run"

    at: RunPoint = option(
        "The number of PEs, P, and the variables of the study.",
        metavar="P=N,NAME=VALUE,...", kw_only=False,
    )  # fmt: skip


replay = function(ReplayCommand)
sweep = function(SweepCommand)
lost_cycles = function(LostCyclesCommand)
predict_run = function(PredictRunCommand)
