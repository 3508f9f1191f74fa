"""What was measured: rows with their targets, tables, the machine, and their place in the docs."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rewritelog.running.engines import cores

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@dataclass(frozen=True)
class Row:
    """A line of the table of targets."""

    quantity: str
    measured: str
    target: str
    met: bool | None
    """None where the rounds do not decide it."""

    def cells(self) -> list[str]:
        """Return the cells of the row."""
        met = {True: "yes", False: "**no**", None: "**undecided**"}[self.met]
        return [self.quantity, self.measured, self.target, met]


@dataclass(frozen=True)
class Table:
    """More than the targets ask for."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return the table in Markdown."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{self.title}\n\n{body}"


@dataclass(frozen=True)
class Result:
    """What a measurement gives."""

    rows: Sequence[Row] = ()
    tables: Sequence[Table] = ()

    def text(self) -> str:
        """Return it in Markdown."""
        return as_text([self])


def as_text(results: Sequence[Result]) -> str:
    """Return one table of all rows, and then the others, in Markdown."""
    rows = [row.cells() for result in results for row in result.rows]
    main = [Table("Targets:", ["what", "measured", "target", "met"], rows)] if rows else []
    tables = [*main, *(table for result in results for table in result.tables)]
    return "\n\n".join(table.text() for table in tables)


def report(results: Sequence[Result], notes: Sequence[str]) -> str:
    """Return all results in Markdown, after the machine's name and notes of what was used."""
    bullets = "".join(f"\n- {note}" for note in notes)
    return f"{machine()}{bullets}\n\n{as_text(results)}"


def machine() -> str:
    """Name the machine that this runs on."""
    names = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "typer"))
    return (
        f"- machine: {_cpu_model()}, {cores()} cores, "
        f"{_memory_gib():.0f} GiB of memory\n"
        f"- system: {platform.system()} {platform.release().split('-')[0]}, {_libc()}\n"
        f"- Python {sys.version.split()[0]}, {names}"
    )


def _libc() -> str:
    return " ".join(platform.libc_ver()) or "unknown C library"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return f"{line.partition(':')[2].strip()} ({platform.machine()})"
    return platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def file_system(folder: Path) -> str:
    """Name the kind of file system that a folder is on."""
    mounts = [
        line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    ]
    above = [str(parent) for parent in (folder.resolve(), *folder.resolve().parents)]
    nearest = max((words for words in mounts if words[1] in above), key=lambda words: len(words[1]))
    return nearest[2]


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add the option for the document of the results, which is read before anything is measured."""
    parser.add_argument(
        "--out", type=_document, help="the document whose measured part is replaced"
    )


def _document(name: str) -> Path:
    try:
        text = Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error.strerror}") from error
    if END not in text.partition(BEGIN)[2]:
        raise argparse.ArgumentTypeError(f"{name}: has no {BEGIN} … {END}")
    return Path(name)


def put_into(path: Path, text: str) -> None:
    """Replace what is between the two marks of a document."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def verdict(values: Sequence[float], limit: float) -> bool | None:
    """Return whether the middle half of the rounds lies below a limit; None where it straddles it.

    A median alone decides by chance where the rounds differ more than they miss the limit by.
    """
    low, _, high = statistics.quantiles(values, n=4)
    if low <= limit < high:
        return None
    return high <= limit


def ratio_text(values: Sequence[float], middle: float) -> str:
    """Return a ratio with its range over the rounds."""
    return f"{middle:.2f} × ({min(values):.2f}–{max(values):.2f})"
