"""Figures of logs, HTML pages of reports, and the live page of fits."""

from __future__ import annotations

from collections.abc import Sequence

from rewritelog.api.arguments import (
    PathLike,
    PathsLike,
    optional_input,
    optional_path,
    to_inputs,
    to_path,
)
from rewritelog.api.fitted import FittedModel
from rewritelog.api.jobs import LogsLike, are_paths, logs_folder, open_logs, verify
from rewritelog.api.timings import TimingsLike, to_timings
from rewritelog.cores import limited_to
from rewritelog.errors import UsageTypeError
from rewritelog.evaluation.compare import CompareReport
from rewritelog.output import check_outputs, write_text_file
from rewritelog.replaying.sweep import Sweep
from rewritelog.rewriting.report import Report
from rewritelog.sampling.report import SampleReport
from rewritelog.viewing.compare_page import compare_page
from rewritelog.viewing.draw import draw_timeline
from rewritelog.viewing.explore import ExploreOptions
from rewritelog.viewing.explore import explore as serve_page
from rewritelog.viewing.fit_pages import verify_page
from rewritelog.viewing.replay_page import sweep_page
from rewritelog.viewing.rewrite_page import rewrite_page
from rewritelog.viewing.sample_page import sample_page
from rewritelog.viewing.timeline import TimelineOptions


def timeline(
    logs: LogsLike,
    output: PathLike | None = None,
    *,
    kind: str | None = None,
    against: LogsLike | None = None,
    pes: Sequence[int] | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
    messages: bool = False,
    seed: int = 1,
) -> bytes:
    """Draw the SEBs of each PE over time; return the figure, and write it to `output`.

    `kind` is png, svg, pdf or html; the default is the extension of `output`, else svg. A second
    log set (`against`) is drawn below on the same axis. Of many messages a random sample is drawn,
    determined by `seed`. The extra `rewritelog[view]` has to be installed.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))  # doctest: +SKIP
    """
    path = optional_path(output, "the picture")
    sets = [open_logs(one) for one in (logs, against) if one is not None]
    options = TimelineOptions(None if pes is None else tuple(pes), from_s, to_s)
    return draw_timeline(sets, path, kind, options, messages=messages, seed=seed)


def page(
    of: Report | CompareReport | SampleReport | Sweep | FittedModel,
    timings: TimingsLike | None = None,
    *,
    output: PathLike | None = None,
) -> str:
    """Return the HTML page of a command's option `--html`, and write it to `output`.

    `of` is the result of `rewrite`, `compare`, `choose` or `sweep`, or a fitted model, which is
    compared with `timings`. `replay` writes its page itself. The extra `rewritelog[view]` has to
    be installed.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> html = rewritelog.page(fitted, "sample_logs/cells/timings.txt")  # doctest: +SKIP
    """
    path = optional_path(output, "the page")
    logs = [of.logs.folder] if isinstance(of, Report | SampleReport) else []
    check_outputs([path], to_inputs(timings, "the timings") if are_paths(timings) else [], logs)
    if isinstance(of, FittedModel) != (timings is not None):
        raise UsageTypeError("only the page of a fitted model takes timings")
    if isinstance(of, FittedModel) and timings is not None:
        lines = to_timings(timings, of.columns)
        text = verify_page(verify(of, lines), of.raw, lines.read)
    elif isinstance(of, Report):
        text = rewrite_page(of)
    elif isinstance(of, CompareReport):
        text = compare_page(of)
    elif isinstance(of, SampleReport):
        text = sample_page(of)
    elif isinstance(of, Sweep):
        text = sweep_page(of)
    else:
        raise UsageTypeError(f"there is no page for a {type(of).__name__}")
    if path is not None:
        write_text_file(path, text)
    return text


def explore(
    timings: PathsLike,
    logs: LogsLike | None = None,
    *,
    formulas: PathLike | None = None,
    params: PathLike | None = None,
    clock_hz: float | None = None,
    strict: bool = False,
    output: PathLike = ".",
    force: bool = False,
    browser: bool = True,
    jobs: int = 0,
) -> None:
    """Serve the live page of fits to a browser on this machine, until interrupted (Ctrl-C).

    Its address is printed, and opened if `browser` is true. The page saves `formulas.toml` and
    `model.json` to the folder `output`. With `logs` it shows the effect on a rewrite. The extra
    `rewritelog[view]` has to be installed.

    >>> rewritelog.explore("sample_logs/cells/timings.txt")  # doctest: +SKIP
    """
    options = ExploreOptions(
        timings=tuple(to_inputs(timings, "the timings")),
        logs=None if logs is None else logs_folder(logs),
        params=optional_input(params, "params"),
        formulas=optional_input(formulas, "formulas"),
        clock_hz=clock_hz,
        strict=strict,
        out=to_path(output, "the folder to save in"),
        force=force,
        browser=browser,
    )
    with limited_to(jobs):
        serve_page(options, lambda address: print(f"open {address}"))  # noqa: T201 - its result
