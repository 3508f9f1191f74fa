"""Commands that read or write logs: `rewrite`, `check`, `info`, `convert` and others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from rewritelog.commands.command import (
    OUT_HELP,
    REPORT,
    TRACES_HELP,
    Command,
    Logs,
    LogsOrTraces,
    OptionalTraces,
    Out,
    TracesArgument,
    UncheckedArgument,
    function,
)
from rewritelog.commands.durations import NETWORK, NetworkOptions, RewriteOptions
from rewritelog.errors import UsageError, spelled
from rewritelog.options import (
    OUTPUT,
    Flush,
    Force,
    Jobs,
    Kind,
    OptionalFolder,
    OptionalInput,
    OptionalOutput,
    ParamsFolder,
    Seed,
    Selection,
    argument,
    option,
)
from rewritelog.paths import is_stdout
from rewritelog.progress import Listener

if TYPE_CHECKING:
    from rewritelog.checking.findings import CheckReport
    from rewritelog.converting import Conversion
    from rewritelog.diffing.report import Comparison
    from rewritelog.exporting.run import Exported
    from rewritelog.inspection.dump import Dump
    from rewritelog.inspection.info import LogInfo
    from rewritelog.rewriting.report import RewriteReport
    from rewritelog.synthesis.synth import Synthesis
    from rewritelog.text import Readable
    from rewritelog.viewing.pictures import Picture


CELLS_OF_A_PE, MOST_CELLS = 1000, 1_000_000
_MOST_INT = (1 << 31) - 1
NEWEST = 6
"""The newest log version, as `formats` declares it, which is not imported for `--help`."""
VERSION_HELP = f"The log version to write, 0 to {NEWEST}"
OptionalListener: TypeAlias = Annotated["Listener | None", Kind("progress:to_listener")]


class RewriteCommand(RewriteOptions, NetworkOptions, LogsOrTraces, Command["RewriteReport"]):
    """Rewrite logs or traces with new durations, and predict the run time.

    A model predicts the bracketed parts of SEBs, or nodes; the rest is dilated. The run time is
    that of a replay, in the network as recorded or as given; over a million SEBs only as given.

    >>> timings = "sample_logs/cells/timings.txt"
    >>> report = rewritelog.rewrite("sample_logs/cells", timings=timings, dilation=0.5)
    >>> report.events[0].by_model
    24
    """

    job = "replaying.run_time:rewrite_and_replay"
    shell = REPORT | {"html", "engine", "verbose"}
    rare = frozenset({"latency", "bandwidth", "event_params"})

    out: OptionalFolder = argument(
        OUT_HELP, metavar="OUT", default=None, kw_only=False, needed="dry_run"
    )
    dry_run: bool = option(
        "Print the report without writing OUT; takes no OUT.", default=False, group=OUTPUT
    )
    progress: OptionalListener = option(
        "Called as progress(stage, done, total, unit): the name of the stage, how much of it is "
        "done, of how much in all (0: unknown), and 'bytes' if it is counted in these, else ''.",
        default=None, shell=False,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.out is not None and self.dry_run:
            raise UsageError(f"{spelled('dry_run', True)} takes no OUT")
        if self.out is None:
            self.check_unused("OUT, which a dry run does not write")

    def __getstate__(self) -> dict[str, Any]:
        """Pickle all but the listener, which is told of this run alone."""
        return {**vars(self), "progress": None}


class CheckCommand(Jobs, Command["CheckReport"]):
    """Find damage and oddities in logs and their params, or in traces.

    Run it first on logs that you do not trust: it takes little memory, and no damage makes it fail.

    >>> rewritelog.check("sample_logs/cells").sound
    True
    """

    job = "checking.run:check_opened"
    exits = "1 if any finding is more than an oddity"
    succeeds = "sound"
    shell = REPORT - {"fail_on_warning"} | {"engine"}

    logs: UncheckedArgument = argument(TRACES_HELP, metavar="LOGS", kw_only=False)
    params: OptionalInput = option(
        "The folder of the param.P files [default: LOGS].", default=None, metavar="DIR",
        kw_only=False, for_traces=False,
    )  # fmt: skip


class RulesCommand(Command[str]):
    """List the rules that `check` applies, or explain what one of them protects.

    >>> "The summary has 52, 56 or 60 bytes" in rewritelog.rules("summary")
    True
    """

    job = "checking.rules:described"
    shell = frozenset()

    rule: str | None = argument(
        "The rule to explain.", metavar="RULE", default=None, kw_only=False, complete="rule"
    )


class InfoCommand(Jobs, LogsOrTraces, Command["LogInfo"]):
    """Describe logs or traces: machine, sizes, where the time goes.

    >>> rewritelog.info("sample_logs/cells").brackets > 0
    True
    """

    job = "inspection.info:survey_opened"
    shell = REPORT | {"html", "engine"}


class DiffCommand(Jobs, Command["Comparison"]):
    """Compare two sets of logs or traces: fields, durations, messages.

    SEBs are compared in the order of each PE's timeline, whatever the log version and byte order.

    >>> rewritelog.diff("sample_logs/cells", "sample_logs/cells-big-endian").verdict
    'different: only the representation; the content is the same'
    """

    job = "diffing.run:compare_opened"
    shell = REPORT - {"fail_on_warning"} | {"engine"}
    failure = 2
    exits = "0 if they are the same, 1 if they differ, and 2 if they cannot be compared"
    succeeds = "same"

    a: TracesArgument = argument("A log folder, or Chakra traces.", metavar="A", kw_only=False)
    b: TracesArgument = argument(
        "The logs or traces to compare with A.", metavar="B", kw_only=False
    )
    params: OptionalInput = option(
        "The folder of the param.P files that name events [default: A and B].",
        default=None, metavar="DIR", kw_only=False, for_traces=False,
    )  # fmt: skip


class DumpCommand(Logs, Command["Iterator[dict[str, Any]]"]):
    """Show every field of every SEB of a PE.

    Times are in seconds, offsets in bytes from the start of the file, in every log version. JSON
    has an object for each SEB, on a line of its own.

    >>> next(rewritelog.dump("sample_logs/cells", pe=0))["offset_bytes"]
    56
    """

    job = "inspection.dump:dump"
    shell = frozenset({"quiet", "as_json"})
    prints_lines = True

    pe: int = option("The PE whose timeline is printed.", metavar="PE", kw_only=False)

    def returned(self, result: Dump) -> Iterator[dict[str, Any]]:
        """Return an iterator of dicts, one for each SEB; it raises `DamagedLogError` at damage."""
        return result.sebs()


class TimelineCommand(Jobs, Seed, Selection, LogsOrTraces, Command["Picture"]):
    """Draw SEBs by PE, or nodes by thread and stream, over time, coloured by event or name.

    >>> rewritelog.timeline("sample_logs/cells", "cells.png", pes=range(4)).kind
    'png'
    """

    job = "viewing.draw:draw_timeline"
    shell = REPORT - {"report_file"} | {"engine"}

    output: OptionalOutput = option(
        "The picture: .png, .svg, .pdf or .html (for -, SVG); - is standard output.",
        default=None, group=OUTPUT, kw_only=False, needed=True,
    )  # fmt: skip
    kind: str | None = option(
        "png, svg, pdf or html; by default what the name of the output says, else svg.",
        default=None, shell=False,
    )  # fmt: skip
    against: OptionalTraces = option(
        "Other logs or traces, drawn below on the same time axis.", default=None, metavar="LOGS"
    )
    colour_by: Literal["event", "name"] | None = option(
        "What colours mean: events, in brackets that have any, or SEB names [default: event if "
        "there are any].",
        default=None, metavar="event|name",
    )  # fmt: skip
    times: Literal["log", "replay"] | None = option(
        "Draw the times of the log, or of its replay with its own network [default: log; replay "
        "with others below, since only a replay shows what a change gains].",
        default=None, metavar="log|replay",
    )  # fmt: skip
    messages: bool = option(
        "Draw messages as lines; if there are many, a random part of them.",
        default=False,
        for_traces=False,
    )

    def report(self, result: Picture) -> Readable | str:
        """Return the name and the size of the picture, unless it was printed."""
        from rewritelog.viewing.pictures import WrittenPicture

        file = self.output
        if file is None or (is_stdout(file) and not self.as_json):
            return ""  # it was printed
        return WrittenPicture(file, result)


class ConvertCommand(Jobs, Force, Out, Logs, Command["Conversion"]):
    """Write a log set in another log version or byte order.

    >>> rewritelog.convert("sample_logs/cells", "big", byte_order="big")
    <Conversion: log version 6, big-endian: 676 SEBs, 403 messages, 98.8 kB before, 98.8 kB now>
    """

    job = "converting:convert"
    shell = REPORT | {"engine"}

    log_version: int | None = option(
        f"{VERSION_HELP} [default: as in LOGS].", default=None, least=0, most=NEWEST
    )
    byte_order: Literal["little", "big"] | None = option(
        "The byte order to write [default: as in LOGS].", default=None
    )
    lossy: bool = option("Drop what the log version has no field for.", default=False)


Target: TypeAlias = Literal["chrome", "parquet", "csv", "goal", "simgrid"]

SIMULATORS: tuple[Target, ...] = ("goal", "simgrid")
"""Targets that need the whole program: a part of it would wait for messages forever."""

ALWAYS = (-math.inf, math.inf)
"""The interval of everything."""


class ExportCommand(
    Jobs, Force, ParamsFolder, Selection, NetworkOptions, Out, LogsOrTraces, Command["Exported"]
):
    """Write logs in the format of a trace viewer, of tables, or of a simulator.

    >>> rewritelog.export("sample_logs/cells", "tables", "csv", pes="0-3").counts["sebs"]
    184
    """

    job = "exporting.run:export"
    shell = REPORT | {"engine"}

    to: Target = option(
        "chrome: JSON for Perfetto and chrome://tracing; parquet, csv: tables; goal: LogGOPSim; "
        "simgrid: smpirun -replay.",
        kw_only=False,
    )
    replayed: bool = option(
        "goal, simgrid: each PE runs its SEBs in the order of a replay over this network. Chakra "
        "traces: nodes start when they do in it.",
        default=False, group=NETWORK,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.to in SIMULATORS and (self.pes is not None or self.interval != ALWAYS):
            raise UsageError(
                f"{spelled('pes')}, {spelled('from_s')} and {spelled('until_s')} cannot be "
                f"combined with {spelled('to', self.to)}, which exports the complete program"
            )
        if self.describes_network and not self.replayed:
            raise UsageError(f"a network is for {spelled('replayed', True)}")


class SynthCommand(Flush, Force, Jobs, Seed, Out, Command["Synthesis"]):
    """Generate a realistic log set with params and a timings file.

    >>> made = rewritelog.synth("made", pes=4, sebs=100)
    >>> rewritelog.open_logs("made")
    <LogSet made: 4 PEs in 2 files, log version 6>
    """

    job = "synthesis.synth:synthesise"

    pes: int = option("Number of emulated PEs.", default=16, least=1, most=_MOST_INT)
    sebs: int = option("SEBs per PE, to within a few.", default=1000, least=1, most=_MOST_INT)
    messages: float = option(
        "Mean number of messages per SEB.", default=0.6, metavar="MEAN", least=0, most=1000
    )
    files: int | None = option(
        "Number of timeline files [default: 2, or 1 for a single node].",
        default=None, metavar="N", least=1,
    )  # fmt: skip
    wth: int = option("Worker threads per node.", default=1, least=1)
    size: int | None = option(
        "Cells of the domain that the PEs share; work and messages grow with a PE's part "
        "[default: 1000 per PE].",
        default=None, metavar="D", least=1,
    )  # fmt: skip
    byte_order: Literal["little", "big"] = option("The byte order to write.", default="little")
    log_version: int = option(f"{VERSION_HELP}.", default=NEWEST, least=0, most=NEWEST)
    bracketed: float = option(
        "Share of SEBs that have a bracket and a param record.",
        default=0.0926, least=0, most=1, shell=False,
    )  # fmt: skip
    timings: int = option(
        "Number of timing lines.", default=600, least=0, most=_MOST_INT, shell=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pes % self.wth:
            raise UsageError(
                f"{spelled('pes')} {self.pes} is not a multiple of {spelled('wth')}, {self.wth}"
            )
        if self.timeline_files > self.nodes:
            raise UsageError(
                f"{spelled('files')} must be at most {self.nodes}, the number of nodes"
            )
        if self.cells > MOST_CELLS:
            most = f"{MOST_CELLS * self.pes:,}, {MOST_CELLS:,} a PE"
            raise UsageError(f"{spelled('size')} must be at most {most}")

    @property
    def cells(self) -> int:
        """The number of cells per PE."""
        return CELLS_OF_A_PE if self.size is None else max(self.size // self.pes, 1)

    @property
    def timeline_files(self) -> int:
        """The number of timeline files."""
        return min(2, self.nodes) if self.files is None else self.files

    @property
    def nodes(self) -> int:
        """The number of emulated nodes."""
        return self.pes // self.wth


rewrite = function(RewriteCommand)
check = function(CheckCommand)
rules = function(RulesCommand)
info = function(InfoCommand)
diff = function(DiffCommand)
dump = function(DumpCommand)
timeline = function(TimelineCommand)
convert = function(ConvertCommand)
export = function(ExportCommand)
synth = function(SynthCommand)
