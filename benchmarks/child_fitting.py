"""Reads a file of timing lines and fits to it; prints JSON: `… child_fitting FILE`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from rewritelog.models.registry import load_model
from rewritelog.timings.read import read_timings


def main() -> None:
    """Fit once, and say how long its parts took."""
    began = time.perf_counter()
    read = read_timings([Path(sys.argv[1])])
    between = time.perf_counter()
    load_model("least-squares", {}).fit(read.timings)
    done = time.perf_counter()
    print(json.dumps({"lines": len(read), "read_s": between - began, "fit_s": done - between}))


if __name__ == "__main__":
    main()
