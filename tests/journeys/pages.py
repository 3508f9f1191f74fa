"""Reads the commands of README.md and docs/, and what the pages say that they print.

- A block ```sh is run. A block ```console is run line by line: `$ ` begins a command, and what
  follows is what it prints. ```python is a program.
- ```text output shows what the command before it prints.
- `<!-- not run: REASON -->` before a block leaves it out, `<!-- file: NAME -->` makes it a file.
- In what is printed `…` stands for anything: within a line, or alone for any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>not run|file): (?P<what>.+?) -->\n)?"
    r"^```(?P<kind>\w[\w+]*)(?P<output> output)?\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q . && "
_INDENTED = re.compile(r"^    (?P<command>python3 -m venv .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of a page."""

    command: str
    printed: str | None = None
    """What the page says that it prints; None where it does not say."""


def steps_of(page: Path) -> list[Step]:
    """Return the commands of a page in its order, but those that are marked and the tests."""
    text = page.read_text(encoding="utf-8")
    blocks = [*_blocks(text), *_indented(text)]
    steps: list[Step] = []
    for _, step in sorted(blocks, key=lambda pair: pair[0]):
        if step.command:
            steps.append(step)
        else:  # it shows what the step before it prints
            steps[-1] = Step(steps[-1].command, step.printed)
    return steps


def _indented(text: str) -> Iterator[tuple[int, Step]]:
    """Yield the commands that install; the environment is there already when pages are tested."""
    for match in _INDENTED.finditer(text):
        command = match["command"]
        if command.startswith(INSTALL):
            yield match.start(), Step(command.removeprefix(INSTALL))


def _blocks(text: str) -> Iterator[tuple[int, Step]]:
    for match in _BLOCK.finditer(text):
        place, kind, body = match.start(), match["kind"], match["text"]
        if match["note"] == "file":
            yield place, Step(f"cat > {match['what']} << 'END'\n{body}END")
        elif match["note"]:
            continue
        elif match["output"]:
            yield place, Step("", body)
        elif kind in ("sh", "bash"):
            yield place, Step(body.rstrip("\n"))
        elif kind == "python":
            yield place, Step(f"python - << 'END'\n{body}END")
        elif kind == "console":
            parts = re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]
            for number, part in enumerate(parts):
                command, _, printed = part.partition("\n")
                yield place + number, Step(command, printed)


def pattern_of(printed: str) -> re.Pattern[str]:
    """Return what a text matches that may have `…` in it."""
    lines = []
    for line in printed.splitlines():
        if line.strip() == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            spelled = ".*".join(re.escape(part) for part in line.rstrip().split("…"))
            lines.append(rf"{spelled}[ ]*\n")
    return re.compile("".join(lines))
