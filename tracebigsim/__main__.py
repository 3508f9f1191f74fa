"""The command `tracebigsim`: where the header is, and what timing lines hold."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from tracebigsim import TraceBigSimError, cmake_dir, include_dir, pkg_config_dir
from tracebigsim._streams import (
    CLOSED_PIPE,
    OutputLost,
    message_stream,
    occupy_closed,
    output_stream,
)

if TYPE_CHECKING:
    from tracebigsim.files import Faults

DONE, FAILED, WRONG_USAGE = 0, 1, 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_FOLDERS = {
    "--include-dir": (include_dir, "the folder of tracebigsim.h, for a compiler's -I"),
    "--cmake-dir": (cmake_dir, "the folder of the CMake config, for -Dtracebigsim_DIR="),
    "--pkg-config-dir": (pkg_config_dir, "the folder for PKG_CONFIG_PATH"),
}
_COMMANDS = {
    "stats": "print events, counts, ranges, times and their variation",
    "merge": "sort the timing lines of many outputs into one clean file",
}
_FILES_HELP = "a program's output, plain or compressed (.gz, .bz2, .xz, .zst); - is standard input"


class _Parser(argparse.ArgumentParser):
    """An argument parser that reports errors as the command `rewritelog` does."""

    def error(self, message: str) -> NoReturn:
        """Print the error and a hint to the help; exit with 2."""
        sys.stderr.write(f"tracebigsim: error: {message}\nTry '{self.prog} --help' for help.\n")
        sys.exit(WRONG_USAGE)


class _Version(argparse.Action):
    """Prints the version of the package, which is looked up only on request."""

    def __call__(self, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415 - few runs need it

        sys.stdout.write(f"tracebigsim {version('rewritelog')}\n")
        sys.exit(DONE)


def _parser() -> argparse.ArgumentParser:
    common = _Parser(add_help=False)
    common.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show where in the code an error comes from",
    )
    common.add_argument("--version", nargs=0, action=_Version, help="print the version and exit")
    parser = _Parser(
        prog="tracebigsim",
        usage="tracebigsim [OPTIONS] [COMMAND] ...",
        description="Bracketed kernels of programs, and their timing lines.",
        parents=[common],
    )
    for option, (folder, help_text) in _FOLDERS.items():
        parser.add_argument(
            option, dest="folder", action="store_const", const=folder, help=f"print {help_text}"
        )
    reading = _Parser(add_help=False, parents=[common])
    reading.add_argument("files", nargs="+", metavar="FILE", help=_FILES_HELP)
    reading.add_argument(
        "-q", "--quiet", action="store_true", help="print no report, only warnings and errors"
    )
    reading.add_argument(
        "--fail-on-warning",
        action="store_true",
        help="exit with code 1 if there were warnings, after the work is done",
    )
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", prog="tracebigsim"
    )
    stats, merge = (
        commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=[reading]
        )
        for name, text in _COMMANDS.items()
    )
    stats.set_defaults(run=_stats)
    stats.add_argument("--json", action="store_true", help="print the report as JSON")
    merge.set_defaults(run=_merge)
    merge.add_argument(
        "-o", "--output", metavar="FILE", help="the file to write [default: -, standard output]"
    )
    merge.add_argument("--force", action="store_true", help="replace the output if it exists")
    return parser


def _stats(args: argparse.Namespace) -> int:
    """Print the statistics of files; return the number of warnings."""
    from tracebigsim.stats import file_stats, stats_json, stats_text  # noqa: PLC0415 - numpy

    stats = file_stats(args.files)
    if args.json or not args.quiet:
        sys.stdout.write(stats_json(stats) if args.json else stats_text(stats))
    return _warn_of_faults(stats.faults, "")


def _merge(args: argparse.Namespace) -> int:
    """Merge files; return the number of warnings."""
    from tracebigsim import merge  # noqa: PLC0415 - it loads numpy

    to_stdout = args.output in (None, "-", "/dev/stdout", "/dev/fd/1")
    if to_stdout:
        merged = merge.merge_to_stream(args.files, sys.stdout.buffer)
    else:
        merged = merge.merge_files(args.files, args.output, force=args.force)
    if not args.quiet:
        (sys.stderr if to_stdout else sys.stdout).write(merge.merged_text(merged))
    return _warn_of_faults(merged.faults, " left out")


def _warn_of_faults(faults: Faults, what: str) -> int:
    """Warn of malformed lines, with the first of them; return the number of warnings, 0 or 1."""
    if faults.count:
        lines = "".join(f"\n  {fault}" for fault in faults.first)
        plural = "" if faults.count == 1 else "s"
        sys.stderr.write(
            f"warning: {faults.count:,} torn or malformed line{plural}{what}:{lines}\n"
        )
    return min(faults.count, 1)


def run() -> NoReturn:
    """Run the command; exit with the codes that `main` lists."""
    parser = _parser()
    args = parser.parse_args()
    if args.command is None and args.folder is None:
        sys.stderr.write(parser.format_help())
        sys.exit(WRONG_USAGE)
    if args.command is not None and args.folder is not None:
        parser.error("an option that prints a folder takes no command")
    try:
        if args.command is None:
            sys.stdout.write(f"{args.folder()}\n")
            sys.exit(DONE)
        warnings = args.run(args)
        sys.stdout.flush()
        sys.exit(FAILED if warnings and args.fail_on_warning else DONE)
    except (TraceBigSimError, OSError) as error:
        if getattr(args, "debug", False):
            traceback.print_exception(error)
        sys.stderr.write(f"tracebigsim: error: {error}\n")
        sys.exit(FAILED)


def _end_by_signal(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - as called
    """Raise `_SignalledError`, so that temporary files are removed on the way out."""
    raise _SignalledError(number)


class _SignalledError(BaseException):
    """A signal asked the process to end."""


def main() -> NoReturn:
    """Run the command; exit with 0 (done), 1 (failed), 2 (wrong usage) or 128 + signal number."""
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end_by_signal)
    occupy_closed()
    sys.stdout, sys.stderr = output_stream(), message_stream()
    code = FAILED
    try:
        run()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else FAILED
    except _SignalledError as signalled:
        number = signal.Signals(signalled.args[0])
        what = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
        sys.stderr.write(f"tracebigsim: {what}\n")
        code = 128 + number
    except OutputLost as lost:
        code = _code_of_lost_output(lost)
    try:
        sys.stdout.flush()
    except OutputLost as lost:
        code = code or _code_of_lost_output(lost)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _code_of_lost_output(lost: OutputLost) -> int:
    """Report that standard output cannot be written, unless its reader left; return the code."""
    if not lost.strerror:
        return CLOSED_PIPE
    sys.stderr.write(f"tracebigsim: error: standard output cannot be written: {lost.strerror}\n")
    return FAILED


if __name__ == "__main__":
    # `python -m` looks for modules in the working directory first, which may be a folder of logs.
    if not (sys.flags.safe_path or __file__.startswith(sys.path[0] + os.sep)):
        del sys.path[0]
    main()
