"""What all commands are: a declaration of options, the job, and what is printed of its result."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.options import declarations, is_given

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

REPORT = frozenset({"as_json", "report_file", "quiet"})
WARNINGS = frozenset({"fail_on_warning"})
PAGE = frozenset({"html_file"})
DETAILS = frozenset({"verbose"})
ENGINE = frozenset({"engine"})
"""Options of the command line alone that a command can take, by their fields in `cli.shell`."""


@dataclass(frozen=True)
class Kind:
    """Values that Python gives in several forms, and the command line as texts."""

    shown: str
    """What a signature says."""
    converter: str = ""
    """What makes jobs' values of all forms; it gets the name for errors, too."""
    read: Callable[[str], Any] = Path
    """What the command line makes of a text."""
    many: bool = False
    """Whether the command line takes several."""

    def __call__(self, text: str) -> Any:
        """Return the value of a text of a command line."""
        return self.read(text)

    def __or__(self, other: object) -> Kind:
        """Return the same for values that may be None."""
        return self

    def converted(self, value: Any, name: str) -> Any:
        """Return a value as jobs take it; None stays so, or is no file of several."""
        if not self.converter or (self.shown.endswith("None") and not is_given(value)):
            return () if value is None and self.many else value
        module, _, function = self.converter.partition(":")
        return getattr(import_module(f"rewritelog.{module}"), function)(value, name)


TIMINGS = "timings.samples:to_files_or_samples"
KINDS = {
    "CategoriesByName": Kind("Mapping[str, str] | None"),
    "DilationsByName": Kind("Mapping[str, float] | None"),
    "FittedArgument": Kind("FittedModel | PathLike", "api.fitted:to_predictor"),
    "InputPaths": Kind("PathsLike", "paths:to_inputs", many=True),
    "Listener": Kind("Listener"),
    "LogsArgument": Kind("LogsLike", "api.logs:to_logs"),
    "MachineLike": Kind("PathLike", read=str),
    "ManyTraces": Kind("TracesLike | Iterable[TracesLike]", "api.logs:to_many_traces", many=True),
    "ModelArgument": Kind("str | Model[Any]", read=str),
    "ModelNames": Kind("str | Sequence[str] | None"),
    "ModelOptions": Kind("Mapping[str, object] | None"),
    "NetworkLike": Kind("Network | str", read=str),
    "OptionalFitted": Kind("FittedModel | PathLike | None"),
    "OptionalFolder": Kind("LogsLike | None", "api.logs:to_folder"),
    "OptionalInput": Kind("PathLike | None", "paths:to_input"),
    "OptionalInputs": Kind("PathsLike | None", "paths:to_inputs", many=True),
    "OptionalLogs": Kind("LogsLike | None", "api.logs:to_logs"),
    "OptionalModel": Kind("str | Model[Any] | FittedModel | None", read=str),
    "OptionalOutput": Kind("PathLike | None", "paths:to_output"),
    "OptionalTraces": Kind("TracesLike | None", "api.logs:to_traces"),
    "OptionalTimings": Kind("TimingsLike | None", TIMINGS, many=True),
    "OutputPath": Kind("PathLike", "paths:to_output"),
    "Pes": Kind("str | Sequence[int] | None", read=str),
    "Quantity": Kind("float | str", read=str),
    "TimingsArgument": Kind("TimingsLike", TIMINGS, many=True),
    "TracesArgument": Kind("TracesLike", "api.logs:to_traces"),
    "Types": Kind("str | Sequence[str] | None", read=str),
    "UncheckedArgument": Kind("TracesLike", "api.logs:to_unchecked"),
}
"""The types of fields that are no plain ones, by the names of their annotations."""


class Report(Protocol):
    """The report of what a command has done or found."""

    more: ClassVar[str]
    """What `details` has, in a few words; empty without details."""

    def text(self) -> str:
        """Return the report as text."""

    def details(self) -> str:
        """Return what `--verbose` adds to it."""

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON types."""


class Command(Generic[Result]):
    """A command: its fields are what it is given, `run` is its job."""

    shell: ClassVar[frozenset[str]] = REPORT
    """The options that the command line adds."""
    rare: ClassVar[frozenset[str]] = frozenset()
    """The fields that only `--help-all` shows, besides those that all commands show there."""
    read_twice: ClassVar[str] = ""
    """The field with files that a page reads again, which standard input cannot be."""
    failure: ClassVar[int] = 1
    """The exit code if there is no result."""

    def run(self) -> Result:
        """Do the job; return what the Python function returns."""
        raise NotImplementedError

    @property
    def opened(self) -> Self:
        """The same with values as jobs take them: logs opened, paths checked.

        Raise a `RewriteLogError` for a value of a wrong type or an input that does not exist.
        """
        converted = {
            name: kind.converted(getattr(self, name), name)
            for name, kind in kinds_of(type(self))
            if isinstance(kind, Kind)
        }
        return dataclasses.replace(self, **converted)  # type: ignore[type-var]

    def job(self) -> Any:
        """Do the job; return what the command line makes its report and page of."""
        return self.run()

    def report(self, result: Any) -> Report:
        """Return the report that the command line prints."""
        report: Report = result
        return report

    def page(self, result: Any) -> str:
        """Return the page of `--html`."""
        raise NotImplementedError

    def exit_code(self, result: Any) -> int:  # noqa: ARG002 - most commands have one code
        """Return the exit code of the command line."""
        return 0


class Shell(Protocol):
    """The command line, as commands see it that print something else than a report."""

    quiet: bool
    as_json: bool

    def write(self, text: str) -> None:
        """Print a text to standard output."""

    def warn(self, warnings: Sequence[str]) -> None:
        """Print warnings."""

    def is_stdout(self, output: object) -> bool:
        """Return whether an output is standard output."""


class Printing(Command[Result]):
    """A command that prints something else than a report."""

    shell = frozenset({"quiet"})
    prints_lines: ClassVar[bool] = False
    """Whether it prints while it works: no progress is shown among the lines on a terminal."""

    def print(self, shell: Shell) -> int:
        """Do the job and print its result; return the exit code."""
        raise NotImplementedError


def function(command: Callable[Parameters, Command[Result]]) -> Callable[Parameters, Result]:
    """Return the Python function of a command, with its signature."""
    cls: Any = command
    name = snake_case(cls.__name__)
    parameters = inspect.signature(cls).parameters.values()
    signature = inspect.Signature(
        [member.replace(annotation=_shown(member)) for member in parameters]
    )

    @wraps(cls, updated=())
    def call(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            signature.bind(*args, **options)
        except TypeError as error:
            raise UsageTypeError(f"{name}: {error}") from error
        made = command(*args, **options)
        check_choices(made)
        return made.run()

    del call.__wrapped__
    returned = cls.run.__annotations__.get("return", inspect.Signature.empty)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = documentation(cls)
    call.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    return call


def _shown(parameter: inspect.Parameter) -> Any:
    """Return the annotation of a parameter for people."""
    kind = KINDS.get(parameter.annotation)
    return parameter.annotation if kind is None else kind.shown


def snake_case(name: str) -> str:
    """Return the name of the function of a class: `lost_cycles` of `LostCycles`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def documentation(cls: type[Any]) -> str:
    """Return the docstring of a command's function: its own, and a line for each parameter."""
    text, example, after = inspect.cleandoc(cls.__doc__ or "").partition("\n>>>")
    fields = sorted(declarations(cls), key=lambda pair: bool(pair[0].kw_only))
    listed = "".join(f"- `{member.name}`: {declaration.help}\n" for member, declaration in fields)
    return f"{text.rstrip()}\n\nParameters:\n\n{listed}{example}{after}".rstrip() + "\n"


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the values of a Literal, or of a Literal or None; of other types none."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(value for member in get_args(kind) for value in choices(member))


def check_choices(command: Command[Any]) -> None:
    """Raise `UsageError` for a value that is none of those that its field allows."""
    for name, kind in kinds_of(type(command)):
        allowed, value = choices(kind), getattr(command, name)
        if allowed and value is not None and value not in allowed:
            raise UsageError(f"{name} must be {listed(allowed)}, not {value!r}")


def listed(allowed: tuple[Any, ...]) -> str:
    """Return values as in a sentence."""
    *most, last = map(repr, allowed)
    return f"{', '.join(most)} or {last}" if most else last


def kinds_of(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the declared fields of a class with the types that the command line reads."""
    kinds = get_type_hints(cls, localns=KINDS)
    for member, _ in declarations(cls):
        yield member.name, kinds[member.name]
