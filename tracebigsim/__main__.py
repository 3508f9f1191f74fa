"""The command `tracebigsim`: where the header is, and what timing lines hold."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tracebigsim import TraceBigSimError, cmake_dir, include_dir, pkg_config_dir
from tracebigsim._streams import CLOSED_PIPE

_FOLDERS = {
    "include": (include_dir, "the folder of tracebigsim.h, for a compiler's -I"),
    "cmake": (cmake_dir, "the folder of the CMake config, for -Dtracebigsim_DIR="),
    "pkg_config": (pkg_config_dir, "the folder for PKG_CONFIG_PATH"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tracebigsim", description="Bracketed kernels of programs, and their timing lines."
    )
    for name, (_, told) in _FOLDERS.items():
        option = f"--{name.replace('_', '-')}-dir"
        parser.add_argument(
            option, dest="folder", action="store_const", const=name, help=f"print {told}"
        )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    stats = commands.add_parser(
        "stats", help="events, counts, ranges, times and their spread, torn lines"
    )
    stats.add_argument("files", nargs="+", metavar="FILE", help="a program's output, or gzip of it")
    merge = commands.add_parser(
        "merge", help="one clean timing file of many outputs, sorted by event, parameters and time"
    )
    merge.add_argument("files", nargs="+", metavar="FILE", help="a program's output, or gzip of it")
    merge.add_argument("-o", "--output", help="the new file [default: standard output]")
    merge.add_argument("--force", action="store_true", help="replace the output if it is there")
    return parser


def _stats(files: Sequence[str]) -> None:
    from tracebigsim.stats import file_stats, stats_text  # noqa: PLC0415 - they load numpy

    sys.stdout.write(stats_text(file_stats(files)))


def _merge(files: Sequence[str], output: str | None, force: bool) -> None:
    from tracebigsim import merge  # noqa: PLC0415 - it loads numpy

    if output is None:
        merged = merge.merge_to_stream(files, sys.stdout.buffer)
    else:
        merged = merge.merge_files(files, output, force=force)
    sys.stdout.flush()
    sys.stderr.write(merge.merged_text(merged))


def _run(given: argparse.Namespace) -> None:
    """Do what was asked for."""
    if given.command == "stats":
        _stats(given.files)
    elif given.command == "merge":
        _merge(given.files, given.output, given.force)
    else:
        sys.stdout.write(_FOLDERS[given.folder][0]() + "\n")
    sys.stdout.flush()


def main() -> None:
    """Run the command: exit code 0, 1 for what cannot be read or written, 2 for wrong usage."""
    parser = _parser()
    given = parser.parse_args()
    if (given.command is None) == (given.folder is None):
        parser.error("one of the options or one of the commands is needed")
    try:
        _run(given)
    except TraceBigSimError as error:
        sys.stderr.write(f"tracebigsim: error: {error}\n")
        sys.exit(1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(CLOSED_PIPE)
    except OSError as error:
        sys.stderr.write(f"tracebigsim: error: {error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    # `python -m` looks for modules in the working directory first, which may be a folder of logs.
    if not (sys.flags.safe_path or __file__.startswith(sys.path[0] + os.sep)):
        del sys.path[0]
    main()
