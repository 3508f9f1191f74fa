"""Makes the timings of `docs/seeing.md`, goes through it in a browser, and takes its pictures.

    python docs/seeing.py            # writes docs/figures/seeing-*.png

It needs the extra `[view]`, playwright and Debian's chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

FIGURES = Path(__file__).parent / "figures"
WIDTH, HEIGHT = 1280, 900
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]

FORMULAS = """\
# what is usually assumed of a parallel FFT: p1 is the number of PEs, p2 the points of a PE
[[formula]]
event = "Fft::butterflies"
kind = "n-log-n"
of = ["p2"]

[[formula]]
event = "Fft::transpose"
terms = ["1", "p1", "p2"]

[[formula]]
event = "Fft::synchronise"
terms = ["1", "p1"]
"""

MENDED = "1\np1\np2*log1p(p2)"


def write_timings(path: Path, seed: int = 1) -> None:
    """Write timing lines of an FFT-like program: 3 events on 2 to 64 PEs, 256 to 4096 points."""
    random = np.random.default_rng(seed)
    lines = []
    for pes in (2, 4, 8, 16, 32, 64):
        for points in np.linspace(256, 4096, 11).round():
            work = points * np.log1p(points)
            seconds = {
                "Fft::butterflies": 2e-6 + 4e-9 * work,
                "Fft::transpose": 5e-6 + 3e-7 * pes + 6e-9 * points,
                "Fft::synchronise": 1e-5 + 3.55e-6 * pes + 6.3e-9 * work,
            }
            for event, mean in seconds.items():
                time = mean * random.lognormal(0, 0.02)
                lines.append(
                    f"TRACEBIGSIM: event:{{ {event} }} time:{{ {time:.9e} }} "
                    f"params:{{ {pes:.6f} {points:.6f} }}\n"
                )
    path.write_text("".join(lines))


@contextmanager
def explored(folder: Path) -> Iterator[Any]:
    """Yield a page of `rewritelog explore` with those timings and formulas."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where it is run

    command = [sys.executable, "-m", "rewritelog", "explore", "timings.txt", "--formulas",
               "standard.toml", "-o", "mended", "--no-browser"]  # fmt: skip
    with (
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process,  # noqa: S603
        sync_playwright() as playwright,
    ):
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        address = process.stdout.readline().split()[1]
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(address)
        page.wait_for_function("() => document.documentElement.dataset.ready")
        try:
            yield page
        finally:
            browser.close()
            process.terminate()


def take(page: Any, name: str, first: str, last: str) -> None:
    """Take a picture of what lies between two elements."""
    page.wait_for_timeout(700)
    top, bottom = (page.locator(one).first.bounding_box() for one in (first, last))
    offset = page.evaluate("window.scrollY")
    y = top["y"] + offset
    clip = {"x": 0, "y": y, "width": WIDTH, "height": bottom["y"] + offset + bottom["height"] - y}
    page.screenshot(path=FIGURES / f"seeing-{name}.png", full_page=True, clip=clip)


def walk(page: Any) -> None:
    """Find the event in the overview, see it, mend it, refit, and save."""
    page.add_style_tag(content=".bar { position: static !important; }")
    take(page, "overview", "h1", "#overview")
    row = page.locator("#overview tbody tr:has(td[data-v^='Fft::synchronise'])")
    row.locator("td[data-p='2'] button").click()
    take(page, "before", "#event-name", "#residual")
    page.fill("#terms", MENDED)
    page.click("#refit")
    page.wait_for_selector("#old-and-new th:has-text('previous fit')")
    take(page, "refitted", "#event-name", "#old-and-new")
    take(page, "after", "#predicted", "#order")
    page.click("#save")
    page.wait_for_function(
        "() => document.getElementById('status').textContent.startsWith('saved')"
    )


def main() -> None:
    """Make everything."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mended").mkdir()
        write_timings(folder / "timings.txt")
        write_timings(folder / "later.txt", seed=2)
        (folder / "standard.toml").write_text(FORMULAS)
        with explored(folder) as page:
            walk(page)
        sys.stdout.write((folder / "mended/formulas.toml").read_text())
        for words in (["fit", "timings.txt", "--formulas", "standard.toml", "-o", "standard.json"],
                      ["verify", "standard.json", "later.txt", "--worst", "0"],
                      ["verify", "mended/model.json", "later.txt", "--worst", "0"]):  # fmt: skip
            sys.stdout.write(f"$ rewritelog {' '.join(words)}\n")
            sys.stdout.flush()
            own = [sys.executable, "-m", "rewritelog", *words]
            subprocess.run(own, cwd=folder, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
