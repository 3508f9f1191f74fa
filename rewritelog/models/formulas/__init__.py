"""Formulas files: for events by name or pattern, the terms of a fit, and maybe its classes.

`parse_formulas` reads the text of one, and `Formulas.for_event` finds what it says of an event;
`docs/formulas.md` says what may be in it. Within: `entries` (what a file says), `reading` (from
text to that), `names` (of parameters), `places` (lines and columns in TOML), `library` (formulas by
kind of kernel).
"""

from __future__ import annotations

from rewritelog.models.formulas.entries import EventFormula, Formulas
from rewritelog.models.formulas.library import KINDS, KernelKind
from rewritelog.models.formulas.reading import load_toml, parse_formulas

__all__ = ["KINDS", "EventFormula", "Formulas", "KernelKind", "load_toml", "parse_formulas"]
