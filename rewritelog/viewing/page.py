"""Pages of plots in one HTML file, which opens from disk and loads nothing from a network."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from msgspec import Struct, structs

from rewritelog.errors import UsageTypeError
from rewritelog.options import called
from rewritelog.text import TextTable, folded, printable
from rewritelog.viewing.extra import require

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
)
"""Content security policy: the page loads only what it contains, and may not use `eval`."""

_PAGES = {
    "CompareReport": "compare_page:compare_page",
    "FitReport": "fit_pages:fit_page",
    "LogInfo": "info_page:info_page",
    "Replayed": "replay_page:replay_page",
    "ReplayedRuns": "replay_page:runs_page",
    "RewriteReport": "rewrite_page:rewrite_page",
    "SampleReport": "sample_page:sample_page",
    "Sweep": "replay_page:sweep_page",
    "TraceInfo": "info_page:info_page",
    "VerifyReport": "fit_pages:verify_page",
}
"""Where in `viewing` the page of a result is made; a command imports only its own."""

_RANDOM_ID = re.compile('(?:<div id=|"docid":)"([0-9a-f-]{36})"')
"""The random names that Bokeh gives to elements and the document."""


class Section(Struct, frozen=True):
    """A part of a page: a heading, some paragraphs, and plots or tables."""

    heading: str
    paragraphs: Sequence[str] = ()
    plot: Any = None
    """A Bokeh model."""
    table: TextTable | None = None
    """The numbers that the plot shows; in a section without a plot, the table itself is shown."""
    text: str = ""
    """Lines of a report, shown as they are."""
    html: str = ""
    """HTML before the plot, with all text escaped."""
    beside: str = ""
    """HTML beside the plot, below it in a narrow window."""
    name: str = ""
    """The id of the section for scripts; that of its heading begins with it."""
    table_name: str = ""
    """The id of the table for a script that fills it."""
    in_grid: bool = False
    """Whether it is placed beside its neighbours in a wide window."""
    script: str = ""
    """The name of a script in `assets` that the page runs for it."""
    data: Mapping[str, Any] = {}
    """Data of scripts: values for `json_of` by element id."""


def page_text(
    title: str,
    verdict: Sequence[str],
    sections: Sequence[Section],
    warnings: Sequence[str] = (),
    *,
    policy: str = POLICY,
    head: str = "",
) -> str:
    """Return a page as HTML; raise `UsageError` if the extra `[view]` is missing.

    Bokeh's scripts come last, so that summary and tables are visible before they are loaded.
    `policy` is the page's content security policy, `head` further HTML before the sections.
    """
    require("bokeh", "a page")
    from bokeh.embed import components  # noqa: PLC0415 - an extra
    from bokeh.resources import Resources  # noqa: PLC0415

    plots = {str(k): section.plot for k, section in enumerate(sections) if section.plot}
    script, divs = components(plots) if plots else ("", {})
    for number, random_id in enumerate(_RANDOM_ID.findall("".join((*divs.values(), script)))):
        script = script.replace(random_id, f"bokeh-{number}")  # so that equal runs make equal pages
        divs = {name: div.replace(random_id, f"bokeh-{number}") for name, div in divs.items()}
    resources = Resources(mode="inline", components=["bokeh"], log_level="error").render()
    shown, others, more = folded(warnings)
    data = [item for section in sections for item in section.data.items()]
    return rendered(
        "page.html",
        title=printable(title),
        verdict=[printable(line) for line in verdict],
        sections=sections,
        policy=policy,
        head=head,
        script=script,
        divs=divs,
        resources=resources if plots else "",
        warnings=shown,
        folded=others,
        more=more,
        scripts=dict.fromkeys(["pages.js", *(part.script for part in sections if part.script)]),
        data={name: json_of(value) for name, value in data},
    )


def rendered(template: str, **values: Any) -> str:
    """Return the HTML of a template in `assets`; text is escaped unless marked there as safe."""
    text: str = _environment().get_template(template).render(values)
    return text


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", "a page")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rewritelog.viewing", "assets"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["asset"] = asset
    return environment


def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("rewritelog.viewing").joinpath("assets", name).read_text(encoding="utf-8")


def json_of(value: Any) -> str:
    """Return a value as JSON that a page can contain.

    Structs become objects, and arrays base64 of 32-bit floats in column-major order.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), default=_json_value)
    return text.replace("<", "\\u003c")


def _json_value(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return structs.asdict(value)
    with np.errstate(over="ignore"):
        return base64.b64encode(value.astype("<f4").tobytes(order="F")).decode()


def page_of(result: object) -> str:
    """Return the page of a command's result; raise `UsageTypeError` for one that has none."""
    name = type(result).__name__
    if name not in _PAGES:
        hint = ": replay has html=FILE" if name == "ReplayReport" else ""
        raise UsageTypeError(f"there is no page for an object of type {name}{hint}")
    text: str = called(f"viewing.{_PAGES[name]}", result)
    return text
