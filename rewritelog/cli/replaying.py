"""`rewritelog replay` and `lost-cycles`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewritelog.cli.arguments import (
    ADVANCED,
    OUTPUT,
    CopyParams,
    Force,
    Jobs,
    Logs,
    is_stdout,
    output_option,
    to_path,
)
from rewritelog.cli.completers import complete_event
from rewritelog.cli.console import Outcome
from rewritelog.cli.model_options import split_pairs, with_model_options
from rewritelog.cli.option_groups import DurationGroup, NetworkGroup, refuse, with_groups
from rewritelog.cli.standard import reporting
from rewritelog.rewriting.options import RewriteOptions

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

LostAs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN=CATEGORY",
        autocompletion=complete_event,
        help="Count SEBs of that name, or middle regions of that event, as lost in a category; "
        "repeatable, the last match wins.",
    ),
]


@reporting(warns=True, pages=True, engines=True)
@with_model_options
@with_groups(without="param_names")
def replay_command(
    logs: Logs,
    network: NetworkGroup,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,VALUE,...",
            help="Only predict run times, over a grid of dilation, latency, bandwidth, "
            "cost-per-packet, packet-size or node-latency; repeatable.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="OTHER", help="Compare with the replay of another log set, as the state before."
        ),
    ] = None,
    lost_as: LostAs = None,
    output: Annotated[
        Path | None, output_option("Write the grid of --sweep to this file as CSV [default: none]")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Draw the grid of --sweep: .png, .svg or .pdf; needs rewritelog[view].",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            rich_help_panel=OUTPUT,
            help="Write the logs with their replayed times to this folder.",
        ),
    ] = None,
    copy_params: CopyParams = False,
    force: Force = False,
    jobs: Jobs = 0,
    gains: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            rich_help_panel=ADVANCED,
            help="Replay with each of the N largest SEB names and events taking no time "
            "[default: 10; fewer for more than 500,000 SEBs].",
        ),
    ] = None,
    *,
    durations: DurationGroup,
    model_options: dict[str, Any],
) -> Outcome:
    """Predict how long the whole program takes, and what bounds it.

    SEBs run on their PEs in the order that messages and dependencies allow, with their recorded
    durations or those of a dilation or a model. The network is simple: see docs/replay.md.
    """
    options = replace(
        durations.options(model_options), copy_params=copy_params, force=force, jobs=jobs
    )
    if sweep:
        excluded = {"--against": against, "--write": write, "--lost-as": lost_as}
        refuse("--sweep", excluded)
        return _sweep(logs, sweep, network, options, to_path(output), plot, taken=is_stdout(output))
    chosen = network.read()
    refuse("a replay without --sweep", {"--output": output, "--plot": plot})
    from rewritelog.replaying.options import ReplayOptions  # noqa: PLC0415

    whole = ReplayOptions(options, _lost_as(lost_as), gains, write)
    return _replay(logs, against, chosen, whole)


@reporting(warns=True, engines=True)
@with_model_options
@with_groups(without="param_names")
def lost_cycles_command(
    logs: Logs,
    network: NetworkGroup,
    lost_as: LostAs = None,
    var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A variable of the run, as in D=128, for --timings-out; repeatable.",
        ),
    ] = None,
    timings_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Append a timing line for each category to this file.",
        ),
    ] = None,
    jobs: Jobs = 0,
    *,
    durations: DurationGroup,
    model_options: dict[str, Any],
) -> Outcome:
    """Split all PE time of a replay into useful work and categories of lost cycles.

    Several runs make a study: their timing lines, in one file, are fitted and verified like any
    others, and `predict --at` adds the categories up at sizes that were never run.
    """
    options = replace(durations.options(model_options), jobs=jobs)
    chosen = network.read()
    from rewritelog.replaying.study import Study, variables_of  # noqa: PLC0415

    study = Study(variables_of(split_pairs(var or [], "--var")), timings_out)
    return Outcome(study.add(logs, chosen, options, _lost_as(lost_as)))


def _lost_as(pairs: list[str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(split_pairs(pairs or [], "--lost-as"))


def _sweep(
    logs: Path,
    texts: list[str],
    network: NetworkGroup,
    options: RewriteOptions,
    output: Path | None,
    plot: Path | None,
    *,
    taken: bool,
) -> Outcome:
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415
    from rewritelog.output import check_outputs, write_text_file  # noqa: PLC0415
    from rewritelog.replaying.network import PACKET_QUANTITIES  # noqa: PLC0415
    from rewritelog.replaying.sweep import Axis, sweep  # noqa: PLC0415
    from rewritelog.viewing.sweep_plot import check_plot, write_plot  # noqa: PLC0415

    axes = [Axis.parse(text) for text in texts]
    packets = {axis.name: axis.values[0] for axis in axes if axis.name in PACKET_QUANTITIES}
    base = network.read(packets)  # packets need both, of which one may be swept
    if plot is not None:
        check_plot(plot)
    opened = open_logs(logs)
    check_outputs([output, plot], options.files, [opened.folder, options.params])
    found = sweep(opened, axes, base, options)
    if output is not None:
        write_text_file(output, found.csv())
    if plot is not None:
        write_plot(found, plot)

    def page() -> str:
        from rewritelog.viewing.replay_page import sweep_page  # noqa: PLC0415 - an extra

        return sweep_page(found)

    return Outcome(found, stdout_taken=taken, page=page)


def _replay(logs: Path, against: Path | None, network: Network, options: Any) -> Outcome:
    from rewritelog.replaying.report import ReplayComparison  # noqa: PLC0415
    from rewritelog.replaying.run import replay, replay_whole  # noqa: PLC0415

    before = None
    if against is not None:
        plain = replace(options, gains=0, write=None)
        before = replay(against, network, plain)
    after = replay_whole(logs, network, options)

    def page() -> str:
        from rewritelog.viewing.replay_page import replay_page  # noqa: PLC0415 - an extra

        return replay_page(after)

    report = after.report
    return Outcome(report if before is None else ReplayComparison(before, report), page=page)
