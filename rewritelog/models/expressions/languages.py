"""Expressions in the syntax of other languages: Python with numpy, and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rewritelog.errors import ModelError
from rewritelog.models.expressions.expression import (
    PRECEDENCE,
    SIGN_PRECEDENCE,
    Constant,
    Expression,
    Parameter,
)
from rewritelog.models.expressions.operations import NEGATE, OPERATIONS, OPERATORS

Language: TypeAlias = Literal["text", "python", "latex"]
"""The syntax of formulas files, that of Python with numpy as `np`, and that of LaTeX."""

_CLOSED = max(PRECEDENCE.values()) + 1
"""The precedence of what never needs parentheses."""

_NUMPY = {"min": "minimum", "max": "maximum", "abs": "absolute"}
_LATEX_OPERATORS = {
    "*": r" \cdot ",
    "<=": r" \le ",
    ">=": r" \ge ",
    "==": " = ",
    "!=": r" \ne ",
}
_LATEX_BRACKETS = {
    "abs": (r"\left|", r"\right|"),
    "ceil": (r"\left\lceil ", r"\right\rceil"),
    "floor": (r"\left\lfloor ", r"\right\rfloor"),
    "sqrt": (r"\sqrt{", "}"),
}
_LATEX_FUNCTIONS = {
    "exp": r"\exp",
    "log": r"\ln",
    "log1p": r"\ln",
    "log2": r"\log_2",
    "max": r"\max",
    "min": r"\min",
}

Operand: TypeAlias = tuple[str, int]
"""A text with its precedence."""


@dataclass(frozen=True)
class _Syntax:
    """How a language spells numbers, parameters and operations."""

    number: Callable[[float], str]
    parameter: Callable[[str], str]
    operation: Callable[[str, Sequence[Operand]], Operand]


def in_language(expression: Expression, names: Mapping[int, str], language: Language) -> str:
    """Return an expression in a language, with its parameters called by these names.

    Raise `ModelError` for a function that the language does not have.
    """
    return operand_in_language(expression, names, language)[0]


def operand_in_language(
    expression: Expression, names: Mapping[int, str], language: Language
) -> Operand:
    """Return an expression in a language, with its precedence."""
    if language == "text":
        loosest = PRECEDENCE["+"] if expression.is_sum else PRECEDENCE["*"]
        return expression.to_text(names), loosest
    syntax = _PYTHON if language == "python" else _LATEX
    stack: list[Operand] = []
    for step in expression.steps:
        if isinstance(step, Constant):
            stack.append((syntax.number(step.value), _CLOSED))
        elif isinstance(step, Parameter):
            stack.append((syntax.parameter(names.get(step.number, f"p{step.number}")), _CLOSED))
        else:
            arity = OPERATIONS[step.name].arity
            stack[-arity:] = [syntax.operation(step.name, stack[-arity:])]
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


def _python_operation(name: str, operands: Sequence[Operand]) -> Operand:
    if name == NEGATE:
        return f"-{enclosed(operands[0], SIGN_PRECEDENCE, 'python')}", SIGN_PRECEDENCE
    if name in OPERATORS:
        precedence = PRECEDENCE[name]
        left, right = operands
        if name == "^":
            base = enclosed(left, precedence + 1, "python")
            return f"{base}**{enclosed(right, SIGN_PRECEDENCE, 'python')}", precedence
        text = f"{enclosed(left, precedence + (precedence == 1), 'python')} {name} "
        text += enclosed(right, precedence + 1, "python")
        if precedence == PRECEDENCE["<"]:
            return f"np.where({text}, 1.0, 0.0)", _CLOSED
        return text, precedence
    if len(operands) > 2:
        raise ModelError(f"{name} is not a function of numpy: use predict")
    arguments = ", ".join(text for text, _ in operands)
    return f"np.{_NUMPY.get(name, name)}({arguments})", _CLOSED


def _latex_operation(name: str, operands: Sequence[Operand]) -> Operand:
    if name == NEGATE:
        return f"-{enclosed(operands[0], SIGN_PRECEDENCE, 'latex')}", SIGN_PRECEDENCE
    texts = [text for text, _ in operands]
    if name == "/":
        return rf"\frac{{{texts[0]}}}{{{texts[1]}}}", PRECEDENCE["*"]
    if name == "^":
        return f"{enclosed(operands[0], _CLOSED, 'latex')}^{{{texts[1]}}}", PRECEDENCE["^"]
    if name in OPERATORS:
        precedence = PRECEDENCE[name]
        between = _LATEX_OPERATORS.get(name, f" {name} ")
        left = enclosed(operands[0], precedence + (precedence == 1), "latex")
        text = left + between + enclosed(operands[1], precedence + 1, "latex")
        # Iverson's bracket: 1 where it is true, 0 elsewhere
        return (f"[{text}]", _CLOSED) if precedence == PRECEDENCE["<"] else (text, precedence)
    if name in _LATEX_BRACKETS:
        begin, end = _LATEX_BRACKETS[name]
        return f"{begin}{texts[0]}{end}", _CLOSED
    if name == "log1p":
        texts[0] = f"1 + {texts[0]}"
    called = _LATEX_FUNCTIONS.get(name, rf"\operatorname{{{_escaped(name)}}}")
    return rf"{called}\left({', '.join(texts)}\right)", _CLOSED


def _latex_parameter(name: str) -> str:
    if name[:1] == "p" and name[1:].isdecimal():
        return f"p_{{{name[1:]}}}"
    return rf"\mathit{{{_escaped(name)}}}" if len(name) > 1 else name


def _escaped(name: str) -> str:
    return name.replace("_", r"\_")


_PYTHON = _Syntax(lambda value: repr(value).removesuffix(".0"), str, _python_operation)
_LATEX = _Syntax(
    lambda value: number_in_language(value, "latex"), _latex_parameter, _latex_operation
)
