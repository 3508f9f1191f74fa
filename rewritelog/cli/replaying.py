"""`rewritelog replay` and `lost-cycles`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rewritelog.cli.arguments import (
    ADVANCED,
    OUTPUT,
    ClockHz,
    Coefficients,
    CopyParams,
    Dilation,
    DilationFor,
    Fitted,
    Force,
    Formulas,
    Jobs,
    Logs,
    ModelName,
    ModelOption,
    Params,
    Speedup,
    Strict,
    TimingsOption,
    is_stdout,
    output_option,
    to_path,
)
from rewritelog.cli.completers import complete_event
from rewritelog.cli.console import Outcome
from rewritelog.cli.model_options import add_pairs, split_pairs, with_model_options
from rewritelog.cli.rewrite import dilation_of, dilations_for
from rewritelog.cli.standard import reporting
from rewritelog.errors import UsageError
from rewritelog.rewriting.options import RewriteOptions

if TYPE_CHECKING:
    from rewritelog.replaying.network import Network

NETWORK = "Network"

NetworkModel = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="log",
        rich_help_panel=NETWORK,
        help="log: each message keeps its recorded transit time [default without --latency, "
        "--bandwidth and --machine].",
    ),
]
Machine = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel=NETWORK,
        help="A machine file (TOML) with the quantities below; options given beside it win.",
    ),
]
Latency = Annotated[
    str | None,
    typer.Option(metavar="TIME", rich_help_panel=NETWORK, help="Latency between nodes, as in 1us."),
]
Bandwidth = Annotated[
    str | None,
    typer.Option(
        metavar="RATE", rich_help_panel=NETWORK, help="Bandwidth between nodes, as in 10GB/s."
    ),
]
CostPerPacket = Annotated[
    str | None,
    typer.Option(metavar="TIME", rich_help_panel=NETWORK, help="Time for each packet."),
]
PacketSize = Annotated[
    str | None, typer.Option(metavar="SIZE", rich_help_panel=NETWORK, help="Size of a packet.")
]
NodeLatency = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        rich_help_panel=NETWORK,
        help="Latency from one worker thread of a node to another [default: 0].",
    ),
]
LostAs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN=CATEGORY",
        autocompletion=complete_event,
        help="Count SEBs of that name, or middle regions of that event, as lost in a category; "
        "repeatable, the last match wins.",
    ),
]


@reporting(warns=True, pages=True)
@with_model_options
def replay_command(
    logs: Logs,
    network: NetworkModel = None,
    machine: Machine = None,
    latency: Latency = None,
    bandwidth: Bandwidth = None,
    cost_per_packet: CostPerPacket = None,
    packet_size: PacketSize = None,
    node_latency: NodeLatency = None,
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
        typer.Option(metavar="OTHER", help="Compare with the replay of another log set, before."),
    ] = None,
    lost_as: LostAs = None,
    output: Annotated[
        Path | None, output_option("The grid of --sweep as CSV [default: none]")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="The grid of --sweep as a figure: .png, .svg or .pdf; needs rewritelog[view].",
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
    timings: TimingsOption = None,
    model: ModelName = None,
    fitted: Fitted = None,
    formulas: Formulas = None,
    coefficients: Coefficients = None,
    params: Params = None,
    clock_hz: ClockHz = None,
    dilation: Dilation = None,
    speedup: Speedup = None,
    dilation_for: DilationFor = None,
    jobs: Jobs = 0,
    gains: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            rich_help_panel=ADVANCED,
            help="Replay without each of the N largest SEB names, and of the N largest events "
            "[default: 10; fewer for more than 500,000 SEBs].",
        ),
    ] = None,
    strict: Strict = False,
    model_option: ModelOption = None,
    *,
    model_options: dict[str, Any],
) -> Outcome:
    """Predict how long the whole program takes, and what bounds it.

    SEBs run on their PEs as messages and dependencies let them, with their durations as they are
    or as a dilation or a model makes them. The network is simple: see docs/replay.md.
    """
    add_pairs(model_options, model_option)
    options = RewriteOptions(
        model=model,
        model_options=model_options,
        timings=tuple(timings or ()),
        fitted=fitted,
        formulas=formulas,
        coefficients=coefficients,
        params=params,
        clock_hz=clock_hz,
        strict=strict,
        dilation=dilation_of(dilation, speedup),
        dilation_for=dilations_for(dilation_for or []),
        copy_params=copy_params,
        force=force,
        jobs=jobs,
    )
    chosen = _network(
        network, machine, latency, bandwidth, cost_per_packet, packet_size, node_latency
    )
    if sweep:
        excluded = {"--against": against, "--write": write, "--lost-as": lost_as}
        _refuse("--sweep", excluded)
        return _sweep(logs, sweep, chosen, options, to_path(output), plot, taken=is_stdout(output))
    _refuse("a replay without --sweep", {"--output": output, "--plot": plot})
    from rewritelog.replaying.options import ReplayOptions  # noqa: PLC0415

    whole = ReplayOptions(options, _lost_as(lost_as), gains, write)
    return _replay(logs, against, chosen, whole)


@reporting(warns=True)
@with_model_options
def lost_cycles_command(
    logs: Logs,
    network: NetworkModel = None,
    machine: Machine = None,
    latency: Latency = None,
    bandwidth: Bandwidth = None,
    cost_per_packet: CostPerPacket = None,
    packet_size: PacketSize = None,
    node_latency: NodeLatency = None,
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
    timings: TimingsOption = None,
    model: ModelName = None,
    fitted: Fitted = None,
    formulas: Formulas = None,
    coefficients: Coefficients = None,
    params: Params = None,
    clock_hz: ClockHz = None,
    dilation: Dilation = None,
    speedup: Speedup = None,
    dilation_for: DilationFor = None,
    jobs: Jobs = 0,
    strict: Strict = False,
    model_option: ModelOption = None,
    *,
    model_options: dict[str, Any],
) -> Outcome:
    """Split all PE time of a replay into useful work and categories of lost cycles.

    Several runs make a study: their timing lines, in one file, are fitted and verified as any
    others, and `predict --at` adds the categories up at sizes that were never run.
    """
    add_pairs(model_options, model_option)
    options = RewriteOptions(
        model=model,
        model_options=model_options,
        timings=tuple(timings or ()),
        fitted=fitted,
        formulas=formulas,
        coefficients=coefficients,
        params=params,
        clock_hz=clock_hz,
        strict=strict,
        dilation=dilation_of(dilation, speedup),
        dilation_for=dilations_for(dilation_for or []),
        jobs=jobs,
    )
    chosen = _network(
        network, machine, latency, bandwidth, cost_per_packet, packet_size, node_latency
    )
    from rewritelog.replaying.study import Study, variables_of  # noqa: PLC0415

    study = Study(variables_of(split_pairs(var or [], "--var")), timings_out)
    return Outcome(study.add(logs, chosen, options, _lost_as(lost_as)))


def _network(
    network: str | None,
    machine: Path | None,
    latency: str | None,
    bandwidth: str | None,
    cost_per_packet: str | None,
    packet_size: str | None,
    node_latency: str | None,
) -> Network:
    from rewritelog.replaying.network import Network, read_machine  # noqa: PLC0415

    texts = {
        "latency": latency,
        "bandwidth": bandwidth,
        "cost-per-packet": cost_per_packet,
        "packet-size": packet_size,
        "node-latency": node_latency,
    }
    given = {name: text for name, text in texts.items() if text is not None}
    if network not in (None, "log"):
        raise UsageError(
            f"--network must be log, not {network!r}; --latency describes other networks"
        )
    if network == "log":
        _refuse(
            "--network log", {"--machine": machine, "--latency": latency, "--bandwidth": bandwidth}
        )
    base = Network() if machine is None else read_machine(machine)
    return base.with_quantities(given)


def _refuse(what: str, others: dict[str, Any]) -> None:
    given = [name for name, value in others.items() if value]
    if given:
        raise UsageError(f"{what} takes no {given[0]}")


def _lost_as(pairs: list[str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(split_pairs(pairs or [], "--lost-as"))


def _sweep(
    logs: Path,
    texts: list[str],
    network: Network,
    options: RewriteOptions,
    output: Path | None,
    plot: Path | None,
    *,
    taken: bool,
) -> Outcome:
    from rewritelog.logs.logset import open_logs  # noqa: PLC0415
    from rewritelog.output import check_outputs, write_text_file  # noqa: PLC0415
    from rewritelog.replaying.sweep import Axis, sweep  # noqa: PLC0415
    from rewritelog.viewing.sweep_plot import check_plot, write_plot  # noqa: PLC0415

    axes = [Axis.parse(text) for text in texts]
    if plot is not None:
        check_plot(plot)
    opened = open_logs(logs)
    check_outputs([output, plot], options.files, [opened.folder, options.params])
    found = sweep(opened, axes, network, options)
    if output is not None:
        write_text_file(output, found.csv())
    if plot is not None:
        write_plot(found, plot)

    def page() -> str:
        from rewritelog.viewing.replay_page import sweep_page  # noqa: PLC0415 - an extra

        return sweep_page(found)

    return Outcome(found, stdout_taken=taken, page=page)


def _replay(logs: Path, against: Path | None, network: Network, options: Any) -> Outcome:
    from dataclasses import replace  # noqa: PLC0415

    from rewritelog.replaying.report import ReplayComparison  # noqa: PLC0415
    from rewritelog.replaying.run import replay, replay_whole  # noqa: PLC0415 - numba is slow

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
