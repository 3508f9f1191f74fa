"""Runs the live page of fits: read the timings, then fit and serve until Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from signal import SIGINT
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rewritelog.commands.fits import ExploreCommand
from rewritelog.commands.logs import RewriteCommand
from rewritelog.errors import UsageError, spelled
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.running.engines import cores
from rewritelog.stopping import Stopped
from rewritelog.text import LABEL_WIDTH, shorten_all
from rewritelog.timings.read import read_model_text, read_param_names, samples_of
from rewritelog.timings.samples import files_of
from rewritelog.viewing.extra import require

if TYPE_CHECKING:
    from rewritelog.models.fitted import Fitted
    from rewritelog.viewing.explorer.server import Effect

MOST_EVENTS = 3_000
"""The live page shows every event as a row, and refuses timings with more events than this."""


def explore(options: ExploreCommand) -> None:
    """Serve the page until Ctrl-C, and print its address.

    Pages ask for the fits of all events. Raise a `RewriteLogError` for inputs that cannot be read.
    """
    require("bokeh", "explore")
    from rewritelog.viewing.explorer.server import Explorer  # noqa: PLC0415
    from rewritelog.viewing.explorer.session import Saving, Session  # noqa: PLC0415

    formulas = None if options.formulas is None else read_model_text(options.formulas)
    names = read_param_names(options.param_names)
    if options.dilation is not None and options.logs is None:
        raise UsageError(
            f"{spelled('dilation')} needs {spelled('logs')}: it changes what no fit covers of them"
        )
    timings = samples_of(options.timings, options.clock_hz, strict=options.strict)
    if len(timings.timings) > MOST_EVENTS:
        raise UsageError(
            f"the timings hold {len(timings.timings):,} events; explore shows at most "
            f"{MOST_EVENTS:,}: give it files with the events that matter, or make a page with "
            f"fit {spelled('html')}"
        )
    inputs = [*files_of(options.timings), *([options.formulas] if options.formulas else [])]
    saving = Saving(options.output, inputs, formulas, options.clock_hz, force=options.force)
    if text := saving.refusal():
        sys.stderr.write(f"warning: {text}; else nothing can be saved\n")
    session = Session(timings, formulas, names)
    effect = None if options.logs is None else effect_on(options.logs, options.params)

    with Explorer(session, saving, effect, options.dilation or 1.0) as explorer, _until_ctrl_c():
        explorer.document()  # the first time takes longest
        sys.stdout.write(f"open {explorer.address}\nCtrl-C stops the server\n")
        sys.stdout.flush()
        with nullcontext() if options.no_browser else _browser_at(explorer.address):
            explorer.serve_forever()


@contextmanager
def _until_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the `with` block, and nothing else."""
    try:
        yield
    except KeyboardInterrupt:
        pass
    except Stopped as end:
        if end.number != SIGINT:
            raise


_OPEN = """\
import signal, sys, webbrowser
signal.signal(signal.SIGINT, signal.SIG_DFL)
webbrowser.open(sys.argv[1])
"""


@contextmanager
def _browser_at(address: str) -> Iterator[None]:
    """Open a page in the user's browser, from a process that waits if it is one in the terminal.

    Every user can read the browser's command line, so it does not name the address, but a file with
    a link to it that only this user can read.
    """
    with TemporaryDirectory(prefix="rewritelog-") as folder:
        file = Path(folder, "explore.html")
        file.touch(0o600)
        refresh = f'<meta http-equiv="refresh" content="0; url={address}">'
        file.write_text(f'<!doctype html>{refresh}<a href="{address}">the live page</a>\n')
        opening = subprocess.Popen(  # noqa: S603 - the user's own browser
            [sys.executable, "-I", "-c", _OPEN, file.as_uri()]
        )
        try:
            yield
        finally:
            opening.terminate()
            opening.wait()


def effect_on(logs: LogSet, params: Path | None) -> Effect:
    """Return what computes the effect of the fits on a rewrite, by dry runs, and by replays."""
    rewriting = partial(RewriteCommand, logs, params=params, network="log", jobs=cores())

    def effect(first_fits: Fitted, fits: Fitted, dilation: float) -> dict[str, Any]:
        """Return summary sentences, warnings, and seconds of run and events before and after."""
        first, now = (
            rewriting(fitted=each, dilation=dilation).run() for each in (first_fits, fits)
        )
        runs = [report.run_time for report in (first, now) if report.run_time is not None]
        by_event = {line.event: line.new_s for line in first.events}
        labels = shorten_all([line.event for line in now.events], LABEL_WIDTH)
        return {
            "effect": replace(now, run_time=None).top_lines(),
            "warnings": list(now.warnings),
            "seconds": [
                ["the whole run, replayed", runs[0].before_s, *(run.after_s for run in runs)],
                *(
                    [label, line.old_s, by_event[line.event], line.new_s]
                    for label, line in zip(labels, now.events, strict=True)
                ),
            ],
        }

    return effect
