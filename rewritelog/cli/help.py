"""The texts of `--help`, made from the declarations of the commands."""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Sequence

from rewritelog import commands
from rewritelog.cli.words import TOP_LEVEL, words_of
from rewritelog.commands.network import NETWORK
from rewritelog.options import ADVANCED, MODEL, OTHER, OUTPUT, RUNNING, SELECTION, Declaration

ABOUT = (
    "Give BigSim bgTrace logs and Chakra execution traces new durations, so that a network "
    "simulator predicts the run time on the target machine."
)
MOST_INDENTED = 30
"""Options with a longer name and metavar have their help text on the next line."""

HEADINGS = ("Arguments", "Options", MODEL, NETWORK, SELECTION, OUTPUT, RUNNING, ADVANCED, OTHER)
_WIDEST = 80

Record = tuple[str, str]


def overview() -> str:
    """Return the list of the commands by purpose."""
    lines = ["Usage: rewritelog [OPTIONS] COMMAND [ARGS]...", "", *_paragraph(ABOUT), ""]
    lines += _section("Options", [_record(option) for option in TOP_LEVEL])
    width = max(map(len, commands.NAMES))
    for panel, names in commands.PANELS.items():
        records = [(name, commands.summary(name)) for name in names]
        lines += ["", *_section(panel, records, width)]
    return "\n".join(lines)


def command_help(name: str, *, rare: bool = False) -> str:
    """Return the help of a command: what most people need of it, or with `rare` everything."""
    cls = commands.command_class(name)
    spelled = words_of(cls)
    shown = [option for option in spelled if rare or not (option.rare or option.field in cls.rare)]
    arguments = [option for option in spelled if option.positional]
    usage = [option.metavar if option.required else f"[{option.metavar}]" for option in arguments]
    needed = (option for option in spelled if option.required and not option.positional)
    usage += [f"{option.name} {option.metavar}" for option in needed]
    lines = [" ".join(("Usage: rewritelog", name, "[OPTIONS]", *usage)), ""]
    about = inspect.cleandoc(cls.__doc__ or "").partition("\n>>>")[0].strip()
    about += f"\n\nThe exit code is {cls.exits}." if cls.exits else ""
    lines += [line for text in about.split("\n\n") for line in (*_paragraph(text), "")]
    groups: dict[str, list[Record]] = {heading: [] for heading in HEADINGS}
    for option in shown:
        heading = "Arguments" if option.positional else option.group or "Options"
        groups[heading].append(_record(option))
    sections = (_section(heading, records) for heading, records in groups.items() if records)
    lines.append("\n\n".join("\n".join(section) for section in sections))
    if len(shown) < len(spelled):
        lines += ["", f"--help-all shows {len(spelled) - len(shown)} more options."]
    return "\n".join(lines)


def _record(option: Declaration) -> Record:
    names = ", ".join(sorted(option.names, key=len)) or option.metavar
    spelled = names if option.is_flag or not option.names else f"{names} {option.metavar}"
    pairs = option.names and option.several and "=" in option.metavar
    text = f"{option.help} Repeatable." if pairs else option.help
    known = option.required or option.is_flag or option.default is None or "[default" in text
    return spelled, text if known else f"{text} [default: {option.default}]"


def _width() -> int:
    return max(min(shutil.get_terminal_size().columns, _WIDEST) - 2, 50)


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(
        text, _width(), initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
    )


def _section(heading: str, records: Sequence[Record], width: int = 0) -> list[str]:
    """Return a heading and records in two columns."""
    width = width or min(MOST_INDENTED, max(len(name) for name, _ in records))
    column = " " * (width + 4)
    lines = [f"{heading}:"]
    for name, text in records:
        first, *others = textwrap.wrap(
            text, max(20, _width() - len(column)), break_on_hyphens=False
        ) or [""]
        if len(name) > width:
            others.insert(0, first)
            first = ""
        lines.append(f"  {name:<{width}}  {first}".rstrip())
        lines += [column + line for line in others]
    return lines
