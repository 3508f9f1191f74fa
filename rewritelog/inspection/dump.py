"""The dump of a timeline: every field of every SEB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from rewritelog.errors import UsageError
from rewritelog.formats.bgtrace.blocks import Block
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.files import InputFile
from rewritelog.inspection.dump_reader import TimelineReader
from rewritelog.inspection.dump_text import json_pieces, text_pieces
from rewritelog.text import count_text

DumpKind: TypeAlias = Literal["text", "jsonl"]


@dataclass(frozen=True)
class Dump:
    """A PE's timeline, printed while it is read."""

    logs: LogSet
    pe: int

    def pieces(self, *, as_json: bool) -> Iterator[str]:
        """Yield it as text, or as a line of JSON for each SEB."""
        return dump_pieces(self.logs, self.pe, "jsonl" if as_json else "text")

    def sebs(self) -> Iterator[dict[str, Any]]:
        """Return its SEBs as JSON types."""
        return map(json.loads, dump_lines(self.logs, self.pe, "jsonl"))


def dump_pieces(logs: LogSet, pe: int, kind: DumpKind) -> Iterator[str]:
    """Yield a PE's timeline as text, in pieces that are made on demand.

    `jsonl` is one line with a strict JSON object for each SEB, with the same keys in every log
    version: times are in seconds (numbers that are not finite are the strings "nan", "inf" and
    "-inf"), offsets in bytes from the start of the file. A piece is at most about 100 kB, or one
    text of the log. Raise `UsageError` at once for an unknown PE or kind, and while reading
    `DamagedLogError` naming offset, SEB and field, before anything of that SEB is shown.
    """
    if kind not in get_args(DumpKind):
        raise UsageError(f"dump format {kind!r} is unknown; known: text, jsonl")
    return _pieces(logs, logs.timeline_block(pe), pe, kind)


def dump_lines(logs: LogSet, pe: int, kind: DumpKind) -> Iterator[str]:
    """Yield the text of `dump_pieces` line by line; with `jsonl` each line is a whole SEB."""
    return _lines(dump_pieces(logs, pe, kind))


def _pieces(logs: LogSet, block: Block, pe: int, kind: DumpKind) -> Iterator[str]:
    path = logs.files[block.file].path
    with InputFile(path) as source:
        reader = TimelineReader(logs, block, source)
        if kind == "text":
            sebs = count_text(reader.count, "SEB")
            yield f"PE {pe}: {sebs} in {path.name}, bytes {block.offset} to {block.end}\n"
        for record in reader.sebs():
            yield from json_pieces(record) if kind == "jsonl" else text_pieces(record)


def _lines(pieces: Iterator[str]) -> Iterator[str]:
    begun: list[str] = []
    for piece in pieces:
        *whole, rest = piece.split("\n")
        for line in whole:
            yield "".join([*begun, line])
            begun.clear()
        begun.append(rest)
