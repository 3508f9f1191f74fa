"""Command lines, parsed by typer, and the texts of `--help`, both derived from declarations."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rewritelog import COMMANDS, commands
from rewritelog.commands.command import ALWAYS, SHELL_OPTIONS, Command
from rewritelog.commands.completion import COMPLETE, COMPLETERS
from rewritelog.commands.durations import NETWORK
from rewritelog.options import (
    ADVANCED,
    MODEL,
    OTHER,
    OUTPUT,
    RUNNING,
    SELECTION,
    Declaration,
    choices,
)

TOP_LEVEL = [option for option in SHELL_OPTIONS if option.field in ALWAYS - {"help_all"}]
"""The options that may stand before the name of a command."""

HELP = "help"
"""Shows the help of the command named after it."""

GATHERED = "--timings"
"""The option that takes all files following it, as from a shell's glob pattern."""

MOST_COMPLETED = 1000
"""The most values that a shell is offered; more would not help."""

MODEL_OPTION = "model_option_"
"""The prefix of fields for flags that are options of a model."""


def words_of(command: type[Command[Any]]) -> list[Declaration]:
    """Return what the command line takes: arguments, the command's options, and those of all."""
    words = [option for option in command.own() if option.shell]
    words += [option for option in SHELL_OPTIONS if option.field in command.shell | ALWAYS]
    return sorted(words, key=lambda word: not word.positional)


def flags_of_models(declared: Sequence[Declaration]) -> list[Declaration]:
    """Return the options of all built-in models, if a command makes a model, except its own.

    They are known only after all models have been imported.
    """
    if not any(word.field == "model_options" for word in declared):
        return []
    from rewritelog.models.registry import built_in_options  # noqa: PLC0415 - imports all models

    taken = {name for word in declared for name in word.names}
    flags = [option for option in built_in_options() if option.name not in taken]
    return [
        replace(flag, field=MODEL_OPTION + flag.field, kind=str if flag.is_flag else flag.kind)
        for flag in flags
    ]


_COMPLETED = "COMP_WORDS", "_TYPER_COMPLETE_ARGS"
"""The environment variables in which bash, and other shells, pass the words to complete."""


def completing() -> bool:
    """Return whether a shell asks for completions."""
    return COMPLETE in os.environ


def words_to_complete() -> list[str]:
    """Return the command line that a shell asks to complete."""
    return " ".join(os.environ.get(name, "") for name in _COMPLETED).split()


def parse(texts: Sequence[str], known: Mapping[str, Sequence[Declaration]]) -> dict[str, Any]:
    """Return what a command line gives before and after the name of a command, by fields.

    Values are lists of texts, texts for single arguments, and True for flags. `known` are the
    arguments and options of the command that is named; of all commands for completion. Raise
    `typer.TyperException` for what cannot be parsed.
    """
    parsed: dict[str, Any] = {}
    app = typer.Typer(
        add_completion=completing(), add_help_option=False, rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_receiver(parsed, TOP_LEVEL))
    for name in commands.NAMES:
        about, words = commands.summary(name) if completing() else "", known.get(name, ())
        words = words if completing() else _spelled(words, texts)
        receiver = _receiver(parsed, words)
        app.command(name, cls=_CommandOfTexts, help=about, add_help_option=False)(receiver)
    if not completing():
        app.command(HELP)(_receiver(parsed, ()))  # so that it is suggested for similar names
    for words in known.values():
        texts = plain_words(texts, words)
    app(args=list(texts), prog_name="rewritelog", standalone_mode=False)
    return parsed


class _CommandOfTexts(TyperCommand):
    """A command whose values stay texts: to convert them typer imports pydantic for 60 ms.

    It still does for extra arguments, which are an error, and for completion.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        values, extra, _ = self.make_parser(ctx).parse_args(args=[*args])
        if extra or ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.params.update(values)
        return []


def _spelled(words: Sequence[Declaration], texts: Sequence[str]) -> Sequence[Declaration]:
    """Return the words that typer needs for this command line: it takes 0.1 ms for each.

    It needs all of them to suggest similar ones, if a text spells none.
    """
    names = {text.partition("=")[0] for text in texts if text.startswith("-")} - {"-"}
    if names - {name for word in words for name in word.names}:
        return words
    return [word for word in words if word.is_flag or word.positional or names & {*word.names}]


def plain_words(texts: Sequence[str], words: Sequence[Declaration]) -> list[str]:
    """Return a command line in a form that typer can parse.

    Files after `--timings FILE` become further values of that option, except folders, and the last
    ones if the command needs them as positional arguments. If one of these arguments is a negative
    number, they are moved behind a `--`.
    """
    places = list(_positionals(texts, words))
    moved = set[int]()
    if any(GATHERED in word.names and word.several for word in words):
        left_out = {word.field for word in words if word.is_flag and word.name in texts}
        needed = 1 + sum(word.positional and word.needed not in left_out for word in words)
        following = sorted(p for p, follows in places if follows and not Path(texts[p]).is_dir())
        moved = set(following[: max(0, len(places) - needed)])
    plain = [f"{GATHERED}={text}" if place in moved else text for place, text in enumerate(texts)]
    arguments = [place for place, _ in places if place not in moved][1:]  # without the command
    if "--" in texts or not any(_NEGATIVE.fullmatch(texts[place]) for place in arguments):
        return plain
    options = [text for place, text in enumerate(plain) if place not in arguments]
    return [*options, "--", *(texts[place] for place in arguments)]


_NEGATIVE = re.compile(r"-\.?[0-9].*")


def _positionals(texts: Sequence[str], words: Sequence[Declaration]) -> Iterator[tuple[int, bool]]:
    """Yield the index of each text that is no option, and whether it follows `--timings`."""
    takes_value = {name: not word.is_flag for word in words for name in word.names}
    place, follows = 0, False
    while place < len(texts):
        text = texts[place]
        if text == "--":
            yield from ((rest, False) for rest in range(place + 1, len(texts)))
            return
        if text.startswith("-") and text != "-" and not _NEGATIVE.fullmatch(text):
            follows = text.partition("=")[0] == GATHERED
            names = [text] if text.startswith("--") else [f"-{letter}" for letter in text[1:]]
            flags = list(takewhile(lambda name: not takes_value.get(name), names))
            place += len(flags) == len(names) - 1  # else there is no value, or it is in the text
        else:
            yield place, follows
        place += 1


def _receiver(received: dict[str, Any], words: Sequence[Declaration]) -> Any:
    """Return a function for typer with a parameter for each word, which keeps what it gets."""
    parameters = [_parameter(word) for word in words]

    def receive(**values: Any) -> None:
        # what is not on the command line is None, False or an empty list
        received.update({name: value for name, value in values.items() if value or value == ""})

    receive.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    receive.__annotations__ = {member.name: member.annotation for member in parameters}
    return receive


def _parameter(word: Declaration) -> inspect.Parameter:
    """Return the parameter of a function that makes typer read an argument or option."""
    kind: Any = list[str] | None if word.names or word.several else str | None
    if word.is_flag:
        kind, read_by = bool, typer.Option(*word.names)
    elif word.names:
        read_by = typer.Option(*word.names, metavar=word.metavar, autocompletion=_completer(word))
    else:
        read_by = typer.Argument(metavar=word.metavar, autocompletion=_completer(word))
    return inspect.Parameter(
        word.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if word.is_flag else None,
        annotation=Annotated[kind, read_by],
    )


def _completer(word: Declaration) -> Callable[[typer.Context, str], list[str]]:
    """Return the function that completes values of an option."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        values: Iterable[str] = choices(word.kind)
        if word.complete:
            values = COMPLETERS[word.complete](
                incomplete, lambda name: context.params.get(name) or context.args
            )
        return [text for text in values if text.startswith(incomplete)][:MOST_COMPLETED]

    return complete


def values_of(parsed: Mapping[str, Any], words: Sequence[Declaration]) -> dict[str, Any]:
    """Return the values of the fields of a command that the words of a command line give."""
    values: dict[str, Any] = {}
    for word in words:
        if word.field in parsed:
            texts = parsed[word.field]
            value = texts[-1] if isinstance(texts, list) and not word.several else texts
            is_known = not word.field.startswith(MODEL_OPTION)  # else only the model can check it
            values[word.field] = word.checked(value) if is_known else value
        elif word.required or (isinstance(word.needed, str) and word.needed not in parsed):
            what = "option" if word.names else "argument"
            listed = ", ".join(choices(word.kind))
            allowed = f"; choose from {listed}" if listed else ""
            raise typer.TyperException(f"missing {what} '{word.name}'{allowed}")
    for field in [name for name in values if name.startswith(MODEL_OPTION)]:
        named_value = field.removeprefix(MODEL_OPTION), values.pop(field)
        values.setdefault("model_options", []).append(named_value)
    return values


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
    for panel, names in COMMANDS.items():
        records = [(name, commands.summary(name)) for name in names]
        lines += ["", *_section(panel, records, width)]
    return "\n".join(lines)


def command_help(name: str, *, rare: bool = False) -> str:
    """Return the help of a command: the usual options, or with `rare` all of them."""
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
