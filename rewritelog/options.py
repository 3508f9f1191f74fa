"""Options declared once: type, default, unit, help and group, for Python and the command line.

A command is a frozen dataclass, by inheriting `Options`, whose fields are made by `option` or
`argument`; jobs take it, or a class with a part of its options. The command line, signatures,
completion, `--help`, the reference pages, and the options in reports and provenance files are
derived from these fields. Values are checked, and converted to what jobs take, when an object is
made. Modules with declarations are imported before all others, and import nothing heavy.
"""

from __future__ import annotations

import inspect
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from numbers import Number
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
)

from rewritelog import units
from rewritelog.errors import Spelling, UsageError, UsageTypeError, spelled

Value = TypeVar("Value")
Taken = TypeVar("Taken", contravariant=True)  # noqa: PLC0105 - as in the text of `As`
Held = TypeVar("Held", covariant=True)  # noqa: PLC0105 - as above

METADATA = "option"
SHORT = {"help": "-h", "jobs": "-j", "output": "-o", "quiet": "-q", "verbose": "-v"}
"""The one-letter options, by field."""
METAVARS = {bool: "true|false", float: "NUMBER", int: "N", str: "TEXT"}

SELECTION, MODEL, OUTPUT = "Selection", "Durations", "Output"
RUNNING, ADVANCED, OTHER = "Running", "Advanced", "Other options"
"""Headings of groups of options in the help."""


class As(Generic[Taken, Held]):
    """The type of a field that is given as `Taken`, and read as `Held`: a `Kind` opens it."""

    if TYPE_CHECKING:

        def __get__(self, options: object, owner: type) -> Held: ...

        def __set__(self, options: object, value: Taken) -> None: ...


@dataclass(frozen=True)
class Kind:
    """The annotation of a type whose values can be given in several forms."""

    opener: str = ""
    """`module:function` that turns all forms into what jobs take; it gets the name for errors."""
    several: bool = False
    """Whether the command line takes several."""
    nothing: Any = None
    """What None stands for, if it is the default."""
    shown: str = ""
    """The type as a signature shows it, if not the annotated one."""
    metavar: str = "FILE"
    """What stands for a value in the help."""
    use: Literal["input", "file", "checked", "folder", "text"] = "input"
    """Whether texts name inputs, a file or folder to write, a file that the job checks, or none."""
    error: str = ""
    """The error of contents that cannot be used, if it has a class of its own."""

    @property
    def errors(self) -> frozenset[str]:
        """The errors that values may raise, besides `UsageError`."""
        of_use = {"input": "MissingFileError", "text": ""}.get(self.use, "OutputError")
        return frozenset({of_use, self.error} - {""})


PathLike: TypeAlias = str | os.PathLike[str]
PathsLike: TypeAlias = PathLike | Iterable[PathLike]
NumberOrText: TypeAlias = As["float | str | None", "float | None"]
"""A number in SI units, or a text with a unit."""
GivenPath: TypeAlias = As["PathLike", "Path"]
PathOrNone: TypeAlias = As["PathLike | None", "Path | None"]
Moment: TypeAlias = Annotated[NumberOrText, Kind("units:moment", use="text", metavar="TIME")]
"""A time in the run."""
InputPaths: TypeAlias = Annotated[
    As["PathsLike", "tuple[Path, ...]"],
    Kind("paths:to_inputs", several=True, error="TimingError"),
]
"""Files of timing or param lines."""
OutputPath: TypeAlias = Annotated[GivenPath, Kind("paths:to_output", use="checked")]
OutputFile: TypeAlias = Annotated[GivenPath, Kind("paths:to_output", use="file")]
OutputFolder: TypeAlias = Annotated[GivenPath, Kind("paths:to_folder", use="folder")]
OptionalInput: TypeAlias = Annotated[PathOrNone, Kind("paths:to_input")]
ModelInput: TypeAlias = Annotated[PathOrNone, Kind("paths:to_input", error="ModelError")]
"""A file of formulas, coefficients or names."""
OptionalOutput: TypeAlias = Annotated[PathOrNone, Kind("paths:to_output", use="file")]
OptionalFolder: TypeAlias = Annotated[PathOrNone, Kind("paths:to_folder", use="folder")]
AppendedFile: TypeAlias = Annotated[PathOrNone, Kind("paths:to_output", use="checked")]
Pes: TypeAlias = Annotated[
    As["str | Sequence[int] | None", "str | tuple[int, ...] | None"],
    Kind("units:pes", use="text", metavar="RANGES"),
]
Types: TypeAlias = Annotated[
    As["str | Sequence[str] | None", "tuple[str, ...] | None"],
    Kind("options:listed", several=True, use="text", metavar="TYPES"),
]


@dataclass(frozen=True)
class Declaration:
    """How a field of a command is spelled, read and described."""

    help: str
    positional: bool = False
    """Whether it is an argument on the command line, and not an option."""
    flag: str = ""
    """How the command line spells an option; by default as the field, with hyphens."""
    metavar: str = ""
    """What stands for the value in the help, with its unit; by default what its kind says."""
    group: str = ""
    """The heading that it is listed under."""
    rare: bool = False
    """Whether it is in `--help-all` only."""
    complete: str = ""
    """What completes its values, by the names in `commands.completion`."""
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    """The bounds of a number: values from `least` or above `above`, to `most` or below `below`."""
    needed: bool | str = False
    """Whether the command line needs it, despite a default; or the flag that replaces it."""
    shell: bool = True
    """Whether the command line takes it."""
    reported: bool = True
    """Whether JSON reports list it among the options: not if results do not depend on it."""
    decides: bool = False
    """Whether the provenance of what is written lists it."""
    for_traces: bool | None = None
    """Whether it is for traces of events alone, or for bgTrace logs alone; None: for both."""

    field: str = ""
    """The name of the field; this and what follows is filled in by `declarations`."""
    kind: Any = None
    """The type of the value without None, or its `Kind` if it has one."""
    optional: bool = False
    """Whether it may be None."""
    default: Any = None
    shown: str = ""
    """Its type as a signature shows it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its spellings on the command line; empty for an argument."""
        short = (SHORT[self.field],) if self.field in SHORT else ()
        return () if self.positional else (self.flag, *short)

    @property
    def name(self) -> str:
        """Its name in messages of the command line."""
        return self.metavar if self.positional else self.flag

    @property
    def label(self) -> str:
        """Its name in errors about its value."""
        return self.name if self.shell and Spelling.as_flags else self.field

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.kind is bool

    @property
    def several(self) -> bool:
        """Whether it can be given several times."""
        return isinstance(self.kind, Kind) and self.kind.several

    @property
    def required(self) -> bool:
        """Whether the command line needs it."""
        return self.default is MISSING or self.needed is True

    @property
    def expected(self) -> str:
        """What its values have to be, in a few words."""
        if allowed := choices(self.kind):
            *others, last = map(repr, allowed)
            return f"{', '.join(others)} or {last}"
        bounds = " and ".join(text.format(f"{bound:,}") for _, text, bound in self._bounds)
        if self.least is not None and self.most is not None:
            bounds = f"from {self.least:,} to {self.most:,}"
        return f"{_EXPECTED[self.kind]} {bounds}".rstrip()

    @property
    def _bounds(self) -> list[tuple[Callable[[Any, Any], bool], str, float]]:
        bounds = ((*kind, getattr(self, name)) for name, kind in _BOUNDS.items())
        return [bound for bound in bounds if bound[-1] is not None]

    def converted(self, value: object) -> Any:
        """Return a flag, number, text or choice; raise `ValueError` if it is not as declared."""
        converted: Any = convert(value, self.kind)
        infinite = isinstance(converted, float) and math.isinf(converted)
        if infinite or not all(holds(converted, bound) for holds, _, bound in self._bounds):
            raise ValueError(f"{converted} is not {self.expected}")
        return converted

    def checked(self, value: Any) -> Any:
        """Return a value, converted if it has no `Kind`; raise `UsageError` for an invalid one."""
        if self.kind not in _EXPECTED and not choices(self.kind):
            return value
        try:
            return self.converted(value)
        except ValueError as error:
            text = units.value_text(value)
            raise UsageError(f"{self.label} must be {self.expected}, not {text}") from error

    def opened(self, value: Any) -> Any:
        """Return a value as jobs take it; raise `UsageError` for one that is not as declared."""
        kind = self.kind
        if value is None and self.default is None:
            return kind.nothing if isinstance(kind, Kind) else None
        if value is None and self.default is MISSING:
            raise UsageTypeError(f"{self.label} must be given, and not None")
        if not (isinstance(kind, Kind) and kind.opener):
            return self.checked(value)
        return called(kind.opener, value, self.label)


def called(function: str, *arguments: Any) -> Any:
    """Call `module:function` with arguments, and return its result; the module is imported then."""
    module, _, name = function.partition(":")
    return getattr(import_module(f"rewritelog.{module}"), name)(*arguments)


def option(
    help: str,  # noqa: A002 - as everywhere
    *,
    default: Any = MISSING,
    kw_only: bool = True,
    init: bool = True,
    **more: Any,
) -> Any:
    """Declare a field that is an option, required without a default.

    `more` are fields of `Declaration`.
    """
    declared = Declaration(help, **more)
    return field(default=default, kw_only=kw_only, init=init, metadata={METADATA: declared})


def argument(help: str, **more: Any) -> Any:  # noqa: A002 - as everywhere
    """Declare a field that is an argument of a command line, as `option` does."""
    return option(help, positional=True, **more)


@dataclass_transform(kw_only_default=True, field_specifiers=(option, argument))
class Options:
    """A base that makes its subclasses frozen dataclasses; fields of the last base come first.

    `group` is the heading in the help for those fields of a class that declare none themselves.
    """

    heading: ClassVar[str] = ""

    def __init_subclass__(cls, *, group: str = "") -> None:
        super().__init_subclass__()
        cls.heading = group
        dataclass(frozen=True, kw_only=True, repr=False, eq=False, match_args=False)(cls)

    def __post_init__(self) -> None:
        """Check values and open them; subclasses `settle` those that depend on others."""
        opened = {
            declared.field: declared.opened(getattr(self, declared.field))
            for declared in declarations(type(self))
        }
        settle(self, **opened)


_DECLARED: dict[type[Any], dict[str, Declaration]] = {}
"""A cache of the declarations in each class, which its subclasses share."""


def declarations(cls: type[Any]) -> tuple[Declaration, ...]:
    """Return what the fields of a class of options declare."""
    declared: dict[str, Declaration] = {}
    for base in reversed(cls.__mro__):
        if base not in _DECLARED:
            _DECLARED[base] = _declared_in(base)
        declared |= _DECLARED[base]
    return tuple(declared.values())


def _declared_in(cls: type[Any]) -> dict[str, Declaration]:
    """Return the complete declarations of the fields of a class itself, by name."""
    types = inspect.get_annotations(cls, eval_str=True)
    complete = {}
    for member in fields(cls) if is_dataclass(cls) else ():
        if member.name not in types:
            continue
        declared = member.metadata.get(METADATA) or Declaration(member.metadata.get("help", ""))
        kind = _kind_of(types[member.name])
        if declared.flag:
            Spelling.flags[member.name] = declared.flag
        of_kind = kind.metavar if isinstance(kind, Kind) else METAVARS.get(kind, "")
        complete[member.name] = replace(
            declared,
            flag=declared.flag or f"--{member.name.replace('_', '-')}",
            metavar=declared.metavar or "|".join(map(str, choices(kind))) or of_kind,
            group=declared.group or getattr(cls, "heading", ""),
            field=member.name,
            kind=kind,
            optional=type(None) in get_args(types[member.name]),
            default=member.default,
            shown=_shown(types[member.name]) or str(member.type),
        )
    return complete


def _kind_of(annotation: Any) -> Any:
    """Return the `Kind` of an annotated type, or the type without None."""
    members = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return members[1]
    others = [member for member in members if member is not type(None)]
    return _kind_of(others[0]) if len(others) == 1 < len(members) else annotation


def _shown(annotation: Any) -> str:
    """Return an annotated type as a signature shows it; empty for other types."""
    if get_origin(annotation) is not Annotated:
        return ""
    annotated, kind = get_args(annotation)
    taken = next(iter(get_args(annotated)), annotated)
    return kind.shown or str(taken.__forward_arg__)


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the values of a Literal; of other types none."""
    return get_args(kind) if get_origin(kind) is Literal else ()


def settle(options: object, **values: object) -> None:
    """Set fields while the object is made, in `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(options, name, value)


def is_given(value: object) -> bool:
    """Return whether an option has a value, unlike None and empty collections of pairs."""
    return value is not None and not (isinstance(value, tuple | dict) and not value)


def reported(
    options: object, declared: Iterable[Declaration], listed: str = "reported"
) -> dict[str, Any]:
    """Return the options whose declarations have `listed`, by name, as JSON types.

    "reported" ones are for JSON reports, "decides" ones for the provenance of what is written.
    """
    chosen = (option.field for option in declared if getattr(option, listed))
    return {name: json_value(getattr(options, name)) for name in chosen}


def json_value(value: object) -> Any:
    """Return the value of an option as JSON types; a path or model is a text."""
    if isinstance(value, Mapping):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    return value if isinstance(value, str | int | float | None) else str(value)


TRUTHS = {"true": True, "yes": True, "on": True, "1": True}
TRUTHS |= {"false": False, "no": False, "off": False, "0": False}
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "least": (operator.ge, "of {} or more"),
    "above": (operator.gt, "above {}"),
    "most": (operator.le, "at most {}"),
    "below": (operator.lt, "below {}"),
}
_EXPECTED = {bool: "True or False", int: "an integer", float: "a finite number", str: "a text"}


def convert(value: Any, kind: Any) -> object:
    """Return the value converted to a declared type; raise `ValueError` if it is invalid.

    NaN is invalid, and an integral float is an int. Decimals and fractions are numbers too.
    """
    if getattr(value, "shape", None) == ():  # a scalar of numpy
        value = value.item()
    if allowed := choices(kind):
        if any(isinstance(value, type(each)) and value == each for each in allowed):
            return value
        raise ValueError(f"{value!r} is not one of {', '.join(map(str, allowed))}")
    if isinstance(value, bool | str) and kind is type(value):
        return value
    if kind is bool and isinstance(value, str) and value.strip().lower() in TRUTHS:
        return TRUTHS[value.strip().lower()]
    if kind in (int, float) and not isinstance(value, bool) and isinstance(value, Number | str):
        with suppress(TypeError, ValueError, OverflowError):
            number = kind(units.with_plain_digits(value))
            is_rounded = kind is float or isinstance(value, str)
            if number == (number if is_rounded else value):  # false for NaN
                return number
    raise ValueError(f"{value!r} is not of type {kind.__name__}")


def flag(value: object, name: str) -> bool:
    """Return a flag; raise `UsageError` for anything but a boolean or a text for one."""
    is_set: bool = Declaration("", field=name, kind=bool, shell=False).checked(value)
    return is_set


def pairs(values: Any, name: str) -> tuple[tuple[str, Any], ...]:
    """Return the items of a mapping, pairs, or `NAME=VALUE` texts; raise `UsageError` otherwise.

    A Series of pandas has items as a mapping has.
    """
    items = units.items_of(values.items() if hasattr(values, "items") else values)
    if items is None or isinstance(values, str):
        raise UsageTypeError(f"{name} takes names with values, not {units.value_text(values)}")
    named_values = []
    for item in items:
        key, value = item if isinstance(item, tuple) and len(item) == 2 else (None, None)
        if isinstance(item, str):
            key, _, value = item.rpartition("=")
        if not (key and isinstance(key, str)):
            raise UsageError(f"{name} takes NAME=VALUE, not {item!r}")
        named_values.append((key, value))
    return tuple(named_values)


def settings(values: Any, name: str) -> dict[str, Any]:
    """Return values by name, given as for `pairs`; raise `UsageError` if a name comes twice."""
    items = pairs(values, name)
    names = [key for key, _ in items]
    if duplicates := [key for key in names if names.count(key) > 1]:
        raise UsageError(f"{name} {duplicates[0]} is given more than once")
    return dict(items)


def factors(values: Any, name: str) -> tuple[tuple[str, float], ...]:
    """Return factors by name, given as for `pairs`; raise `UsageError` unless they are above 0."""
    factors_read = []
    for key, value in pairs(values, name):
        factor = units.number(value, f"{name} {key}")
        check_factor(f"{name} {key}", factor)
        factors_read.append((key, factor))
    return tuple(factors_read)


def listed(names: Any, what: str) -> tuple[str, ...]:
    """Return names, given as texts with commas; raise `UsageTypeError` for anything else."""
    texts = [names] if isinstance(names, str) else units.items_of(names)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise UsageTypeError(f"{what} takes names, not {units.value_text(names)}")
    return tuple(name.strip() for text in texts for name in text.split(",") if name.strip())


def check_factor(what: str, value: float | None) -> None:
    """Raise `UsageError` if a factor is given that is not positive and finite."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UsageError(f"{what} must be a finite number above 0, not {value}")


class ParamsFolder(Options, group=MODEL):
    """The param records of the log set."""

    params: OptionalInput = option(
        "The folder of the param.P files [default: LOGS].",
        default=None, metavar="DIR", rare=True, for_traces=False,
    )  # fmt: skip


class Jobs(Options, group=RUNNING):
    """The number of workers."""

    jobs: int = option(
        "Threads or processes to use [default: 0, all cores].",
        default=0, metavar="N", least=0, most=10_000, reported=False,
    )  # fmt: skip


class Seed(Options, group=ADVANCED):
    """The seed of random draws."""

    seed: int = option(
        "Seed of random draws; the same seed gives the same result.",
        default=1, least=0, most=(1 << 63) - 1, rare=True,
    )  # fmt: skip


class Force(Options, group=OUTPUT):
    """Replacement of an existing output."""

    force: bool = option("Replace OUT if it exists.", default=False)


class Flush(Options, group=RUNNING):
    """Whether the output is on the disk when the command ends."""

    no_flush: bool = option(
        "Do not wait until OUT is on the disk; a power cut may then leave it damaged.",
        default=False, rare=True, reported=False,
    )  # fmt: skip


class NodeChoice(Options, group=MODEL):
    """Which nodes of traces a command takes, and their events and parameters."""

    types: Types = option(
        "Chakra traces: the types of nodes to work on, as in COMP,MEM_LOAD [default: COMP].",
        default=None, rare=True, decides=True, for_traces=True,
    )  # fmt: skip
    event_params: ModelInput = option(
        "Chakra traces: a TOML file of the events and parameters of nodes.",
        default=None, for_traces=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.types == ():
            raise UsageError(f"{spelled('types')} names no type")


class Selection(Options, group=SELECTION):
    """The part of the logs that is drawn or written."""

    pes: Pes = option("Only these PEs, as in 0-31,40 [default: all].", default=None)
    from_s: Moment = option(
        "Begin at this time, in seconds or as in 100us.", default=None, flag="--from"
    )
    until_s: Moment = option("End at this time.", default=None, flag="--until")

    def __post_init__(self) -> None:
        super().__post_init__()
        begin_s, end_s = self.interval
        if begin_s > end_s:
            begin, end = f"{spelled('from_s')} {begin_s:g} s", f"{spelled('until_s')} {end_s:g} s"
            raise UsageError(f"{begin} is not before {end}")

    @property
    def interval(self) -> tuple[float, float]:
        """Begin and end in seconds; what ends before or starts after it is left out."""
        begin_s = -math.inf if self.from_s is None else self.from_s
        return begin_s, math.inf if self.until_s is None else self.until_s
