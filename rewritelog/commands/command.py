"""What all commands are: a declaration of options, the job, and what is printed of its result."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from rewritelog.errors import UsageError, UsageTypeError
from rewritelog.options import (
    OTHER,
    OUTPUT,
    RUNNING,
    As,
    OptionalOutput,
    OutputPath,
    argument,
    declarations,
    declared,
    is_given,
    option,
)
from rewritelog.running import EngineName

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rewritelog.evaluation.predictions import LinePredictor
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.traces import LogsLike, Traces, TracesLike
    from rewritelog.rewriting.options import FittedLike

LogsArgument: TypeAlias = "As[LogsLike, LogSet]"
OptionalTraces: TypeAlias = "As[TracesLike | None, LogSet | Traces | None]"
TracesArgument: TypeAlias = "As[TracesLike, LogSet | Traces]"
"""Logs or traces in any format."""
ManyTraces: TypeAlias = "As[TracesLike | Iterable[TracesLike], tuple[LogSet | Traces, ...]]"
UncheckedArgument: TypeAlias = "As[TracesLike, Path | Traces]"
"""Logs or traces that may be too damaged to open."""
FittedArgument: TypeAlias = "As[FittedLike, LinePredictor]"

OUT_HELP = "The folder to write: a new or empty one, or any with --force."
LOGS_HELP = "The log folder, or its bgTrace file."
TRACES_HELP = "The log folder, or Chakra traces: a folder, a file, or FOLDER/NAME."


@declared
class Logs:
    """The log set that a command reads."""

    logs: LogsArgument = argument(LOGS_HELP, metavar="LOGS", kw_only=False)


@declared
class AnyTraces:
    """The logs or traces that a command reads, in any format."""

    logs: TracesArgument = argument(TRACES_HELP, metavar="LOGS", kw_only=False)


@declared
class Out:
    """The folder that a command writes."""

    out: OutputPath = argument(OUT_HELP, metavar="OUT", kw_only=False)


@declared
class Fitted:
    """A fitted model."""

    model: FittedArgument = argument(
        "A model file of `rewritelog fit -o`.", metavar="MODEL", kw_only=False
    )


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

REPORT = frozenset({"as_json", "report_file", "quiet"})
WARNINGS = frozenset({"fail_on_warning"})
PAGE = frozenset({"html_file"})
DETAILS = frozenset({"verbose"})
ENGINE = frozenset({"engine"})
ALWAYS = frozenset({"debug", "version", "help", "help_all"})
"""Fields of `ShellOptions`: those that a command can take, and those that all do."""


@declared
class ShellOptions:
    """Options of the command line alone."""

    as_json: bool = option(
        "Print the report as JSON.", default=False, names=("--json",), group=OUTPUT
    )
    verbose: bool = option(
        "Print the whole report.", default=False, names=("--verbose", "-v"), group=OUTPUT
    )
    report_file: OptionalOutput = option(
        "Also write the report to this file, as JSON.",
        default=None, names=("--report",), metavar="FILE", group=OUTPUT, rare=True,
    )  # fmt: skip
    html_file: OptionalOutput = option(
        "Write a page of plots and tables for a browser.",
        default=None, names=("--html",), metavar="PAGE", group=OUTPUT,
    )  # fmt: skip
    quiet: bool = option(
        "Print only warnings and errors.",
        default=False, names=("--quiet", "-q"), group=OUTPUT,
    )  # fmt: skip
    fail_on_warning: bool = option(
        "Exit with code 1 if there were warnings, after the work is done.",
        default=False, group=OUTPUT, rare=True,
    )  # fmt: skip
    engine: EngineName = option(
        "Threads of this machine, or the ranks of mpiexec.",
        default="threads", group=RUNNING, rare=True,
    )  # fmt: skip
    debug: bool = option(
        "Show where in the code an error comes from.", default=False, group=OTHER, rare=True
    )
    version: bool = option("Print the version and exit.", default=False, group=OTHER, rare=True)
    help: bool = option(
        "Show the usual options and exit.",
        default=False, names=("--help", "-h"), group=OTHER, rare=True,
    )  # fmt: skip
    help_all: bool = option("Show all options and exit.", default=False, group=OTHER, rare=True)


@dataclass(frozen=True)
class ValueKind:
    """Values that Python gives in several forms, and the command line as texts."""

    shown: str
    """What a signature says."""
    converter: str = ""
    """What makes jobs' values of all forms; it gets the name for errors, too."""
    read: Callable[[str], Any] = Path
    """What the command line makes of a text."""
    several: bool = False
    """Whether the command line takes several."""

    def __call__(self, text: str) -> Any:
        """Return the value of a text of a command line."""
        return self.read(text)

    def __or__(self, other: object) -> ValueKind:
        """Return the same for values that may be None."""
        return self

    def converted(self, value: Any, name: str) -> Any:
        """Return a value as jobs take it; None stays so, or is no file of several."""
        if not self.converter or (self.shown.endswith("None") and not is_given(value)):
            return () if value is None and self.several else value
        module, _, function = self.converter.partition(":")
        return getattr(import_module(f"rewritelog.{module}"), function)(value, name)


TIMINGS = "timings.samples:to_files_or_samples"
KINDS = {
    "CategoriesByName": ValueKind("Mapping[str, str] | None"),
    "DilationsByName": ValueKind("Mapping[str, float] | None"),
    "FilesOrCall": ValueKind("PathsLike", several=True),
    "FittedArgument": ValueKind("FittedModel | PathLike", "api.fitted:to_predictor"),
    "InputPaths": ValueKind("PathsLike", "paths:to_inputs", several=True),
    "Listener": ValueKind("Listener"),
    "LogsArgument": ValueKind("LogsLike", "api.logs:to_logs"),
    "MachineLike": ValueKind("PathLike", read=str),
    "ManyTraces": ValueKind(
        "TracesLike | Iterable[TracesLike]", "api.logs:to_many_traces", several=True
    ),
    "ModelArgument": ValueKind("str | Model[Any]", read=str),
    "ModelNames": ValueKind("str | Sequence[str] | None"),
    "ModelOptions": ValueKind("Mapping[str, object] | None"),
    "Moment": ValueKind("float | str | None", read=str),
    "NetworkLike": ValueKind("Network | str", read=str),
    "OptionalFitted": ValueKind("FittedModel | PathLike | None"),
    "OptionalFolder": ValueKind("LogsLike | None", "api.logs:to_folder"),
    "OptionalInput": ValueKind("PathLike | None", "paths:to_input"),
    "OptionalInputs": ValueKind("PathsLike | None", "paths:to_inputs", several=True),
    "OptionalModel": ValueKind("str | Model[Any] | FittedModel | None", read=str),
    "OptionalOutput": ValueKind("PathLike | None", "paths:to_output"),
    "OptionalTraces": ValueKind("TracesLike | None", "api.logs:to_traces"),
    "OptionalTimings": ValueKind("TimingsLike | None", TIMINGS, several=True),
    "OutputPath": ValueKind("PathLike", "paths:to_output"),
    "Pes": ValueKind("str | Sequence[int] | None", read=str),
    "Quantity": ValueKind("float | str", read=str),
    "TimingsArgument": ValueKind("TimingsLike", TIMINGS, several=True),
    "TracesArgument": ValueKind("TracesLike", "api.logs:to_traces"),
    "Types": ValueKind("str | Sequence[str] | None", read=str),
    "UncheckedArgument": ValueKind("TracesLike", "api.logs:to_unchecked"),
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
    prints_lines: ClassVar[bool] = False
    """Whether `pieces` of the result are printed as they come, without progress on a terminal."""

    def run(self) -> Any:
        """Do the job of a command that is `opened`."""
        raise NotImplementedError

    @property
    def opened(self) -> Self:
        """The same with values as jobs take them: logs opened, paths checked.

        Raise a `RewriteLogError` for a value of a wrong type or an input that does not exist.
        """
        converted = {
            name: kind.converted(getattr(self, name), name)
            for name, kind in kinds_of(type(self))
            if isinstance(kind, ValueKind)
        }
        return dataclasses.replace(self, **converted)  # type: ignore[type-var]

    def done(self) -> Any:
        """Open what is given, and do the job."""
        return self.opened.run()

    def check_words(self) -> None:
        """Raise `UsageError` for what only Python may leave out."""

    def returned(self, result: Any) -> Result:
        """Return what the Python function returns."""
        value: Result = result
        return value

    def report(self, result: Any) -> Report | str:
        """Return what the command line prints, unless `prints_lines`."""
        report: Report | str = result
        return report

    def page(self, result: Any) -> str:
        """Return the page of `--html`."""
        from rewritelog.api.pages import page_of

        return page_of(result)

    def exit_code(self, result: Any) -> int:  # noqa: ARG002 - most commands have one code
        """Return the exit code of the command line."""
        return 0


def function(command: Callable[Parameters, Command[Result]]) -> Callable[Parameters, Result]:
    """Return the Python function of a command, with its signature."""
    cls: Any = command
    name = snake_case(cls.__name__.removesuffix("Command"))
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
        for field, kind in kinds_of(cls):
            value, allowed = getattr(made, field), choices(kind)
            if allowed and value is not None and value not in allowed:
                named = " or ".join(map(repr, allowed))
                raise UsageError(f"{field} must be {named}, not {value!r}")
        return made.returned(made.done())

    del call.__wrapped__
    returned = cls.returned.__annotations__["return"]
    if returned == "Result":
        returned = cls.run.__annotations__["return"]
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


def kinds_of(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the declared fields of a class with the types that the command line reads."""
    kinds = get_type_hints(cls, localns=KINDS)
    for member, _ in declarations(cls):
        yield member.name, kinds[member.name]
