"""The words of a command line, parsed by typer as the declarations of a command say."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from rewritelog import __version__, commands
from rewritelog.cli import console
from rewritelog.cli.help import TOP_LEVEL, command_help, overview
from rewritelog.cli.spelling import Spelled, shell_options
from rewritelog.commands.command import choices
from rewritelog.commands.completers import COMPLETERS
from rewritelog.commands.completion import COMPLETE

GATHERED = "--timings"
"""The option that takes all files following it, as from a shell's glob pattern."""


def parse(words: Sequence[str], spelled: Mapping[str, Sequence[Spelled]]) -> dict[str, Any]:
    """Return what the words of a command line give to each argument and option of a command.

    Values are lists of texts, texts for single arguments, and True for flags. `spelled` are the
    arguments and options of the command that the words name; of all commands for completion. Raise
    `typer.TyperException` for words that cannot be parsed, and `SystemExit` after `--help`.
    """
    given: dict[str, Any] = {}
    completing = COMPLETE in os.environ
    app = typer.Typer(
        add_completion=completing, add_help_option=False, rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    top = [_parameter(option, "") for option in shell_options(TOP_LEVEL)]
    app.callback()(_with(lambda **_: None, top))
    for name in commands.NAMES:
        about = commands.summary(name) if completing else ""
        parameters = [_parameter(option, name) for option in spelled.get(name, ())]
        app.command(name, help=about, add_help_option=False)(_with(given.update, parameters))
    for known in spelled.values():
        words = gathered(words, known)
    code = app(args=list(words), prog_name="rewritelog", standalone_mode=False)
    if not given:
        sys.exit(code or 0)
    return given


def gathered(words: Sequence[str], spelled: Sequence[Spelled]) -> list[str]:
    """Return the words with the files after `--timings FILE` turned into values of it too.

    These are the files in excess of the command's positional arguments. With `--dry-run` there
    is no positional argument OUT.
    """
    if not any(GATHERED in option.names and option.many for option in spelled):
        return list(words)
    places = list(_positionals(words, spelled))
    wanted = 1 + sum(not option.names for option in spelled)
    surplus = max(0, len(places) - wanted + ("--dry-run" in words))
    following = {place for place, follows in places if follows}
    moved = set(sorted(following)[:surplus])
    return [f"{GATHERED}={word}" if place in moved else word for place, word in enumerate(words)]


def _positionals(words: Sequence[str], spelled: Sequence[Spelled]) -> Iterator[tuple[int, bool]]:
    """Yield the index of each word that is no option, and whether it follows `--timings`."""
    takes = {name: not option.is_flag for option in spelled for name in option.names}
    place, follows = 0, False
    while place < len(words):
        word = words[place]
        if word == "--":
            yield from ((rest, False) for rest in range(place + 1, len(words)))
            return
        if word.startswith("-") and word != "-":
            follows = word.partition("=")[0] == GATHERED
            place += takes.get(word, False)
        else:
            yield place, follows
        place += 1


def _with(receive: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Any:
    """Return a function of these parameters for typer."""

    def command(**given: Any) -> None:
        receive(**given)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in parameters}
    return command


def _parameter(option: Spelled, command: str) -> inspect.Parameter:
    """Return the parameter of a function that makes typer read an argument or option."""
    kind: Any = bool if option.is_flag else list[str]
    default: Any = False if option.is_flag else None
    more: dict[str, Any] = {"metavar": option.metavar} if not option.is_flag else {}
    if option.field in _AT_ONCE:
        more |= {"is_eager": True, "callback": _AT_ONCE[option.field](command)}
    if not option.is_flag:
        more["autocompletion"] = _completer(option)
    if not option.names and not option.many:
        kind = str
    if option.required and not option.names:
        default = inspect.Parameter.empty
    elif not option.is_flag:
        kind |= None
    made = typer.Option(*option.names, **more) if option.names else typer.Argument(**more)
    return inspect.Parameter(
        option.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, made],
    )


def _completer(option: Spelled) -> Callable[[typer.Context, str], list[str]]:
    """Return the function that completes values of an option."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        if not option.declared.complete:
            return [text for text in choices(option.kind) if text.startswith(incomplete)]
        complete_value = COMPLETERS[option.declared.complete]
        return list(complete_value(incomplete, lambda name: context.params.get(name) or []))

    return complete


def _at_once(text: Callable[[str], str]) -> Callable[[str], Callable[[bool], None]]:
    """Return what makes the callback of a flag that prints a text and ends the command."""

    def of(command: str) -> Callable[[bool], None]:
        def callback(given: bool) -> None:
            if given:
                typer.echo(text(command))
                raise typer.Exit

        return callback

    return of


def _debugging(_: str) -> Callable[[bool], None]:
    def callback(given: bool) -> None:
        if given:
            console.set_debug()

    return callback


_AT_ONCE: Mapping[str, Callable[[str], Callable[[bool], None]]] = {
    "debug": _debugging,
    "version": _at_once(lambda _: f"rewritelog {__version__}"),
    "help": _at_once(lambda name: command_help(name) if name else overview()),
    "help_all": _at_once(lambda name: command_help(name, rare=True) if name else overview()),
}
