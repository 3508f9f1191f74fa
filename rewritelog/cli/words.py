"""The words of a command line, parsed by typer as the declarations of a command say."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass
from typing import Annotated, Any, get_args

import typer

from rewritelog import commands
from rewritelog.commands.command import ALWAYS, Command, ShellOptions, ValueKind, choices, kinds_of
from rewritelog.commands.completion import COMPLETE, COMPLETERS
from rewritelog.errors import UsageError
from rewritelog.options import Declaration, declarations, spellings

METAVARS = {float: "NUMBER", int: "N", str: "TEXT"}
TOP_LEVEL = ALWAYS - {"help_all"}
"""The options that may stand before the name of a command."""

HELP = "help"
"""Shows the help of the command named after it."""

GATHERED = "--timings"
"""The option that takes all files following it, as from a shell's glob pattern."""

MODEL_OPTION = "model_option_"
"""Begins the names of the fields of a model's options, which are flags too."""


@dataclass(frozen=True)
class Word:
    """One argument or option of a command line."""

    field: str
    names: tuple[str, ...]
    """As an option is spelled; empty for an argument."""
    kind: Any
    """The type of the value, without None."""
    default: Any
    """Its default; `dataclasses.MISSING` if it is required."""
    declared: Declaration

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.kind is bool

    @property
    def several(self) -> bool:
        """Whether it can be given several times."""
        takes_many = isinstance(self.kind, ValueKind) and self.kind.several
        return takes_many or self.declared.read is not None

    @property
    def required(self) -> bool:
        """Whether the command needs it."""
        return self.default is MISSING or self.declared.needed

    @property
    def metavar(self) -> str:
        """What stands for its value in the help."""
        listed = "|".join(choices(self.kind))
        return self.declared.metavar or listed or METAVARS.get(self.kind, "FILE")

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.names[0] if self.names else self.metavar

    def value(self, texts: Sequence[str]) -> Any:
        """Return the value that texts stand for; raise `UsageError` if they do not."""
        if self.declared.read is not None:
            return self.declared.read(list(texts), self.name)
        if self.several:
            return [self.kind(text) for text in texts]
        text, allowed, least = texts[-1], choices(self.kind), self.declared.least
        if allowed:
            if text not in allowed:
                raise self._wrong(f"{text!r} is not one of {', '.join(map(repr, allowed))}")
            return text
        try:
            value = self.kind(text)
        except ValueError as error:
            what = "an integer" if self.kind is int else "a number"
            raise self._wrong(f"{text!r} is not {what}") from error
        if least is not None and value < least:
            raise self._wrong(f"{text} is less than {least}")
        return value

    def _wrong(self, problem: str) -> typer.TyperException:
        return typer.TyperException(f"invalid value for '{self.name}': {problem}")


def words_of(command: type[Command[Any]]) -> list[Word]:
    """Return what the command line takes: arguments, the command's options, and those of all."""
    own = [word for word in _declared_words(command) if word.declared.shell]
    return sorted([*own, *shell_words(command.shell | ALWAYS)], key=lambda word: bool(word.names))


def shell_words(fields: frozenset[str]) -> list[Word]:
    """Return some of the options that the command line adds."""
    return [word for word in _declared_words(ShellOptions) if word.field in fields]


def _declared_words(cls: type[Any]) -> Iterator[Word]:
    kinds = dict(kinds_of(cls))
    for member, declared in declarations(cls):
        kind = kinds[member.name]
        if type(None) in get_args(kind):
            kind = get_args(kind)[0]
        names = () if declared.positional else spellings(member)
        yield Word(member.name, names, kind, member.default, declared)


def flags_of_models(own: Sequence[Word]) -> list[Word]:
    """Return the options of all built-in models, if a command makes a model, except its own.

    They are known only after all models have been imported.
    """
    if not any(word.field == "model_options" for word in own):
        return []
    from rewritelog.models.registry import built_in_options  # noqa: PLC0415 - imports all models

    taken = {name for word in own for name in word.names}
    flags = [
        Word(
            MODEL_OPTION + name,
            (f"--{name.replace('_', '-')}",),
            str if info.kind is bool else info.kind,
            None,
            Declaration(info.help),
        )
        for name, info in built_in_options().items()
    ]
    return [word for word in flags if word.name not in taken]


def completing() -> bool:
    """Return whether a shell asks for completions."""
    return COMPLETE in os.environ


def parse(
    texts: Sequence[str], known: Mapping[str, Sequence[Word]]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a command line gives before the name of a command, and after it, by fields.

    Values are lists of texts, texts for single arguments, and True for flags. `known` are the
    arguments and options of the command that is named; of all commands for completion. Raise
    `typer.TyperException` for what cannot be parsed.
    """
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    app = typer.Typer(
        add_completion=completing(), add_help_option=False, rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_receiver(before, shell_words(TOP_LEVEL)))
    for name in commands.NAMES:
        about = commands.summary(name) if completing() else ""
        app.command(name, help=about, add_help_option=False)(_receiver(after, known.get(name, ())))
    if not completing():
        app.command(HELP)(_receiver(after, ()))  # it is suggested for a name like it
    for words in known.values():
        texts = gathered(texts, words)
    app(args=list(texts), prog_name="rewritelog", standalone_mode=False)
    return before, after


def gathered(texts: Sequence[str], words: Sequence[Word]) -> list[str]:
    """Return a command line with the files after `--timings FILE` turned into values of it too.

    These are the files in excess of the command's positional arguments. With `--dry-run` there
    is no positional argument OUT.
    """
    if not any(GATHERED in word.names and word.several for word in words):
        return list(texts)
    places = list(_positionals(texts, words))
    needed = 1 + sum(not word.names for word in words) - ("--dry-run" in texts)
    following = sorted(place for place, follows in places if follows)
    moved = set(following[: max(0, len(places) - needed)])
    return [f"{GATHERED}={text}" if place in moved else text for place, text in enumerate(texts)]


def _positionals(texts: Sequence[str], words: Sequence[Word]) -> Iterator[tuple[int, bool]]:
    """Yield the index of each text that is no option, and whether it follows `--timings`."""
    takes_value = {name: not word.is_flag for word in words for name in word.names}
    place, follows = 0, False
    while place < len(texts):
        text = texts[place]
        if text == "--":
            yield from ((rest, False) for rest in range(place + 1, len(texts)))
            return
        if text.startswith("-") and text != "-":
            follows = text.partition("=")[0] == GATHERED
            place += takes_value.get(text, False)
        else:
            yield place, follows
        place += 1


def _receiver(received: dict[str, Any], words: Sequence[Word]) -> Any:
    """Return a function for typer with a parameter for each word, which keeps what it gets."""
    parameters = [_parameter(word) for word in words]

    def receive(**values: Any) -> None:
        received.update(values)

    receive.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    receive.__annotations__ = {member.name: member.annotation for member in parameters}
    return receive


def _parameter(word: Word) -> inspect.Parameter:
    """Return the parameter of a function that makes typer read an argument or option."""
    kind: Any = list[str] | None if word.names or word.several else str | None
    if word.is_flag:
        kind, declared = bool, typer.Option(*word.names)
    elif word.names:
        declared = typer.Option(*word.names, metavar=word.metavar, autocompletion=_completer(word))
    else:
        declared = typer.Argument(metavar=word.metavar, autocompletion=_completer(word))
    return inspect.Parameter(
        word.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=False if word.is_flag else None,
        annotation=Annotated[kind, declared],
    )


def _completer(word: Word) -> Callable[[typer.Context, str], list[str]]:
    """Return the function that completes values of an option."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        if not word.declared.complete:
            return [text for text in choices(word.kind) if text.startswith(incomplete)]
        complete_value = COMPLETERS[word.declared.complete]
        return list(complete_value(incomplete, lambda name: context.params.get(name) or []))

    return complete


def values_of(parsed: Mapping[str, Any], words: Sequence[Word], cls: type[Any]) -> dict[str, Any]:
    """Return the values of the fields of a class that the words of a command line give."""
    names = {member.name for member in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for word in words:
        texts = parsed.get(word.field)
        if word.field not in names and not word.field.startswith(MODEL_OPTION):
            continue
        if texts:
            texts_given = [texts] if isinstance(texts, str) else texts
            values[word.field] = True if word.is_flag else word.value(texts_given)
        elif word.required:
            what = "option" if word.names else "argument"
            listed = ", ".join(choices(word.kind))
            allowed = f"; choose from {listed}" if listed else ""
            raise typer.TyperException(f"missing {what} '{word.name}'{allowed}")
    for field in [name for name in values if name.startswith(MODEL_OPTION)]:
        option = field.removeprefix(MODEL_OPTION)
        if option in values.setdefault("model_options", {}):
            raise UsageError(f"the model option {option!r} is given more than once")
        values["model_options"][option] = values.pop(field)
    return values
