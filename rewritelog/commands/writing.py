"""Commands that write logs: `rewrite`, `convert`, `export` and `synth`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Literal

from rewritelog.commands.command import (
    DETAILS,
    ENGINE,
    OUT_HELP,
    PAGE,
    REPORT,
    WARNINGS,
    AnyTraces,
    Command,
    Logs,
    Out,
    function,
)
from rewritelog.errors import UsageError
from rewritelog.exporting.options import ExportOptions
from rewritelog.options import (
    OUTPUT,
    Flush,
    Force,
    Jobs,
    OptionalOutput,
    argument,
    option,
)
from rewritelog.progress import Listener
from rewritelog.replaying.options import NETWORK, NetworkOptions
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.synthesis.options import VERSION_HELP, SynthOptions

if TYPE_CHECKING:
    from rewritelog.converting import Conversion
    from rewritelog.exporting.run import Exported
    from rewritelog.rewriting.report import RewriteReport
    from rewritelog.synthesis.synth import Synthesis


class RewriteCommand(RewriteOptions, NetworkOptions, AnyTraces, Command["RewriteReport"]):
    """Rewrite logs or traces with new durations, and predict the run time.

    A model predicts the bracketed parts of SEBs, or nodes; the rest is dilated. The run time is
    that of a replay, in the network as recorded or as given; over a million SEBs only as given.

    >>> timings = "sample_logs/cells/timings.txt"
    >>> report = rewritelog.rewrite("sample_logs/cells", timings=timings, dilation=0.5)
    >>> report.events[0].by_model
    24
    """

    shell = REPORT | WARNINGS | PAGE | ENGINE | DETAILS
    rare = frozenset({"latency", "bandwidth"})

    out: OptionalOutput = argument(OUT_HELP, metavar="OUT", default=None, kw_only=False)
    dry_run: bool = option(
        "Print the report without writing OUT; takes no OUT.", default=False, group=OUTPUT
    )
    progress: Listener | None = option(
        "Called with the stage, and how much of it is done.", default=None, shell=False
    )

    def check_words(self) -> None:
        """Raise `UsageError` unless there is either OUT or `--dry-run`."""
        if self.out is None and not self.dry_run:
            raise UsageError("missing argument 'OUT' (--dry-run needs none)")
        if self.out is not None and self.dry_run:
            raise UsageError("--dry-run takes no OUT")

    def run(self) -> RewriteReport:
        """Write the folder, or only report; `out` is not changed if an error is raised."""
        from rewritelog.progress import listening
        from rewritelog.replaying.run_time import with_run_time
        from rewritelog.rewriting.run import rewrite

        network = self.read_network()
        with nullcontext() if self.progress is None else listening(self.progress):
            report = rewrite(self.logs, self.out, self)
            return with_run_time(report, network, asked=self.describes_network)


class ConvertCommand(Force, Out, Logs, Command["Conversion"]):
    """Write a log set in another log version or byte order.

    >>> rewritelog.convert("sample_logs/cells", "big", byte_order="big")  # doctest: +SKIP
    """

    shell = REPORT | ENGINE

    log_version: int | None = option(
        f"{VERSION_HELP} [default: as in LOGS].", default=None, metavar="N"
    )
    byte_order: Literal["little", "big"] | None = option(
        "The byte order to write [default: as in LOGS].", default=None
    )
    lossy: bool = option("Drop what the log version has no field for.", default=False)

    def run(self) -> Conversion:
        """Write the folder; return what was converted."""
        from rewritelog.converting import convert_logs

        return convert_logs(
            self.logs,
            self.out,
            log_version=self.log_version,
            order=self.byte_order,
            lossy=self.lossy,
            force=self.force,
        )


class ExportCommand(Force, ExportOptions, NetworkOptions, Out, AnyTraces, Command["Exported"]):
    """Write logs in the format of a trace viewer, of tables, or of a simulator.

    >>> exported = rewritelog.export("sample_logs/cells", "out", "csv", pes="0-3")  # doctest: +SKIP
    """

    shell = REPORT | WARNINGS | ENGINE

    replayed: bool = option(
        "goal, simgrid: each PE runs its SEBs in the order of a replay over this network. Chakra "
        "traces: nodes start when they do in it.",
        default=False, group=NETWORK,
    )  # fmt: skip

    def run(self) -> Exported:
        """Write the folder; return what it holds."""
        from rewritelog.exporting.run import export_opened

        if self.describes_network and not self.replayed:
            raise UsageError("a network is for --replayed")
        network = self.read_network() if self.replayed else None
        return export_opened(self.logs, self.out, self, network, force=self.force)


class SynthCommand(Flush, Force, Jobs, SynthOptions, Out, Command["Synthesis"]):
    """Generate a realistic log set with params and a timings file.

    >>> rewritelog.synth("made", pes=4, sebs=100)  # doctest: +SKIP
    """

    def run(self) -> Synthesis:
        """Write the folder; return its size."""
        from rewritelog.cores import limited_to
        from rewritelog.synthesis.synth import synthesise

        with limited_to(self.jobs):
            return synthesise(self.out, self, force=self.force, flush=not self.no_flush)


rewrite = function(RewriteCommand)
convert = function(ConvertCommand)
export = function(ExportCommand)
synth = function(SynthCommand)
