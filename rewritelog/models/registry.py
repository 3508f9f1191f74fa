"""Models by name: built-in and third-party ones are found through the same entry-point group.

Also their options, converted from text, and their descriptions for the command line.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeGuard

from rewritelog.errors import ModelError, UsageError, spelled
from rewritelog.models.base import Model, ModelText
from rewritelog.models.fitted import errors_as_model_errors, option_text
from rewritelog.options import Declaration, choices, declarations
from rewritelog.text import printable, wrapped

GROUP = "rewritelog.models"
"""The entry-point group in which distributions declare models."""

FOOT = (
    "`rewritelog models NAME` says when to choose a model, and lists its options. MODULE:CLASS is "
    "a regressor with scikit-learn's fit and predict: its module's code is run."
)


def known_models() -> dict[str, list[EntryPoint]]:
    """Return the entries of all distributions by name, sorted, without importing any model."""
    entries: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        entries.setdefault(entry.name, []).append(entry)
    return entries


def _origin(entry: EntryPoint) -> str:
    """Return where a name is declared, as `distribution version (module:class)`."""
    declared_by = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "unknown"
    return f"{declared_by} ({entry.value})"


def built_in_options() -> Iterable[Declaration]:
    """Return the options of all models of this package, each name once."""
    options = {
        option.field: option
        for name, entries in known_models().items()
        if entries[0].value.startswith("rewritelog.")
        for option in describe_options(name, model_class(name))
    }
    return options.values()


def model_class(name: str) -> type[Model[Any]]:
    """Import and return the class of the model of that name.

    Raise `UsageError` for an unknown name, and `ModelError` if two distributions declare it, its
    import fails, or it is not a model.
    """
    known = known_models()
    if name not in known:
        names = ", ".join(known) or "none (is rewritelog installed?)"
        raise UsageError(f"unknown model {name!r}; known models: {names}")
    origin = " and ".join(map(_origin, known[name]))
    if len(known[name]) > 1:
        raise ModelError(f"model {name!r} is declared more than once, by {origin}; remove one")
    with errors_as_model_errors(f"model {name!r} of {origin} cannot be imported"):
        cls = known[name][0].load()
    if not _is_model(cls):
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
    if ":" in name:
        from rewritelog.models import outside  # noqa: PLC0415 - few runs need it

        cls = outside.import_named(name)
        if not _is_model(cls):
            _choose_text(name, outside.Outside, texts or {})
            return outside.Outside(name, cls, options)
    else:
        cls = model_class(name)
    model_options = make_options(name, cls, options)
    text = _choose_text(name, cls, texts or {})
    try:
        with errors_as_model_errors(f"model {name!r} cannot be made", UsageError):
            return cls(model_options) if text is None else cls(model_options, text)
    except UsageError as error:  # an option has an invalid value
        raise UsageError(f"model {name!r}: {error}") from error


def _is_model(cls: object) -> TypeGuard[type[Model[Any]]]:
    return isinstance(cls, type) and issubclass(cls, Model)


def _choose_text(
    name: str, cls: type[Model[Any]], texts: Mapping[str, ModelText]
) -> ModelText | None:
    """Return the text that the model takes; raise `UsageError` if it is missing or not accepted."""
    for what in texts:
        if what != cls.takes_text:
            raise UsageError(f"the model {name!r} takes no file of {what}")
    if cls.needs_text and cls.takes_text not in texts:
        needed = spelled(str(cls.takes_text), "FILE")
        raise UsageError(f"the model {name!r} needs a file of {cls.takes_text}: {needed}")
    return None if cls.takes_text is None else texts.get(cls.takes_text)


def describe_options(name: str, cls: type[Model[Any]]) -> tuple[Declaration, ...]:
    """Return the options of a model class; raise `ModelError` if they violate the contract."""
    declared = getattr(cls, "Options", None)
    if not (isinstance(declared, type) and is_dataclass(declared)):
        raise ModelError(f"model {name!r}: {cls.__qualname__}.Options is not a dataclass")
    with errors_as_model_errors(f"model {name!r}: its options"):
        described = declarations(declared)
    for option in described:
        if option.default is MISSING:
            raise ModelError(f"model {name!r}: option {option.field} has no default")
        if option.kind not in (bool, int, float, str) and not choices(option.kind):
            problem = f"has an unusable type, {option.shown}"
            raise ModelError(f"model {name!r}: option {option.field} {problem}")
    return described


def _called(field: str) -> str:
    """Return an option as users write it: as a flag, or by its name if it is a third party's."""
    return spelled(field) if field in {option.field for option in built_in_options()} else field


def make_options(name: str, cls: type[Model[Any]], values: Mapping[str, object]) -> Any:
    """Return the model's options with these values; `-` in a name counts as `_`.

    The text "none" is None for an option of type `X | None`.
    """
    known = {option.field: option for option in describe_options(name, cls)}
    converted: dict[str, object] = {}
    for spelling, value in values.items():
        key = spelling.replace("-", "_")
        if key not in known:
            names = ", ".join(known) or "none"
            raise UsageError(f"model {name!r} has no option {_called(key)!r}; its options: {names}")
        if key in converted:
            raise UsageError(f"model {name!r}: option {key!r} is given more than once")
        try:
            is_none = value is None or str(value).strip().lower() == "none"
            converted[key] = (
                None if is_none and known[key].optional else known[key].converted(value)
            )
        except ValueError as error:
            raise UsageError(f"model {name!r}, option {_called(key)!r}: {error}") from error
    try:
        return cls.Options(**converted)
    except (TypeError, ValueError) as error:
        raise UsageError(f"model {name!r}: {error}") from error


def models_text() -> str:
    """Return a line for each model."""
    known = known_models()
    width = max(map(len, known), default=0)
    lines = []
    for name in known:
        try:
            about = _paragraphs(model_class(name))[0]
        except ModelError as error:
            about = str(error)
        lines.append(wrapped(printable(f"{name:<{width}}  {about}"), width + 2))
    return "\n".join([*lines, "", wrapped(FOOT, 0)])


def model_text(name: str) -> str:
    """Return a model's description and options; raise `UsageError` for an unknown name."""
    cls = model_class(name)
    lines = [f"{name}: {_origin(known_models()[name][0])}"]
    for text in _paragraphs(cls):
        lines += ["", wrapped(text, 0)]
    if cls.takes_text is not None:
        lines += ["", f"--{cls.takes_text} FILE" + (" is needed." if cls.needs_text else "")]
    options = describe_options(name, cls)
    lines += ["", "Options:" if options else "It has no options."]
    flags = {option.field for option in built_in_options()}
    for option in options:
        about = f"    {option.help} [default: {option_text(option.default)}]"
        words = f"--model-option {option.field}={option.metavar}"
        if option.field in flags:
            words = f"{option.name} {option.metavar}"
        lines += [f"  {words}", wrapped(about, 0)]
    return "\n".join(printable(line) for text in lines for line in text.split("\n"))


def _paragraphs(cls: type[Model[Any]]) -> list[str]:
    text = inspect.cleandoc(cls.__doc__ or "")
    return [" ".join(part.split()) for part in text.split("\n\n")]
