"""Pages in a browser without a network: from the overview to a graph, and a fit that is mended."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from commands import rewritelog as run
from faulty import HANGS_S
from logbuilder import bracket, seb, write_logs, write_params, write_timings

pytest.importorskip("bokeh", reason="needs the extra [view]")
playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]  # fmt: skip

RANDOM = np.random.default_rng(5)
SYNC = [
    ("sync", 1e-6 * n * math.log(n) * float(RANDOM.normal(1, 0.02)), float(n), float(k % 5))
    for k, n in enumerate(range(2, 62))
]
FLAT = [("flat", 2e-6 * float(RANDOM.normal(1, 0.02)), float(n)) for n in range(2, 30)]


class Opened:
    """A page, all that it asked for, and all that went wrong in it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        page.set_default_timeout(1000 * HANGS_S)
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", self._noted)

    def _noted(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def go(self, address: str) -> None:
        """Open an address, and wait until the plots are there."""
        self.page.goto(address)
        self.page.wait_for_function("() => document.documentElement.dataset.ready")
        assert self.errors == []

    def column(self, source: str, column: str) -> list[float]:
        """The numbers that a plot shows."""
        asked = f"Array.from(Pages.model('{source}').data['{column}'])"
        numbers: list[float] = self.page.evaluate(asked)
        return numbers


A4_WIDTH = 210 / 25.4 * 96
"""In pixels of CSS."""


@contextmanager
def browser(width: int = 1280) -> Iterator[Opened]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=1000 * HANGS_S
        )
        opened = Opened(chromium.new_page(viewport={"width": width, "height": 1000}))
        yield opened
        chromium.close()


def nothing_to_do_on_paper(opened: Opened) -> bool:
    """Whether the page says what a click or the wheel does, but not where it is printed."""
    words = ("Click a", "Choose a", "zoom in")
    on_screen = opened.page.inner_text("main")
    opened.page.emulate_media(media="print")
    printed = opened.page.inner_text("main")
    return any(word in on_screen for word in words) and not any(word in printed for word in words)


def choose(opened: Opened, event: str, parameter: int | None = None) -> None:
    """Choose an event in the overview by the beginning of its name, or its cell of a parameter."""
    row = opened.page.locator(f"#overview tbody tr:has(td[data-v^='{event}'])")
    cell = "td:first-child" if parameter is None else f"td[data-p='{parameter}']"
    row.locator(f"{cell} button").click()
    wait_for_graphs(opened, event)


def wait_for_graphs(opened: Opened, event: str) -> None:
    """Wait until the graphs of an event are there."""
    opened.page.wait_for_function(
        "name => (document.documentElement.dataset.drawn || '').startsWith(name)", arg=event
    )


@pytest.mark.slow
def test_a_saved_page_leads_from_the_overview_to_a_graph(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *SYNC, *FLAT)
    names = tmp_path / "names.toml"
    names.write_text('"sync" = ["pes", "phase"]\n')
    done = run("fit", timings, "--param-names", names, "--html", tmp_path / "p.html", "-q")
    assert done.returncode == 0, done.stderr
    with browser() as opened:
        opened.go(f"file://{tmp_path / 'p.html'}")
        choose(opened, "sync", 2)
        assert opened.page.inner_text("#event-name") == "sync(pes, phase)"
        assert opened.page.locator("#parameter option:checked").inner_text() == "p2 (phase)"
        assert opened.page.evaluate("Pages.model('fit').below[0].axis_label") == "p2 (phase)"
        assert opened.page.input_value("#parameter") == "2"
        for table, parameter in (("coefficients", "pes"), ("single-terms", "phase")):
            terms = opened.page.locator(f"#{table} td:first-child").all_inner_texts()
            assert any(parameter in term for term in terms)
            assert not any(re.search(r"\bp[12]\b", term) for term in terms)
        assert "phase" in str(opened.column("curves-data", "label")[0])
        assert sorted({*opened.column("points-data", "x")}) == [0, 1, 2, 3, 4]
        shown = opened.column("points-data", "measured") + opened.column(
            "outliers-data", "measured"
        )
        assert sorted(shown) == pytest.approx(sorted(line[1] for line in SYNC), rel=1e-6)
        opened.page.select_option("#parameter", "1")
        wait_for_graphs(opened, "sync")
        assert len({*opened.column("points-data", "x")}) > 5
        opened.page.fill("#filter", "FLA")
        assert opened.page.locator("#overview tbody tr:visible").count() == 1
        opened.page.fill("#filter", "")
        opened.page.click("#overview thead th:nth-child(2) button")
        assert opened.page.locator("#overview tbody tr td").first.inner_text() == "flat(p1)"
        assert opened.page.locator("#lines tr").count() == 61
        assert opened.requests == [f"file://{tmp_path / 'p.html'}"]
        assert opened.errors == []


@pytest.mark.long
def test_a_comparison_shows_the_event_that_is_chosen(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *SYNC, *FLAT)
    page = tmp_path / "c.html"
    done = run("compare", timings, "--models=least-squares,sampled", "--html", page, "-q")
    assert done.returncode == 0, done.stderr
    with browser() as opened:
        opened.go(f"file://{page}")
        for event, lines in (("sync", SYNC), ("flat", FLAT)):
            opened.page.click(f"#overview td[data-v='{event}'] button")
            assert opened.page.locator("#event-of option:checked").inner_text() == event
            measured = sorted(line[1] for line in lines)
            assert sorted(opened.column("model-0", "y")) == pytest.approx(measured, rel=1e-6)
        assert opened.errors == []


def scales(opened: Opened, plot: str) -> list[str]:
    """The scales of a plot's axes, and what its ticks are made by."""
    kinds: list[str] = opened.page.evaluate(
        f"(() => {{ const plot = Pages.model('{plot}');"
        " return [plot.x_scale.type, plot.y_scale.type, plot.below[0].ticker.type]; })()"
    )
    return kinds


@pytest.mark.long
def test_axes_are_logarithmic_where_the_range_asks_for_them(tmp_path: Path) -> None:
    wide = [("wide", 1e-6 * n, n) for n in np.geomspace(1, 1e5, 30).round().tolist()]
    others = (*[("none", 1e-6), ("none", 1.5e-6)] * 100, ("once", 3e-5, 7.0))
    timings = write_timings(tmp_path / "t.txt", *wide, *FLAT, *others)
    assert run("fit", timings, "--html", tmp_path / "p.html", "-q").returncode == 0
    with browser() as opened:
        opened.go(f"file://{tmp_path / 'p.html'}")
        for event, kind, ticker in (("wide", "Log", "Log"), ("flat", "Linear", "Basic")) * 2:
            choose(opened, event)
            assert scales(opened, "fit") == [f"{kind}Scale", f"{kind}Scale", f"{ticker}Ticker"]
        choose(opened, "wide")
        opened.page.uncheck("#logarithms")
        opened.page.wait_for_function("() => Pages.model('fit').x_scale.type === 'LinearScale'")
        choose(opened, "none")
        assert opened.page.inner_text("#single-terms") == ""
        lines = opened.column("points-data", "x")
        assert lines == opened.column("points-data", "order") == [*range(1, 201)], "not from 0 on"
        assert scales(opened, "fit")[0] == "LinearScale"
        choose(opened, "once")  # an axis from -1 s to 1 s had it at 0
        opened.page.wait_for_function("() => Pages.model('fit').y_range.end < 1e-4")
        assert opened.errors == []


@contextmanager
def exploring(*words: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `explore` and yield its address with its process."""
    command = [sys.executable, "-m", "rewritelog", "explore", *map(str, words), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1], process
        finally:
            process.kill()


@contextmanager
def fitted_page(*words: object) -> Iterator[Opened]:
    """Run `explore` and yield its page, on which all events are fitted."""
    with exploring(*words) as (address, _), browser() as opened:
        opened.go(address)
        wait_for_status(opened, "all events are fitted")
        yield opened


def wait_for_status(opened: Opened, words: str) -> None:
    opened.page.wait_for_function(
        "words => document.getElementById('status').textContent.includes(words)",
        arg=words,
    )


def select_by_a_box_at_the_top(opened: Opened) -> None:
    """Draw a box around the longest times of the graph of measured against predicted times."""
    graph = opened.page.locator("#predicted figure")
    graph.scroll_into_view_if_needed()
    graph.locator(".bk-tool-icon-box-select").click()
    box = graph.bounding_box()
    left, top = box["x"] + 0.16 * box["width"], box["y"]
    opened.page.mouse.move(left, top + 34)
    opened.page.mouse.down()
    opened.page.mouse.move(left + 0.7 * box["width"], top + 110, steps=5)
    opened.page.mouse.up()
    opened.page.wait_for_function(
        "() => Pages.model('outliers-data').selected.indices.length === 1"
    )


@pytest.mark.slow
def test_a_step_of_the_critical_path_is_shown_and_tables_follow_the_zoom(tmp_path: Path) -> None:
    lines = [[seb(0, 4, name=b"work", events=bracket(1, 3)), seb(4, 5, name=b"end")], [seb(0, 1)]]
    logs = write_logs(tmp_path / "logs", lines)
    write_params(logs, 0, (0, "force", 8))
    page = tmp_path / "page.html"
    assert run("replay", logs, "--html", page, "-q").returncode == 0

    def share(opened: Opened, name: str) -> str:
        row = opened.page.locator(f"#shares-0 tr:has(td:text-is('{name}')) td")
        return str(row.nth(1).inner_text()).replace("\u00a0", " ")

    with browser() as opened:
        opened.go(f"file://{page}")
        assert share(opened, "force") == "20.0 %"
        opened.page.evaluate("Pages.model('timeline-0').x_range.setv({ start: 1, end: 3 })")
        opened.page.wait_for_selector("#shares-0 td:text-is('50.0 %')")
        opened.page.evaluate("Pages.model('timeline-0').x_range.setv({ start: 6, end: 8 })")
        opened.page.wait_for_selector("#shares-0 caption:has-text('From 5 s to 5 s, 2 PEs')")
        opened.page.click("#path tbody tr:nth-child(2) button")
        assert opened.column("path-chosen", "left") == [4]
        begin, end = opened.page.evaluate(
            "(({ start, end }) => [start, end])(Pages.model('timeline-0').x_range)"
        )
        assert begin < 4 < end
        opened.page.evaluate("Pages.model('path-steps').selected.indices = [0]")
        assert opened.page.locator("#path tr.chosen td").nth(3).inner_text() == "work"
        assert nothing_to_do_on_paper(opened)
        assert opened.errors == []


@pytest.mark.long
def test_first_fits_are_stopped_in_the_live_page(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    rows = random.integers(1, 99, (100_000, 6))
    times = 1e-6 * rows.prod(axis=1) ** 0.7 * random.lognormal(0, 0.5, len(rows))
    pairs = zip(times.tolist(), rows.tolist(), strict=True)
    slow = [(f"slow{k % 5}", time, *row) for k, (time, row) in enumerate(pairs)]
    timings = write_timings(tmp_path / "t.txt", *FLAT, *slow)
    with exploring(timings, "-o", tmp_path) as (address, _), browser() as opened:
        opened.go(address)
        opened.page.wait_for_selector("#status:text-matches('[1-5] of 6 events are fitted')")
        opened.page.click("#stop")
        wait_for_status(opened, "the fit was stopped: ")
        choose(opened, "flat")
        opened.page.click("#refit")
        wait_for_status(opened, "flat(p1): R²")
        opened.page.click("#save")
        wait_for_status(opened, "saved: ")
        assert opened.errors == []
    fits = json.loads((tmp_path / "model.json").read_text())["events"]
    assert fits[0]["event"] == "flat"
    assert len(fits) < 6


@pytest.mark.slow
def test_steps_that_are_undone_at_once_are_undone_in_order(tmp_path: Path) -> None:
    """The page showed the step whose answer came last, and saved another one."""
    timings = write_timings(tmp_path / "t.txt", *FLAT)
    with fitted_page(timings, "-o", tmp_path) as opened:
        opened.page.wait_for_selector("#candidates input")
        for terms in ("1", "p1", "p1^2"):
            opened.page.fill("#terms", terms)
            opened.page.click("#refit")
            wait_for_status(opened, "flat(p1): R²")
        opened.page.evaluate("""() => {
            const real = window.fetch;
            let shown = 0;
            window.fetch = async (address, asked) => {
                const is_first = asked.body.includes('"show"') && !shown++;
                const answer = await real(address, asked);
                if (is_first) await new Promise((then) => setTimeout(then, 500));
                return answer;
            };
            document.getElementById("status").textContent = "";
            for (let k = 0; k < 2; k++) document.getElementById("undo").click();
        }""")
        opened.page.wait_for_function(
            "() => document.getElementById('terms').value === '1'"
            " && document.getElementById('status').textContent"
        )
        opened.page.wait_for_timeout(600)
        assert opened.page.input_value("#terms") == "1"
        rows = opened.page.locator("#old-and-new tr")
        assert rows.first.inner_text().split("\t") == ["", "previous fit", "current fit"]
        assert opened.errors == []


@pytest.mark.slow
def test_a_formula_that_is_mended_is_no_longer_called_invalid(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *FLAT)
    with fitted_page(timings, "-o", tmp_path) as opened:
        opened.page.wait_for_selector("#candidates input")
        opened.page.fill("#terms", "lg(p1)")
        wait_for_status(opened, "formula:1:1")
        opened.page.fill("#terms", "log(p1)")
        opened.page.wait_for_selector("#terms-error:empty", state="attached")
        assert opened.page.inner_text("#status") == ""


@pytest.mark.slow
def test_what_is_chosen_during_a_fit_is_fitted_next(tmp_path: Path) -> None:
    """The fit in progress took its place: a second tick was lost, or the other event's choices."""
    timings = write_timings(tmp_path / "t.txt", *SYNC, *FLAT)
    with fitted_page(timings, "-o", tmp_path) as opened:
        choose(opened, "flat")
        choose(opened, "sync")
        opened.page.wait_for_selector("#candidates input[value='p1']")
        opened.page.evaluate("""() => {
            for (const term of ["1", "p1", "p1^2"]) {
                const ticks = [...document.querySelectorAll("#candidates input")];
                ticks.find((tick) => tick.value === term).click();
            }
        }""")
        wait_for_status(opened, "sync(p1, p2): R²")
        assert opened.page.input_value("#terms") == "1\np1\np1^2"
        opened.page.evaluate("""() => {
            const fit = (terms) => {
                document.getElementById("terms").value = terms;
                document.getElementById("refit").click();
            };
            fit("p1\\n1");
            Events.show(1 - Events.state.event, 1);
            fit("1");
        }""")
        wait_for_status(opened, "flat(p1): R²")
        assert opened.page.input_value("#terms") == "1"
        opened.page.click("#save")
        wait_for_status(opened, "saved: ")
        assert opened.errors == []
    saved = tomllib.loads((tmp_path / "formulas.toml").read_text())["formula"]
    assert {entry["event"]: entry["terms"] for entry in saved} == {
        "sync": ["p1", "1"],
        "flat": ["1"],
    }


@pytest.mark.long
def test_a_fit_is_mended_in_the_live_page_and_used(tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t.txt", *SYNC, ("sync", 1.0, 7.0, 1.0), *FLAT)
    logs = write_logs(tmp_path / "logs", [[seb(0, 2, events=bracket(0.5, 1.5))]])
    write_params(logs, 0, (0, "sync", 8, 3))
    saved = tmp_path / "saved"
    saved.mkdir()
    with (
        exploring(timings, "--logs", logs, "-o", saved) as (address, process),
        browser() as opened,
    ):
        opened.go(address)
        choose(opened, "sync", 1)
        for part in ("#event-name", "#event figure", "#terms", "#old-and-new"):
            box = opened.page.locator(part).bounding_box()
            assert box["y"] >= opened.page.locator(".bar").bounding_box()["height"] - 1
            assert box["y"] + box["height"] <= 1000
        opened.page.fill("#terms", "1\np1*lg(p1)")
        opened.page.wait_for_selector("#terms-error:has-text('formula:2:4')")
        opened.page.fill("#terms", "1\np1*log(p1)")
        opened.page.click("#refit")
        opened.page.wait_for_selector("#old-and-new th:has-text('previous fit')")
        wait_for_graphs(opened, "sync")
        select_by_a_box_at_the_top(opened)
        opened.page.click("#leave-out")
        opened.page.wait_for_selector("#left-out-count:has-text('1 left out')")
        opened.page.wait_for_function("() => Pages.model('left-data').data.measured.length === 1")
        wait_for_status(opened, "R² 0.99")
        opened.page.wait_for_selector(".verdict p:has-text('1 left out')")
        opened.page.click("#undo")
        opened.page.wait_for_selector(".verdict p:has-text('none left out')")
        opened.page.wait_for_function("() => Pages.model('left-data').data.measured.length === 0")
        opened.page.click("#redo")
        opened.page.wait_for_function("() => Pages.model('left-data').data.measured.length === 1")
        for number, value in ((1, "8"), (2, "3")):
            opened.page.fill(f"#predict-at input[aria-label=p{number}]", value)
        opened.page.click("#predict-at button")
        opened.page.wait_for_selector("#time-at:has-text('by fit')")
        opened.page.fill("#dilation", "0.5")
        opened.page.click("#rewrite")
        opened.page.wait_for_selector("#effect-table td:has-text('sync')")
        assert opened.page.locator("#effect-table tr").nth(1).inner_text().split("\t")[:2] == [
            "the whole run, replayed",
            "2\u00a0s",
        ]
        opened.page.reload()
        opened.page.wait_for_function("() => document.documentElement.dataset.ready")
        choose(opened, "sync", 1)
        opened.page.wait_for_function("() => Pages.model('left-data').data.measured.length === 1")
        assert opened.page.locator("#overview tr.changed").count() == 1
        opened.page.click("#undo")
        opened.page.wait_for_selector(".verdict p:has-text('none left out')")
        opened.page.click("#redo")
        opened.page.wait_for_selector(".verdict p:has-text('1 left out')")
        opened.page.click("#save")
        wait_for_status(opened, "saved: ")
        assert opened.errors == []
        process.send_signal(signal.SIGINT)
        assert process.wait(HANGS_S) == 0
        opened.page.click("#save")
        opened.page.wait_for_selector("#gone:visible")
        origin = address.rsplit("/", 2)[0]
        assert {url for url in opened.requests if not url.startswith(origin)} == set()
    done = run("rewrite", logs, tmp_path / "out", "--fitted", saved / "model.json", "--json")
    assert done.returncode == 0, done.stderr
    (event,) = json.loads(done.stdout)["events"]
    assert event["new_s"] == pytest.approx(8e-6 * math.log(8), rel=0.05)
    words = ("--timings", timings, "--formulas", saved / "formulas.toml", "--dry-run")
    assert run("rewrite", logs, *words).returncode == 0
    assert f"{timings}:61" in json.loads((saved / "model.json").read_text())["notes"][0]


@pytest.mark.slow
def test_the_file_that_explore_opens_leads_a_browser_to_the_page(tmp_path: Path) -> None:
    write_timings(tmp_path / "t.txt", *SYNC, *FLAT)
    (tmp_path / "browser").write_text('#!/bin/sh\necho "$1" >"$0.given"\n')
    (tmp_path / "browser").chmod(0o755)
    words = ("-m", "rewritelog", "explore", tmp_path / "t.txt", "-o", tmp_path)
    environment = {**os.environ, "BROWSER": f"{tmp_path / 'browser'} %s"}
    with (
        subprocess.Popen(
            [sys.executable, *words], env=environment, stdout=subprocess.PIPE, text=True
        ) as process,
        browser() as opened,
    ):
        try:
            address = tmp_path / "browser.given"
            while not (address.exists() and address.read_text()):
                assert process.poll() is None
                time.sleep(0.01)
            opened.page.goto(address.read_text().strip())
            opened.page.wait_for_url("http://127.0.0.1:*/**")
            wait_for_status(opened, "all events are fitted")
            assert opened.errors == []
        finally:
            process.kill()


LEGEND_ENDS = """Bokeh.documents.flatMap((root) => [...root.all_models]).filter((one) => one.below)
  .flatMap((plot) => plot.below.filter((one) => one.items).map((legend) => {
    const drawn = Bokeh.index.find_one_by_id(plot.id);
    const view = [...drawn.children()].find((child) => child.model === legend);
    return [view.bbox.right, drawn.bbox.width, plot.inner_height, plot.inner_width];
  }))"""
"""For each legend where it ends, the width of its plot, and the room left for what is drawn."""


@pytest.mark.slow
@pytest.mark.parametrize("width", by_tier([400, 1280], (), [400]))
def test_legends_fit_into_the_page_and_leave_room_for_the_plot(tmp_path: Path, width: int) -> None:
    lines = [[seb(k, k + 1, events=bracket(0.2, 0.8)) for k in range(9)]]
    logs = write_logs(tmp_path / "logs", lines)
    write_params(logs, 0, *((k, f"Kernels{k}::{30 * 'double, '}", k) for k in range(9)))
    assert run("timeline", logs, "-o", tmp_path / "t.html", "-q").returncode == 0
    words = ("--dry-run", "--speedup", 2, "--html", tmp_path / "r.html", "-q")
    assert run("rewrite", logs, *words).returncode == 0
    with browser(width) as opened:
        for page in ("t.html", "r.html"):
            opened.go(f"file://{tmp_path / page}")
            opened.page.wait_for_timeout(500)
            ends = opened.page.evaluate(LEGEND_ENDS)
            assert ends
            assert all(end <= wide and min(sizes) > 40 for end, wide, *sizes in ends), ends
            assert "1 PEs" not in opened.page.inner_text("main")
            assert opened.errors == []


@pytest.mark.slow
def test_a_pe_that_is_always_busy_has_one_colour_over_time(tmp_path: Path) -> None:
    """The share of busy PEs had a bright seam between any two steps."""
    image = pytest.importorskip("matplotlib.image", reason="needs the extra [view]")
    logs = write_logs(tmp_path / "logs", [[seb(0, 1)]])
    assert run("timeline", logs, "-o", tmp_path / "t.html", "-q").returncode == 0
    with browser() as opened:
        opened.go(f"file://{tmp_path / 't.html'}")
        opened.page.locator("figure").nth(1).screenshot(path=tmp_path / "busy.png")
        assert opened.errors == []
    pixels = image.imread(tmp_path / "busy.png")
    height, width = pixels.shape[:2]
    assert len(np.unique(pixels[height // 2, width // 4 : 3 * width // 4], axis=0)) == 1


@pytest.mark.slow
def test_times_of_0_that_are_predicted_have_residuals_of_0(tmp_path: Path) -> None:
    """Their graphs were blank, without axes."""
    timings = write_timings(tmp_path / "t.txt", *[("k", 0.0, float(n)) for n in range(1, 30)])
    assert run("fit", timings, "--html", tmp_path / "p.html", "-q").returncode == 0
    with browser() as opened:
        opened.go(f"file://{tmp_path / 'p.html'}")
        assert opened.column("points-data", "residual") == [0] * 29
        assert opened.errors == []


@pytest.mark.slow
def test_numbers_stay_on_one_line_in_a_narrow_window(tmp_path: Path) -> None:
    """A percent sign stood below its number."""
    folder = tmp_path / "a-folder-with-a-long-name" / "another-folder-with-a-long-name"
    sets = [write_logs(folder / f"set-{k}", [[seb(0, 10.0**-k)], []]) for k in range(6)]
    assert run("replay", *sets, "--html", tmp_path / "p.html", "-q").returncode == 0
    heights = """[...document.querySelectorAll('td:not(:first-child)')].map((cell) => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      return text.getClientRects().length;
    })"""
    with browser(400) as opened:
        opened.page.goto(f"file://{tmp_path / 'p.html'}")
        assert set(opened.page.evaluate(heights)) == {1}
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.long
@pytest.mark.parametrize("width", [400, 800, 1280, 1920])
def test_nothing_of_a_page_is_wider_than_the_window(tmp_path: Path, width: int) -> None:
    long = [("long" * 30, *line) for _, *line in FLAT]  # the first one of the page
    timings = write_timings(tmp_path / f"{'t' * 100}.txt", *SYNC, *long)
    assert run("fit", timings, "--html", tmp_path / "p.html", "-q").returncode == 0
    with browser(width) as opened:
        opened.go(f"file://{tmp_path / 'p.html'}")
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        assert opened.page.locator(".bk-Toolbar:visible").count() == 4
        columns = "getComputedStyle(document.querySelector('.plots')).gridTemplateColumns"
        beside_on_screen = len(opened.page.evaluate(columns).split())
        assert nothing_to_do_on_paper(opened)
        # on paper, plots keep their width: more of them beside each other would be cut off
        assert len(opened.page.evaluate(columns).split()) == beside_on_screen
        assert not opened.page.is_visible("#filter")
        assert opened.page.locator(".bk-Toolbar:visible").count() == 0
        printed = opened.page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        on_screen = opened.page.evaluate("document.body.clientWidth")
        opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert on_screen * float(opened.page.evaluate("document.body.style.zoom")) <= A4_WIDTH
        opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert opened.page.evaluate("document.body.style.zoom") == ""
