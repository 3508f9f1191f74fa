"""Functions about whole runs: replays, sweeps, lost cycles, and exports to other tools."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rewritelog.api.arguments import (
    PathLike,
    make_options,
    optional_input,
    optional_path,
    to_input,
    to_path,
)
from rewritelog.api.jobs import LogsLike, open_logs, rewrite_options
from rewritelog.exporting.options import ExportOptions, Target
from rewritelog.exporting.run import Exported
from rewritelog.exporting.run import export as export_logs
from rewritelog.output import check_outputs, write_text_file
from rewritelog.replaying.network import Network, read_machine
from rewritelog.replaying.options import ReplayOptions
from rewritelog.replaying.report import ReplayReport
from rewritelog.replaying.run import replay_whole
from rewritelog.replaying.study import Study, StudyRun, variables_of
from rewritelog.replaying.sweep import Axis, Sweep
from rewritelog.replaying.sweep import sweep as sweep_logs
from rewritelog.viewing.extra import require
from rewritelog.viewing.replay_page import replay_page
from rewritelog.viewing.sweep_plot import check_plot, write_plot

NetworkLike: TypeAlias = "Network | Mapping[str, Any] | PathLike"


def replay(
    logs: LogsLike,
    network: NetworkLike | None = None,
    *,
    gains: int | None = None,
    write: PathLike | None = None,
    html: PathLike | None = None,
    lost_as: Mapping[str, str] | None = None,
    **given: Any,
) -> ReplayReport:
    """Predict the run time of the whole program from its logs.

    `network` is a `Network`, its values by name (such as `{"latency_s": 1e-6}`) or a machine file;
    None keeps the recorded transit times. `gains` is the number of SEB names, and of events, for
    which the gain is computed if they took no time; None for ten of each, and fewer for large logs.
    `lost_as` maps patterns of SEB names or events to categories of lost time. Logs with replayed
    times are written to `write`, a page with the timeline and the critical path to `html`. Further
    options are those of `rewrite`.

    >>> report = rewritelog.replay("sample_logs/cells", {"latency_s": 1e-6}, gains=0)
    >>> report.pes
    16
    """
    options = ReplayOptions(
        rewrite=rewrite_options(given),
        lost_as=tuple((lost_as or {}).items()),
        gains=gains,
        write=optional_path(write, "the output folder"),
    )
    page = optional_path(html, "the page")
    if page is not None:
        require("bokeh", "the page")
    opened = open_logs(logs)
    check_outputs([page], options.rewrite.files, [opened.folder, options.rewrite.params])
    replayed = replay_whole(opened, _network(network), options)
    if page is not None:
        write_text_file(page, replay_page(replayed))
    return replayed.report


def sweep(
    logs: LogsLike,
    values: Mapping[str, Iterable[float | str]],
    network: NetworkLike | None = None,
    *,
    plot: PathLike | None = None,
    **given: Any,
) -> Sweep:
    """Predict the run time at every point of a grid; the logs are read once.

    `values` are those of `dilation`, `latency`, `bandwidth`, `cost_per_packet`, `packet_size` and
    `node_latency`, as numbers or with units; `network` has the values that are not varied. A figure
    (.png, .svg or .pdf) is written to `plot`. Further options are those of `rewrite`. No logs are
    written.

    >>> grid = {"dilation": [0.5, 1], "latency": ["1us", "10us"]}
    >>> found = rewritelog.sweep("sample_logs/cells", grid)
    >>> [point.values for point in found.points]
    [('0.5', '1us'), ('0.5', '10us'), ('1', '1us'), ('1', '10us')]
    """
    axes = [Axis.of(name, texts) for name, texts in values.items()]
    path = optional_path(plot, "the figure")
    if path is not None:
        check_plot(path)
    options, opened = rewrite_options(given), open_logs(logs)
    check_outputs([path], options.files, [opened.folder, options.params])
    found = sweep_logs(opened, axes, _network(network), options)
    if path is not None:
        write_plot(found, path)
    return found


def lost_cycles(
    logs: LogsLike,
    network: NetworkLike | None = None,
    *,
    lost_as: Mapping[str, str] | None = None,
    timings_out: PathLike | None = None,
    variables: Mapping[str, float] | None = None,
    **given: Any,
) -> StudyRun:
    """Divide all PE time of a replay into useful work and categories of lost cycles.

    A timing line for each category is appended to `timings_out`; its parameters are the number of
    PEs and then the `variables`, sorted by name. `network`, `lost_as` and further options are those
    of `replay`.

    >>> run = rewritelog.lost_cycles("sample_logs/cells", {"latency_s": 1e-6})
    >>> sorted(run.lost.totals_s)[:2]
    ['communication', 'end']
    """
    pairs = [(name, str(value)) for name, value in (variables or {}).items()]
    path = optional_path(timings_out, "the timings")
    study = Study(variables_of(pairs), path)
    rules = tuple((lost_as or {}).items())
    options = rewrite_options(given)
    return study.add(open_logs(logs), _network(network) or Network(), options, rules)


def export(
    logs: LogsLike,
    out: PathLike,
    to: Target,
    *,
    pes: str | None = None,
    from_s: float | None = None,
    until_s: float | None = None,
    params: PathLike | None = None,
    replayed: NetworkLike | None = None,
    force: bool = False,
) -> Exported:
    """Write a log set into the folder `out` in the format of another tool.

    `to` is chrome, parquet, csv, goal or simgrid; `pes`, such as "0-31,40", and the interval from
    `from_s` to `until_s` in seconds select a part for a viewer or for tables. With `replayed`, a
    network as for `replay`, simulators get the SEBs of each PE in the order of that replay.

    >>> found = rewritelog.export("sample_logs/cells", "out", "csv", pes="0-3")  # doctest: +SKIP
    """
    options = ExportOptions(
        to,
        pes,
        -math.inf if from_s is None else from_s,
        math.inf if until_s is None else until_s,
        optional_input(params, "the param files"),
        _network(replayed),
    )
    folder = to_path(out, "the output folder")
    return export_logs(open_logs(logs), folder, options, force=force)


def _network(given: NetworkLike | None) -> Network | None:
    if given is None or isinstance(given, Network):
        return given
    if isinstance(given, Mapping):
        return make_options(Network, given)
    return read_machine(to_input(given, "the machine file"))
