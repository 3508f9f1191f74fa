"""Formulas files: the terms of fits, and optionally their classes, for events by name or pattern.

`parse_formulas` parses the text of one, and `Formulas.for_event` finds the formula of an event;
`docs/formulas.md` describes the format. Modules: `entries` (the contents of a file), `reading`
(parsing), `names` (of parameters), `located_toml` (TOML of declared types, with lines and columns),
`library` (formulas by kind of kernel).
"""

from __future__ import annotations

from rewritelog.models.formulas.entries import EventFormula, Formulas
from rewritelog.models.formulas.library import KINDS, KernelKind
from rewritelog.models.formulas.located_toml import load_toml
from rewritelog.models.formulas.reading import parse_formulas

__all__ = ["KINDS", "EventFormula", "Formulas", "KernelKind", "load_toml", "parse_formulas"]
