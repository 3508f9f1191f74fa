"""`python -m tracebigsim --include` prints the folder of traceBigSim.h."""

from __future__ import annotations

import argparse
import sys

from tracebigsim import include_dir


def main() -> None:
    """Answer the one question that a build asks."""
    parser = argparse.ArgumentParser(prog="python -m tracebigsim", description=__doc__)
    parser.add_argument(
        "--include", action="store_true", required=True, help="print the folder of traceBigSim.h"
    )
    parser.parse_args()
    sys.stdout.write(include_dir() + "\n")


if __name__ == "__main__":
    main()
