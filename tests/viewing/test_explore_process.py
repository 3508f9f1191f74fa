"""`explore` as a process: the browser that it opens, and signals while it saves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from faulty import HANGS_S
from logbuilder import write_timings

from rewritelog.models.formulas import parse_formulas
from rewritelog.timings.read import read_model_file

pytest.importorskip("bokeh", reason="needs the extra [view]")

from tornado.httpclient import AsyncHTTPClient, HTTPError, HTTPRequest

from rewritelog.viewing.explorer.session import FitChoices

AsyncHTTPClient.configure(None, defaults={"request_timeout": HANGS_S, "connect_timeout": HANGS_S})

Contents = dict[str, bytes]
"""What is in the saved files, by name."""

X = np.array([[8.0]])
LINES = [("sync", 1e-6 * n * n, float(n)) for n in range(2, 20)]

BROWSER = textwrap.dedent("""
    #!{python}
    import json, os, re, stat, sys, urllib.request
    path = sys.argv[1].removeprefix("file://")
    with open(path) as file:
        address = re.search('url=([^"]*)"', file.read())[1]
    modes = [stat.S_IMODE(os.stat(one).st_mode) for one in (path, os.path.dirname(path))]
    with urllib.request.urlopen(address) as page:
        print(json.dumps([sys.argv[1:], modes, address, page.status]), flush=True)
""").lstrip()
"""A browser that stays in the foreground until it has shown the page."""


@contextmanager
def exploring(
    folder: Path, *words: str, program: str = "", **more: str
) -> Iterator[subprocess.Popen[str]]:
    """Run `explore` on some timings in a folder; it obeys SIGINT even where this process does not.

    `program` runs the command, instead of the package.
    """
    write_timings(folder / "t.txt", *LINES)
    started = ["-c", program] if program else ["-m", "rewritelog"]
    command = [sys.executable, *started, "explore", "t.txt", *words]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        command, cwd=folder, env={**os.environ, "TMPDIR": str(folder), **more}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        signal.signal(signal.SIGINT, before)
        try:
            yield process
        finally:
            process.kill()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("number", by_tier([signal.SIGINT, signal.SIGTERM], [], [signal.SIGTERM]))
def test_a_browser_in_the_foreground_is_served_and_its_command_line_holds_no_token(
    number: signal.Signals, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "webbrowser.py").write_text("raise RuntimeError('of the working directory')")
    with exploring(tmp_path, BROWSER=f"{browser} %s", TMPDIR=str(tmp_path / "tmp")) as process:
        address = next_line(process).split()[1]
        next_line(process)
        words, modes, opened, status = json.loads(next_line(process))
        assert (opened, status) == (address, 200)
        token = address.split("/")[3]
        assert len(words) == 1
        assert token not in words[0]
        assert modes == [0o600, 0o700]
        process.send_signal(number)
        _, errors = process.communicate(timeout=HANGS_S)
    assert process.returncode == (0 if number == signal.SIGINT else 143)
    assert errors == ("" if number == signal.SIGINT else "rewritelog: ended by SIGTERM\n")
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_the_page_opens_beside_a_model_that_it_may_not_replace(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text("mine")
    with exploring(tmp_path, "--no-browser") as process:
        assert next_line(process).startswith("open http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANGS_S)
    assert errors == (
        "warning: model.json: exists; give another folder with --output, or --force; else nothing "
        "can be saved\n"
    )
    assert (tmp_path / "model.json").read_text() == "mine"


STRUCK = textwrap.dedent("""
    import os, signal, sys
    from pathlib import Path
    from rewritelog.cli import main
    plain, names = Path.replace, []
    def replace(draft, target):
        names.append(target.name)
        if names.count({name!r}) == 2:
            os.kill(os.getpid(), {number})
        return plain(draft, target)
    Path.replace = replace
    main()
""")
"""`explore` that gets a signal where it saves a file for the second time."""


async def saved_twice(address: str, contents: Callable[[], Contents]) -> Contents:
    """Have the page save, refit and save again; return what the first save wrote."""

    async def answer(do: str, terms: tuple[str, ...], **more: object) -> Any:
        body = json.dumps({"do": do, "changed": {0: FitChoices(terms).to_json()}, **more})
        headers = {"Origin": address.rsplit("/", 2)[0]}
        done = await AsyncHTTPClient().fetch(HTTPRequest(address, "POST", headers, body))
        return json.loads(done.body)

    assert "state" in await answer("fit", ("1", "p1"), event=0)
    assert "saved" in await answer("save", ("1", "p1"), partial=True)
    first = contents()
    assert "state" in await answer("fit", ("p1*p1",), event=0)
    with suppress(HTTPError, OSError):  # what has ended says nothing more
        await answer("save", ("p1*p1",), partial=True)
    return first


@pytest.mark.parametrize("name", by_tier(["model.json", "formulas.toml"], ["model.json"]))
@pytest.mark.parametrize(
    "number",
    by_tier([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], [], [signal.SIGKILL, signal.SIGTERM]),
)
def test_a_signal_while_files_are_saved_leaves_each_whole(
    number: signal.Signals, name: str, tmp_path: Path
) -> None:
    def contents() -> Contents:
        return {
            path.name: path.read_bytes()
            for path in tmp_path.iterdir()
            if path.name in ("model.json", "formulas.toml")
        }

    program = STRUCK.format(name=name, number=int(number))
    with exploring(tmp_path, "--no-browser", program=program) as process:
        address = next_line(process).split()[1]
        first = asyncio.run(saved_twice(address, contents))
        process.communicate(timeout=HANGS_S)
    second = contents()
    assert read_model_file(tmp_path / "model.json").raw.predict("sync", X)[0] > 0
    parse_formulas((tmp_path / "formulas.toml").read_text(), "saved")
    drafts = [path.name for path in tmp_path.iterdir() if ".rewritelog-" in path.name]
    if number == signal.SIGKILL:
        assert second[name] == first[name]
        assert [draft[: len(name) + 2] for draft in drafts] == [f".{name}."]
        assert process.returncode == -signal.SIGKILL
    else:
        assert all(second[file] != first[file] for file in first)
        assert drafts == []
        assert process.returncode == (0 if number == signal.SIGINT else 128 + number)
