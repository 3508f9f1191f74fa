"""The base of all commands: the options declared, the job, and what is printed of its result."""

from __future__ import annotations

import inspect
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import attrgetter
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
)

from rewritelog.errors import DamagedLogError, UsageError, UsageTypeError, spelled
from rewritelog.options import (
    OTHER,
    OUTPUT,
    RUNNING,
    As,
    Declaration,
    Kind,
    OptionalOutput,
    Options,
    OutputFolder,
    argument,
    called,
    choices,
    declarations,
    is_given,
    option,
    settle,
)
from rewritelog.paths import is_stdout
from rewritelog.running import EngineName
from rewritelog.text import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rewritelog.api.fitted import FittedModel
    from rewritelog.formats.bgtrace.logset import LogSet
    from rewritelog.formats.opening import LogsLike, TracesLike
    from rewritelog.formats.traces import AnyTraces, Traces
    from rewritelog.models.fitted import Fitted
    from rewritelog.options import PathLike
    from rewritelog.text import Readable

_LOGS = Kind("formats.opening:to_logs", error="DamagedLogError")
_TRACES = Kind("formats.opening:to_traces", error="DamagedLogError")
LogsArgument: TypeAlias = Annotated[As["LogsLike", "LogSet"], _LOGS]
OptionalLogs: TypeAlias = Annotated[As["LogsLike | None", "LogSet | None"], _LOGS]
TracesArgument: TypeAlias = Annotated[As["TracesLike", "AnyTraces"], _TRACES]
"""Logs or traces in any format."""
OptionalTraces: TypeAlias = Annotated[As["TracesLike | None", "AnyTraces | None"], _TRACES]
ManyTraces: TypeAlias = Annotated[
    As["TracesLike | Iterable[TracesLike]", "tuple[AnyTraces, ...]"],
    Kind("formats.opening:to_many_traces", several=True, error="DamagedLogError"),
]
UncheckedArgument: TypeAlias = Annotated[
    As["TracesLike", "Path | Traces"], Kind("formats.opening:to_unchecked")
]
"""Logs or traces that may be too damaged to open."""
FittedArgument: TypeAlias = Annotated[
    As["FittedModel | PathLike", "Fitted"], Kind("timings.read:to_fitted", error="ModelError")
]

OUT_HELP = "The folder to write: a new or empty one; force replaces any."
LOGS_HELP = "The log folder, or its bgTrace file."
TRACES_HELP = "The log folder, or Chakra traces: a folder, a file, or FOLDER/NAME."


class Logs(Options):
    """The log set that a command reads."""

    logs: LogsArgument = argument(LOGS_HELP, metavar="LOGS", kw_only=False, reported=False)


class LogsOrTraces(Options):
    """The logs or traces that a command reads, in any format."""

    logs: TracesArgument = argument(TRACES_HELP, metavar="LOGS", kw_only=False)


class Out(Options):
    """The folder that a command writes."""

    out: OutputFolder = argument(OUT_HELP, metavar="OUT", kw_only=False)


class ModelFile(Options):
    """A fitted model."""

    model: FittedArgument = argument(
        "A model file of `rewritelog fit -o`.", metavar="MODEL", kw_only=False
    )


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

REPORT = frozenset({"as_json", "report_file", "quiet", "fail_on_warning"})
ALWAYS = frozenset({"debug", "version", "help", "help_all"})
"""Fields of `Command`: those of commands that print a report, and those of all commands."""


class Command(Options, Generic[Result], group=OUTPUT):
    """A command: its fields are its arguments and options, and `job` takes the command.

    Fields with `init=False`, as those below, are options of the command line alone, which
    `of_shell` sets.
    """

    job: ClassVar[str]
    """The function that does the job, given the command, as `module:function`."""
    shell: ClassVar[frozenset[str]] = REPORT
    """The options below that its command line takes, besides `ALWAYS`."""
    rare: ClassVar[frozenset[str]] = frozenset()
    """The fields that only `--help-all` shows, besides those that all commands show there."""
    failure: ClassVar[int] = 1
    """The exit code if there is no result."""
    prints_lines: ClassVar[bool] = False
    """Whether `pieces` of the result are printed as they come, without progress on a terminal."""
    exits: ClassVar[str] = ""
    """What the exit code is, for the help, if it tells more than whether there is a result."""
    succeeds: ClassVar[str] = ""
    """The attribute of a result that has to be true for exit code 0; empty for none."""

    as_json: bool = option("Print the report as JSON.", default=False, flag="--json", init=False)
    verbose: bool = option("Print the whole report.", default=False, init=False)
    report_file: OptionalOutput = option(
        "Also write the report to this file, as JSON.",
        default=None, flag="--report", rare=True, init=False,
    )  # fmt: skip
    html: OptionalOutput = option(
        "Write a page of plots and tables for a browser.",
        default=None, metavar="PAGE", init=False,
    )  # fmt: skip
    quiet: bool = option("Print no report, and show no progress.", default=False, init=False)
    fail_on_warning: bool = option(
        "Exit with code 1 if there were warnings, after the work is done.",
        default=False, rare=True, init=False,
    )  # fmt: skip
    engine: EngineName = option(
        "Threads of this machine, or the ranks of mpiexec.",
        default="threads", group=RUNNING, rare=True, init=False,
    )  # fmt: skip
    debug: bool = option(
        "Show where in the code an error comes from.",
        default=False, group=OTHER, rare=True, init=False,
    )  # fmt: skip
    version: bool = option(
        "Print the version and exit.", default=False, group=OTHER, rare=True, init=False
    )
    help: bool = option(
        "Show the usual options and exit.", default=False, group=OTHER, rare=True, init=False
    )
    help_all: bool = option(
        "Show all options and exit.", default=False, group=OTHER, rare=True, init=False
    )

    @classmethod
    def of_shell(cls, values: Mapping[str, Any]) -> Command[Result]:
        """Return the command of a command line, given the values of its fields."""
        command = object.__new__(cls)
        fields = inspect.signature(cls).parameters
        settle(command, **{name: value for name, value in values.items() if name not in fields})
        command.__init__(**{name: value for name, value in values.items() if name in fields})  # type: ignore[misc]
        return command

    def __post_init__(self) -> None:
        """Open what is given; raise `OutputError` before any work if an output cannot be written.

        See `check_outputs` and `check_new_folder`.
        """
        fields = [
            (declared, declared.kind, getattr(self, declared.field))
            for declared in declarations(type(self))
            if isinstance(declared.kind, Kind)
        ]
        for declared, kind, unopened in fields:  # logs first: a format has no use for some files
            if kind.opener.startswith("formats.opening:"):
                opened = declared.opened(unopened)
                settle(self, **{declared.field: opened})
                for logs in _items(opened):
                    self._check_format(logs)
        super().__post_init__()
        paths: dict[str, list[Path]] = defaultdict(list)
        for declared, kind, unopened in fields:
            opened = getattr(self, declared.field)
            for value in (opened, unopened) if kind.use == "input" else (opened,):
                paths["input" if kind.use == "text" else kind.use] += _paths_in(value, kind)
        paths["input"] += self.also_read()
        if not (paths["file"] or paths["folder"]):
            return
        from rewritelog.output.files import check_outputs, check_page
        from rewritelog.output.folders import check_new_folder

        for folder in paths["folder"]:
            check_new_folder(folder, paths["input"], force=getattr(self, "force", False))
        check_outputs(paths["file"], paths["input"], paths["folder"], paths["checked"])
        if self.html is not None:
            from rewritelog.viewing.extra import require

            require("bokeh", spelled("html"))
            check_page(self.html)

    @property
    def writes_to_stdout(self) -> bool:
        """Whether a file that it writes, apart from the report, is standard output."""
        return any(map(is_stdout, self._outputs("file", "checked")))

    @property
    def written(self) -> list[Path]:
        """The files and folders that it writes, apart from reports and standard output."""
        outputs = self._outputs("folder", "file", "checked")
        return [path for path in outputs if not is_stdout(path) and path != self.html]

    def _outputs(self, *uses: str) -> Iterator[Path]:
        """Yield the paths of outputs, apart from the report."""
        for declared in declarations(type(self)):
            if isinstance(declared.kind, Kind) and declared.kind.use in uses:
                path = getattr(self, declared.field)
                if path is not None and declared.field != "report_file":
                    yield path

    def also_read(self) -> Iterator[Path]:
        """Yield files to read that options name within their values."""
        return iter(())

    def _check_format(self, logs: Any) -> None:
        """Raise `UsageError` for an option that the format of logs or traces has no use for."""
        from rewritelog.formats.traces import Traces

        is_traces = isinstance(logs, Traces)
        for declared in self.own() if hasattr(logs, "title") else ():
            if declared.for_traces in (None, is_traces):
                continue
            value, names_file = getattr(self, declared.field), isinstance(declared.kind, Kind)
            if not names_file:
                value = declared.opened(value)
            if not is_given(value) or (not names_file and value in (False, declared.default)):
                continue
            has_choice = declared.is_flag or choices(declared.kind)
            name = spelled(declared.field, value if has_choice else None)
            others = "traces of events" if declared.for_traces else "bgTrace logs"
            raise UsageError(f"{name} is for {others}: {logs.path} has {logs.title}")

    @classmethod
    def own(cls) -> tuple[Declaration, ...]:
        """Return the declarations of this command's own fields."""
        return tuple(option for option in declarations(cls) if option not in SHELL_OPTIONS)

    def run(self) -> Any:
        """Do the job, with as many workers as the command is given; return its result."""
        try:
            with self._workers():
                return called(self.job, self)
        except DamagedLogError as error:
            raise called("checking.heads:with_likely_version", error) from error

    def returned(self, result: Any) -> Result:
        """Return what the Python function returns for the result of the job."""
        value: Result = result
        return value

    def report(self, result: Any) -> Readable | str:
        """Return what the command line prints, unless `prints_lines`."""
        report: Readable | str = result
        return report

    def page(self, result: Any) -> str:
        """Return the page of `--html`."""
        from rewritelog.viewing.page import page_of

        with self._workers():
            return page_of(result)

    def _workers(self) -> AbstractContextManager[None]:
        from rewritelog.running.engines import limited_to

        return limited_to(getattr(self, "jobs", 0))

    def exit_code(self, result: Any) -> int:
        """Return the exit code of the command line."""
        return int(bool(self.succeeds) and not attrgetter(self.succeeds)(result))


def _paths_in(value: Any, kind: Kind) -> Iterator[Path]:
    """Yield the paths in a value, as it is given or opened, and those that it was read from."""
    for item in _items(value):
        if isinstance(item, os.PathLike) or (isinstance(item, str) and kind.use != "text"):
            yield Path(item)
        elif isinstance(item, str):
            if ".py:" in item and (file := called("models.outside:file_of", item)):
                yield Path(file)
        elif isinstance(inputs := getattr(item, "inputs", ()), tuple):  # not a column of a table
            yield from inputs


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


SHELL_OPTIONS = declarations(Command)
"""The options of the command line alone."""


_RAISED = {
    "UsageError": "an argument is invalid",
    "MissingFileError": "an input does not exist",
    "DamagedLogError": "logs are damaged",
    "TimingError": "timing lines or params cannot be used",
    "ModelError": "a model, or a file for one, cannot be used",
    "OutputError": "an output cannot be written",
}
"""When the function of a command raises an error, in the order of the work."""


def _raised(options: Iterable[Declaration]) -> str:
    """Return the sentence on the errors that a function with these options raises."""
    kinds = [option.kind for option in options if isinstance(option.kind, Kind)]
    errors = {"UsageError"}.union(*(kind.errors for kind in kinds))
    cases = [f"`{error}` if {when}" for error, when in _RAISED.items() if error in errors]
    listed = ", and ".join(filter(None, (", ".join(cases[:-1]), cases[-1])))
    return wrapped(f"Raise {listed}.", hanging=0)


def function(
    command: Callable[Parameters, Command[Result]], name: str = ""
) -> Callable[Parameters, Result]:
    """Return the Python function of a command, with its signature and the command's name."""
    cls: Any = command
    name = name or snake_case(cls.__name__.removesuffix("Command"))
    signature = _signature(cls)

    def call(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            signature.bind(*args, **options)
        except TypeError as error:
            takes = ", ".join(
                f"{each.name}{'=…' * (each.kind is each.KEYWORD_ONLY)}"
                for each in signature.parameters.values()
            )
            if "model_options" in signature.parameters:
                takes += '; options of a model are given as in model_options={"loss": "squares"}'
            raise UsageTypeError(f"{name}: {error}; it takes {takes}") from error
        instance = command(*args, **options)
        result = instance.run()
        if instance.html is not None:
            from rewritelog.output.files import write_text_file

            write_text_file(instance.html, instance.page(result))
        return instance.returned(result)

    call.__module__, call.__name__, call.__qualname__ = cls.__module__, name, name
    call.__annotations__ = {}  # the signature has texts: most types are not imported yet
    call.__doc__ = _docstring(cls, signature)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _signature(command: type[Command[Any]]) -> inspect.Signature:
    """Return the signature of a command's function, with the types that its declarations show."""
    shown = {declared.field: declared.shown for declared in command.own()}
    parameters = [
        parameter.replace(annotation=shown[parameter.name])
        for parameter in inspect.signature(command).parameters.values()
    ]
    bases: Any = command.__orig_bases__  # type: ignore[attr-defined]
    (returned,) = get_args(next(base for base in bases if get_origin(base) is Command))
    name = getattr(returned, "__forward_arg__", None) or getattr(returned, "__name__", returned)
    return inspect.Signature(parameters, return_annotation=str(name))


def _docstring(command: type[Command[Any]], signature: inspect.Signature) -> str:
    """Return a command's docstring, with its function's errors and parameters before an example."""
    text, example, after = inspect.cleandoc(command.__doc__ or "").partition("\n>>>")
    helps = {declared.field: declared.help for declared in command.own()}
    listed = "".join(f"- `{name}`: {helps[name]}\n" for name in signature.parameters)
    described = f"{text.rstrip()}\n\n{_raised(command.own())}"
    return f"{described}\n\nParameters:\n\n{listed}{example}{after}".rstrip() + "\n"


def snake_case(name: str) -> str:
    """Return the name of the function of a class: `lost_cycles` of `LostCycles`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
