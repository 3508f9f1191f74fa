"""How commands parse their arguments and lay out their help, beyond what typer does by itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

from rewritelog.cli import console
from rewritelog.cli.arguments import ADVANCED, DILATION, MODEL, OTHER, OUTPUT, RUNNING

GATHERED = "timings"
"""The option that takes all files that follow it, as a shell's pattern gives them."""


_LAST = (MODEL, DILATION, OUTPUT, RUNNING, ADVANCED, "Options of models", OTHER)


def _rank(group: str) -> int:
    """Return where a group of options comes in the help: what only this command has is first."""
    return 1 + _LAST.index(group) if group in _LAST else 0


class Command(TyperCommand):
    """A command whose help groups its options, and that notices options given twice."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return how the command is called: its options, and its arguments by name."""
        params: list[Any] = self.get_params(ctx)
        arguments = [param for param in params if param.param_type_name == "argument"]
        spelled = [p.metavar if p.required else f"[{p.metavar}]" for p in arguments]
        return ["[OPTIONS]", *spelled]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, the latter by group."""
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
        """Return the arguments with the files that follow `--timings FILE` made its values too.

        They are those that the command has no positional argument for. With `--dry-run` there is
        none for OUT.
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
        """Yield the place of each positional argument, and whether it follows that option's."""
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


class Group(TyperGroup):
    """The commands, each with a whole sentence of help, by what they are for."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                said = command.help.partition("\n\n")[0]
                group = command.rich_help_panel or "Commands"
                groups.setdefault(group, []).append((name, " ".join(said.split()).rstrip(".")))
        width = max(len(name) for records in groups.values() for name, _ in records)
        for group, records in groups.items():
            with formatter.section(group):
                _write_records(formatter, records, width)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as the base class has it
        """Return the commands in the order in which they were declared."""
        return list(self.commands)


MOST_INDENTED = 30
"""An option whose spelling is longer than this has its text on the next line."""


def _write_records(formatter: Any, records: Sequence[tuple[str, str]], width: int = 0) -> None:
    """Write names with their texts in two columns."""
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
