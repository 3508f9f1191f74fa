"""`rewritelog dump`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rewritelog.commands.command import Printing, Shell, function
from rewritelog.commands.shared import Logs
from rewritelog.options import argument, declared


@declared
class Dump(Logs, Printing[Iterator[dict[str, Any]]]):
    """Print every field of every SEB of a PE.

    Times are in seconds, offsets in bytes from the start of the file, in every log version.

    >>> next(rewritelog.dump("sample_logs/cells", pe=0))["offset_bytes"]
    56
    """

    shell = frozenset({"quiet", "as_json"})
    prints_lines = True

    pe: int = argument(
        "The PE whose timeline is printed.", metavar="PE", positional=False, kw_only=False
    )

    def run(self) -> Iterator[dict[str, Any]]:
        """Return a dict for each SEB; raise `DamagedLogError` at the first damage."""
        from rewritelog.inspection.dump import dump_lines

        return map(json.loads, dump_lines(self.opened.logs, self.pe, "jsonl"))

    def print(self, shell: Shell) -> int:
        """Print the SEBs, as text or as a line of JSON each."""
        from rewritelog.inspection.dump import dump_pieces

        for piece in dump_pieces(self.opened.logs, self.pe, "jsonl" if shell.as_json else "text"):
            shell.write(piece)
        return 0


dump = function(Dump)
