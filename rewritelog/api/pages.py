"""The HTML pages of results, for Python."""

from __future__ import annotations

from rewritelog.api.fitted import FittedModel
from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.evaluation.compare import CompareReport
from rewritelog.evaluation.verify import VerifyReport, verify
from rewritelog.inspection.info import LogInfo, TraceInfo
from rewritelog.options import PathLike
from rewritelog.output.files import check_outputs, check_page, write_text_file
from rewritelog.paths import to_output
from rewritelog.replaying.sweep import Sweep
from rewritelog.rewriting.report import RewriteReport
from rewritelog.sampling.sample import SampleReport
from rewritelog.timings.read import samples_of
from rewritelog.timings.samples import TimingsLike, files_of, to_files_or_samples
from rewritelog.viewing.page import page_of


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
    its page itself. Raise `UsageError` for anything else, for a model file without timings, and if
    the extra `rewritelog[view]` is not installed, and `OutputError` if the page cannot be written.

    >>> fitted = rewritelog.fit("sample_logs/cells/timings.txt")
    >>> html = rewritelog.page(fitted, output="fit.html")
    """
    path = None if output is None else to_output(output, "the page")
    logs = [of.logs.folder] if isinstance(of, RewriteReport | SampleReport) else []
    read = () if timings is None else to_files_or_samples(timings, "the timings")
    check_outputs([path], [*files_of(read), *getattr(of, "inputs", ()), *logs])
    if path is not None:
        check_page(path)
    if isinstance(of, FittedModel):
        samples = of.timings if timings is None else samples_of(read, columns=of.columns)
        if samples is None:
            raise UsageError("a model file has no samples: give timings for its page")
        text = page_of(verify(of, samples))
    elif timings is not None:
        raise UsageTypeError(f"the page of {type(of).__name__} takes no timings")
    else:
        text = page_of(of)
    if path is not None:
        write_text_file(path, text)
    return text
