"""Models by name: built-in and third-party ones are found through the same entry-point group."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rewritelog.errors import ModelError, UsageError
from rewritelog.models.base import Model, ModelText
from rewritelog.models.checks import errors_as_model_errors

GROUP = "rewritelog.models"
"""The entry-point group in which distributions declare models."""

TRUTHS = {"true": True, "yes": True, "on": True, "1": True}
TRUTHS |= {"false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True)
class KnownModel:
    """A name in the group, with the entries of all distributions for it."""

    name: str
    entries: tuple[EntryPoint, ...]

    @property
    def origins(self) -> tuple[str, ...]:
        """Where the name is declared, each as `distribution version (module:class)`."""
        return tuple(f"{_distribution(entry)} ({entry.value})" for entry in self.entries)


@dataclass(frozen=True)
class OptionInfo:
    """One option of a model, for flags, saved reports and the docs."""

    name: str
    kind: Any
    """bool, int, float, str or a Literal of strings."""
    default: Any
    help: str


def known_models() -> dict[str, KnownModel]:
    """Return all models by name, sorted, without importing any."""
    entries: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        entries.setdefault(entry.name, []).append(entry)
    return {name: KnownModel(name, tuple(entries[name])) for name in sorted(entries)}


def built_in_options() -> dict[str, OptionInfo]:
    """Return the options of all models of this package, by name."""
    return {
        info.name: info
        for name, known in known_models().items()
        if known.entries[0].value.startswith("rewritelog.")
        for info in describe_options(name, model_class(name))
    }


def model_class(name: str) -> type[Model[Any]]:
    """Import and return the class of the model of that name.

    Raise `UsageError` for an unknown name, and `ModelError` if two distributions declare it, its
    import fails, or it is not a model.
    """
    known = known_models()
    if name not in known:
        names = ", ".join(known) or "none (is rewritelog installed?)"
        raise UsageError(f"unknown model {name!r}; known models: {names}")
    if len(known[name].entries) > 1:
        origins = " and ".join(known[name].origins)
        raise ModelError(f"model {name!r} is declared more than once, by {origins}; remove one")
    with errors_as_model_errors(f"model {name!r} of {known[name].origins[0]} cannot be imported"):
        cls = known[name].entries[0].load()
    if not (isinstance(cls, type) and issubclass(cls, Model)):
        origin = known[name].origins[0]
        raise ModelError(f"model {name!r} of {origin} is not a subclass of Model")
    return cls


def load_model(
    name: str,
    options: Mapping[str, object],
    texts: Mapping[str, ModelText] | None = None,
) -> Model[Any]:
    """Return the model of that name with these options; text is converted to their types.

    A name with a colon, `module:Class`, is imported, which runs the module's code; it is either a
    `Model` or a regressor with the interface of scikit-learn. `texts` are the files given for the
    model, by kind: `formulas` or `coefficients`. Raise `UsageError` for an unknown model or option,
    an invalid value, or a text that is missing or not accepted, and `ModelError` for a plug-in
    that violates the contract.
    """
    cls = _outside_class(name) if ":" in name else model_class(name)
    if not (isinstance(cls, type) and issubclass(cls, Model)):
        return _load_outside(name, cls, options, texts or {})
    model_options = make_options(name, cls, options)
    text = _choose_text(name, cls, texts or {})
    with errors_as_model_errors(f"model {name!r} cannot be made"):
        return cls(model_options) if text is None else cls(model_options, text)


def _outside_class(name: str) -> Any:
    from rewritelog.models.outside import import_named  # noqa: PLC0415 - few runs need it

    return import_named(name)


def _load_outside(
    name: str, maker: Any, options: Mapping[str, object], texts: Mapping[str, ModelText]
) -> Model[Any]:
    from rewritelog.models.outside import Outside, make_outside  # noqa: PLC0415 - few runs need it

    _choose_text(name, Outside, texts)
    return make_outside(name, maker, options)


def _choose_text(
    name: str, cls: type[Model[Any]], texts: Mapping[str, ModelText]
) -> ModelText | None:
    """Return the text that the model takes; raise `UsageError` if it is missing or not accepted."""
    for what in texts:
        if what != cls.takes_text:
            raise UsageError(f"the model {name!r} takes no file of {what}")
    if cls.needs_text and cls.takes_text not in texts:
        raise UsageError(
            f"the model {name!r} needs a file of {cls.takes_text}: --{cls.takes_text} FILE"
        )
    return None if cls.takes_text is None else texts.get(cls.takes_text)


def describe_options(name: str, cls: type[Model[Any]]) -> tuple[OptionInfo, ...]:
    """Return the options of a model class; raise `ModelError` if they violate the contract."""
    declared = getattr(cls, "Options", None)
    if not (isinstance(declared, type) and is_dataclass(declared)):
        raise ModelError(f"model {name!r}: {cls.__qualname__}.Options is not a dataclass")
    hints = get_type_hints(declared)
    described = []
    for field in fields(declared):
        if field.default is MISSING:
            raise ModelError(f"model {name!r}: option {field.name} has no default")
        kind = hints[field.name]
        if kind not in (bool, int, float, str) and get_origin(kind) is not Literal:
            raise ModelError(f"model {name!r}: option {field.name} has an unusable type, {kind}")
        text = str(field.metadata.get("help", ""))
        described.append(OptionInfo(field.name, kind, field.default, text))
    return tuple(described)


def make_options(name: str, cls: type[Model[Any]], values: Mapping[str, object]) -> Any:
    """Return the model's options with these values; `-` in a name counts as `_`."""
    known = {info.name: info for info in describe_options(name, cls)}
    converted: dict[str, object] = {}
    for spelled, value in values.items():
        key = spelled.replace("-", "_")
        if key not in known:
            names = ", ".join(known) or "none"
            raise UsageError(f"model {name!r} has no option {spelled!r}; its options: {names}")
        if key in converted:
            raise UsageError(f"model {name!r}: option {key!r} is given more than once")
        try:
            converted[key] = convert(value, known[key].kind)
        except ValueError as error:
            raise UsageError(f"model {name!r}, option {key!r}: {error}") from error
    try:
        return cls.Options(**converted)
    except (TypeError, ValueError) as error:
        raise UsageError(f"model {name!r}: {error}") from error


def convert(value: object, kind: Any) -> object:
    """Return the value converted to the option's type; raise `ValueError` if it is invalid."""
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        raise ValueError(f"{value!r} is not one of {', '.join(map(str, get_args(kind)))}")
    if kind is bool:
        return _to_bool(value)
    if kind is str and isinstance(value, str):
        return value
    if kind is not str and isinstance(value, int | float | str) and not isinstance(value, bool):
        return _to_number(value, kind)
    raise ValueError(f"{value!r} is not of type {kind.__name__}")


def _to_bool(value: object) -> bool:
    """Return a bool, or the one that a text spells."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in TRUTHS:
        return TRUTHS[value.strip().lower()]
    raise ValueError(f"{value!r} is neither true nor false")


def _to_number(value: float | str, kind: type[int] | type[float]) -> int | float:
    """Return an int or float; an integral float is accepted as int, but NaN as neither."""
    whole = not isinstance(value, float) or value.is_integer()
    if kind is float or whole:
        with suppress(ValueError, OverflowError):
            number = kind(value)
            if number == number:  # noqa: PLR0124 - false for NaN
                return number
    raise ValueError(f"{value!r} is not of type {kind.__name__}")


def _distribution(entry: EntryPoint) -> str:
    """Return the distribution that declares the entry, with its version."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown"
