"""Parsing of arguments and layout of the help, beyond what typer does."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from rewritelog.cli import console
from rewritelog.cli.arguments import ADVANCED, DILATION, MODEL, OTHER, OUTPUT, RUNNING

GATHERED = "timings"
"""The option that takes all files following it, as from a shell's glob pattern."""


_LAST = (MODEL, DILATION, OUTPUT, RUNNING, ADVANCED, "Options of models", OTHER)


def _rank(group: str) -> int:
    """Return the rank of a group of options in the help; those of this command alone come first."""
    return 1 + _LAST.index(group) if group in _LAST else 0


class Command(TyperCommand):
    """A command whose help groups its options, and that warns of options given twice."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line: options, and arguments by name."""
        params: list[Any] = self.get_params(ctx)
        arguments = [param for param in params if param.param_type_name == "argument"]
        spelled = [p.metavar if p.required else f"[{p.metavar}]" for p in arguments]
        return ["[OPTIONS]", *spelled]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, and options by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        params: list[Any] = self.get_params(ctx)
        for param in params:
            if param.param_type_name == "argument":
                groups.setdefault("Arguments", []).append((param.metavar, param.help))
            elif record := param.get_help_record(ctx):
                is_help = param.name == "help"
                group = OTHER if is_help else param.rich_help_panel or "Options"
                said = record[1].replace("; x>=0]", "]").replace("[x>=0]", "")
                groups.setdefault(group, []).append((record[0], " ".join(said.split())))
        for group in sorted(groups, key=_rank):
            with formatter.section(group):
                _write_records(formatter, groups[group])

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; note a warning for each option whose earlier value is lost."""
        args = self._gathered(args)
        if not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=list(args))
            for param in dict.fromkeys(order):
                if order.count(param) > 1 and _takes_one_value(param):
                    console.note(
                        f"{param.opts[-1]} is given more than once: the last value is used"
                    )
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def _gathered(self, args: Sequence[str]) -> list[str]:
        """Return the arguments with the files after `--timings FILE` turned into values of it too.

        These are the files in excess of the command's positional arguments. With `--dry-run` there
        is no positional argument OUT.
        """
        gathering = next(
            (
                f"--{GATHERED}"
                for p in self.params
                if p.name == GATHERED and p.param_type_name == "option"
            ),
            None,
        )
        if gathering is None:
            return list(args)
        places = list(self._positionals(args, gathering))
        wanted = sum(param.param_type_name == "argument" for param in self.params)
        surplus = max(0, len(places) - wanted + ("--dry-run" in args))
        following = {place for place, follows in places if follows}
        moved = set(sorted(following)[:surplus])
        return [f"{gathering}={arg}" if place in moved else arg for place, arg in enumerate(args)]

    def _positionals(self, args: Sequence[str], gathering: str) -> Iterator[tuple[int, bool]]:
        """Yield each positional argument's index, and whether it follows the option `gathering`."""
        takes = {
            spelled: not getattr(param, "is_flag", False)
            for param in self.params
            for spelled in (*param.opts, *param.secondary_opts)
            if param.param_type_name == "option"
        }
        place, follows = 0, False
        while place < len(args):
            arg = args[place]
            if arg == "--":
                yield from ((rest, False) for rest in range(place + 1, len(args)))
                return
            if arg.startswith("-") and arg != "-":
                follows = arg.partition("=")[0] == gathering
                place += takes.get(arg, False)
            else:
                yield place, follows
            place += 1


def _takes_one_value(param: Any) -> bool:
    return param.param_type_name == "option" and not param.multiple and not param.is_flag


class Entry(NamedTuple):
    """The list's entry of a command, and the module with its function."""

    name: str
    module: str
    """The module of `rewritelog.cli` that defines the function `…_command`."""
    summary: str
    """The first sentence of the command's help, without the full stop."""

    @cache  # noqa: B019 - there is one entry for each command
    def load(self) -> Any:
        """Import the command and return its parser, made by typer."""
        module = import_module(f"rewritelog.cli.{self.module}")
        alone = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        function = getattr(module, f"{self.name.replace('-', '_')}_command")
        alone.command(self.name, cls=Command)(function)
        return typer.main.get_command(alone)


class LazyCommands(Mapping[str, Any]):
    """Commands by name, each imported when it is looked up."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Any:
        return self._entries[name].load()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Group(TyperGroup):
    """The commands in groups; only the command that runs is imported."""

    panels: ClassVar[Mapping[str, Sequence[Entry]]] = {}
    """The commands by purpose, in the order of the help."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = LazyCommands(chain.from_iterable(self.panels.values()))

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as in the base
        """Write the commands by group, each with a complete sentence of help."""
        width = max(map(len, self.commands))
        for panel, entries in self.panels.items():
            with formatter.section(panel):
                records = [(entry.name, entry.summary) for entry in entries]
                _write_records(formatter, records, width)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as in the base
        """Return the names of commands in order of declaration."""
        return list(self.commands)


MOST_INDENTED = 30
"""Options with a longer name and metavar have their help text on the next line."""


def _write_records(formatter: Any, records: Sequence[tuple[str, str]], width: int = 0) -> None:
    """Write pairs of name and text in two columns."""
    width = width or min(MOST_INDENTED, max(len(name) for name, _ in records))
    indent = " " * formatter.current_indent
    column = " " * (width + 2)
    room = max(20, formatter.width - len(indent) - len(column))
    for name, said in records:
        lines = textwrap.wrap(said, room, break_on_hyphens=False) or [""]
        if len(name) > width:
            lines.insert(0, "")
        formatter.write(f"{indent}{name:<{width}}  {lines[0]}".rstrip() + "\n")
        for line in lines[1:]:
            formatter.write(f"{indent}{column}{line}\n")
