"""Expressions as text: in the syntax of formulas files, in Python with numpy, and in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from rewritelog.errors import ModelError
from rewritelog.models.expressions.operations import (
    FUNCTIONS,
    NEGATE,
    OPERATIONS,
    PRECEDENCE,
    SIGN_PRECEDENCE,
    VARIADIC,
    Number,
    Parameter,
    Step,
)

Language: TypeAlias = Literal["text", "python", "latex"]
"""The syntax of formulas files, that of Python with numpy as `np`, and that of LaTeX."""

Operand: TypeAlias = tuple[str, int]
"""A text with its precedence."""

SUM, PRODUCT, COMPARISON = PRECEDENCE["+"], PRECEDENCE["*"], PRECEDENCE["<"]

CLOSED = max(PRECEDENCE.values()) + 1
"""The precedence of what never needs parentheses."""


class Spelling(NamedTuple):
    """How a language spells an operation."""

    template: str
    """With braces for each operand, as for `str.format`."""
    precedence: int
    loosest: tuple[int, ...]
    """The loosest precedence with which each operand needs no parentheses."""


def _operators(times: str, over: str) -> dict[str, Spelling]:
    """Return the operators that all languages spell alike, with these signs of products."""
    return {
        NEGATE: Spelling("-{}", SIGN_PRECEDENCE, (SIGN_PRECEDENCE,)),
        "+": Spelling("{} + {}", SUM, (SUM, SUM + 1)),
        "-": Spelling("{} - {}", SUM, (SUM, SUM + 1)),
        "*": Spelling(f"{{}}{times}{{}}", PRODUCT, (PRODUCT, PRODUCT + 1)),
        "/": Spelling(f"{{}}{over}{{}}", PRODUCT, (PRODUCT, PRODUCT + 1)),
    }


def _comparisons(
    template: str, precedence: int, signs: Mapping[str, str] | None = None
) -> dict[str, Spelling]:
    """Return the comparisons, with `~` in the template for the sign of each."""
    return {
        name: Spelling(
            template.replace("~", (signs or {}).get(name, name)), precedence, (COMPARISON + 1,) * 2
        )
        for name in PRECEDENCE
        if PRECEDENCE[name] == COMPARISON
    }


def _functions(template: str, names: Mapping[str, str] | None = None) -> dict[str, Spelling]:
    """Return calls of all functions, with `~` in the template for the name of each."""
    made = {}
    for name, operation in FUNCTIONS.items():
        call = template.replace("~", (names or {}).get(name, name))
        operands = ", ".join(["{}"] * operation.arity)
        made[name] = Spelling(call.replace("…", operands), CLOSED, (0,) * operation.arity)
    return made


TEXT = {
    **_operators("*", "/"),
    **_comparisons("{} ~ {}", COMPARISON),
    **_functions("~(…)"),
    "^": Spelling("{}^{}", PRECEDENCE["^"], (CLOSED, SIGN_PRECEDENCE)),
}

PYTHON = {
    **_operators(" * ", " / "),
    **_comparisons("np.where({} ~ {}, 1.0, 0.0)", CLOSED),
    **_functions("np.~(…)", {"min": "minimum", "max": "maximum", "abs": "absolute"}),
    "^": Spelling("{}**{}", PRECEDENCE["^"], (CLOSED, SIGN_PRECEDENCE)),
}
del PYTHON["torus_distance"]

LATEX = {
    **_operators(r" \cdot ", ""),
    # Iverson's bracket: 1 where it is true, 0 elsewhere
    **_comparisons("[{} ~ {}]", CLOSED, {"<=": r"\le", ">=": r"\ge", "==": "=", "!=": r"\ne"}),
    **_functions(
        r"~\left(…\right)",
        {name: "\\" + name for name in ("exp", "max", "min")}
        | {"log": r"\ln", "log2": r"\log_2", "torus_distance": r"\operatorname{{torus\_distance}}"},
    ),
    "/": Spelling(r"\frac{{{}}}{{{}}}", PRODUCT, (0, 0)),
    "^": Spelling("{}^{{{}}}", PRECEDENCE["^"], (CLOSED, 0)),
    "abs": Spelling(r"\left|{}\right|", CLOSED, (0,)),
    "ceil": Spelling(r"\left\lceil {}\right\rceil", CLOSED, (0,)),
    "floor": Spelling(r"\left\lfloor {}\right\rfloor", CLOSED, (0,)),
    "log1p": Spelling(r"\ln\left(1 + {}\right)", CLOSED, (0,)),
    "sqrt": Spelling(r"\sqrt{{{}}}", CLOSED, (0,)),
}

SPELLINGS: dict[Language, dict[str, Spelling]] = {"text": TEXT, "python": PYTHON, "latex": LATEX}
"""How each language spells the operations that it has."""


def in_language(steps: Iterable[Step], names: Mapping[int, str], language: Language) -> Operand:
    """Return the steps of an expression as text, with its parameters called by these names.

    Raise `ModelError` for a function that the language does not have.
    """
    stack: list[Operand] = []
    for step in steps:
        if isinstance(step, Number):
            stack.append((_constant_text(step.value, language), CLOSED))
        elif isinstance(step, Parameter):
            name = names.get(step.number, f"p{step.number}")
            stack.append((_latex_name(name) if language == "latex" else name, CLOSED))
        elif spelling := SPELLINGS[language].get(step.name):
            operands = stack[-OPERATIONS[step.name].arity :]
            texts = [
                enclosed(operand, loosest, language)
                for operand, loosest in zip(operands, spelling.loosest, strict=True)
            ]
            if language == "text" and step.name in VARIADIC and _is_call(operands[0], step.name):
                texts[0] = texts[0][len(step.name) + 1 : -1]  # min(min(a, b), c) is min(a, b, c)
            text = spelling.template.format(*texts)
            stack[-len(texts) :] = [(text, spelling.precedence)]
        else:
            raise ModelError(f"{step.name} is not a function of numpy: use predict")
    (operand,) = stack
    return operand


def number_in_language(value: float, language: Language) -> str:
    """Return a number: exactly in Python, with six digits elsewhere."""
    if language == "python":
        return repr(value)
    digits = f"{value:.6g}"
    if language == "text" or "e" not in digits:
        return digits
    mantissa, _, exponent = digits.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


def enclosed(operand: Operand, loosest: int, language: Language) -> str:
    """Return an operand, in parentheses if it binds looser than `loosest`."""
    text, precedence = operand
    if precedence >= loosest:
        return text
    return rf"\left({text}\right)" if language == "latex" else f"({text})"


def _is_call(operand: Operand, name: str) -> bool:
    text, precedence = operand
    return precedence == CLOSED and text.startswith(f"{name}(")


def _constant_text(value: float, language: Language) -> str:
    """Return the shortest text that reads back as the number, integers without a point."""
    if language == "latex":
        return number_in_language(value, language)
    return repr(value).removesuffix(".0")


def _latex_name(name: str) -> str:
    if name[:1] == "p" and name[1:].isdecimal():
        return f"p_{{{name[1:]}}}"
    escaped = name.replace("_", r"\_")
    return rf"\mathit{{{escaped}}}" if len(name) > 1 else name
