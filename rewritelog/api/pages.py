"""The HTML pages of reports."""

from __future__ import annotations

from functools import singledispatch

from rewritelog.api.fitted import FittedModel
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.evaluation.compare import CompareReport
from rewritelog.evaluation.fit import FitReport
from rewritelog.evaluation.verify import VerifyReport, verify
from rewritelog.inspection.info import LogInfo, TraceInfo
from rewritelog.options import PathLike
from rewritelog.output.files import check_outputs, write_text_file
from rewritelog.paths import to_output
from rewritelog.replaying.report import ReplayedRuns, ReplayReport
from rewritelog.replaying.run import Replayed
from rewritelog.replaying.sweep import Sweep
from rewritelog.rewriting.report import RewriteReport
from rewritelog.sampling.sample import SampleReport
from rewritelog.timings.read import samples_of
from rewritelog.timings.samples import TimingsLike, files_of, to_files_or_samples
from rewritelog.viewing.compare_page import compare_page
from rewritelog.viewing.fit_pages import fit_page, verify_page
from rewritelog.viewing.info_page import info_page
from rewritelog.viewing.replay_page import replay_page, runs_page, sweep_page
from rewritelog.viewing.rewrite_page import rewrite_page
from rewritelog.viewing.sample_page import sample_page


@singledispatch
def page_of(result: object) -> str:
    """Return the page of a command's result; raise `UsageTypeError` for one that has none."""
    hint = ": replay has html=FILE" if isinstance(result, ReplayReport) else ""
    raise UsageTypeError(f"there is no page for an object of type {type(result).__name__}{hint}")


page_of.register(CompareReport, compare_page)
page_of.register(FitReport, fit_page)
page_of.register(LogInfo, info_page)
page_of.register(RewriteReport, rewrite_page)
page_of.register(SampleReport, sample_page)
page_of.register(Replayed, replay_page)
page_of.register(ReplayedRuns, runs_page)
page_of.register(Sweep, sweep_page)
page_of.register(TraceInfo, info_page)
page_of.register(VerifyReport, verify_page)


def page(
    of: RewriteReport
    | CompareReport
    | VerifyReport
    | SampleReport
    | Sweep
    | LogInfo
    | TraceInfo
    | FittedModel,
    timings: TimingsLike | None = None,
    *,
    output: PathLike | None = None,
) -> str:
    """Return the HTML page of a command's option `--html`, and write it to `output`.

    `of` is the result of `rewrite`, `compare`, `verify`, `sample`, `sweep` or `info`, or a fitted
    model, which is compared with `timings`, by default those that it was fitted to. `replay` writes
    its page itself. The extra `rewritelog[view]` has to be installed.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> html = rewritelog.page(fitted, "sample_logs/cells/timings.txt")  # doctest: +SKIP
    """
    path = None if output is None else to_output(output, "the page")
    logs = [of.logs.folder] if isinstance(of, RewriteReport | SampleReport) else []
    read = () if timings is None else to_files_or_samples(timings, "the timings")
    check_outputs([path], [*files_of(read), *getattr(of, "inputs", ()), *logs])
    if isinstance(of, FittedModel):
        samples = of.timings if timings is None else samples_of(read, columns=of.columns)
        if samples is None:
            raise UsageError("a model file has no samples: give timings for its page")
        text = verify_page(verify(of, samples))
    elif timings is not None:
        raise UsageTypeError(f"the page of {type(of).__name__} takes no timings")
    else:
        text = page_of(of)
    if path is not None:
        write_text_file(path, text)
    return text
