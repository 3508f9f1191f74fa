"""Holds memory until its input ends: `… child_holding BYTES`; prints a line when it has it."""

import sys

import numpy as np


def main() -> None:
    """Hold on."""
    held = np.ones(int(sys.argv[1]), dtype=np.uint8)
    print(held.nbytes, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
