"""The models as text: what each is for, when to choose it, and its options."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any, get_args

from rewritelog.errors import ModelError
from rewritelog.models.base import Model
from rewritelog.models.registry import OptionInfo, describe_options, known_models, model_class
from rewritelog.text import WIDTH, printable

FOOT = (
    "`rewritelog models NAME` says when to choose a model, and lists its options. MODULE:CLASS is "
    "a regressor with scikit-learn's fit and predict: its module's code is run."
)


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
        lines += _hanging(printable(f"{name:<{width}}  {about}"), width + 2)
    return "\n".join([*lines, "", *textwrap.wrap(FOOT, WIDTH)])


def model_text(name: str) -> str:
    """Return a model's description and options; raise `UsageError` for an unknown name."""
    cls = model_class(name)
    lines = [f"{name}: {known_models()[name].origins[0]}"]
    for text in _paragraphs(cls):
        lines += ["", *textwrap.wrap(text, WIDTH)]
    if cls.takes_text is not None:
        lines += ["", f"--{cls.takes_text} FILE" + (" is needed." if cls.needs_text else "")]
    options = describe_options(name, cls)
    lines += ["", "Options:" if options else "It has no options."]
    for option in options:
        lines += [f"  {flag_of(option)}", *_indented(f"{option.help} [default: {option.default}]")]
    return "\n".join(map(printable, lines))


def flag_of(option: OptionInfo) -> str:
    """Return an option as it is given on a command line."""
    kind: Any = option.kind
    value = "|".join(map(str, get_args(kind))) or {float: "NUMBER", int: "N"}.get(kind, "TEXT")
    return f"--{option.name.replace('_', '-')} {value}"


def _paragraphs(cls: type[Model[Any]]) -> list[str]:
    text = inspect.cleandoc(cls.__doc__ or "")
    return [" ".join(part.split()) for part in text.split("\n\n")]


def _hanging(text: str, indent: int) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)


def _indented(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="    ", subsequent_indent="    ")
