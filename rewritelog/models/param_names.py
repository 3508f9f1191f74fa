"""Files of parameter names, for the reports of fits without formulas.

They are TOML, with a list of names for each event or pattern of events:

    "Cell::pairForces" = ["atoms", "carbons"]

`docs/formulas.md` describes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from rewritelog.models.base import ModelFit, ModelText
from rewritelog.models.expressions import FormulaError
from rewritelog.models.fitted_events import FittedEvents
from rewritelog.models.formulas.located_toml import read_toml
from rewritelog.models.formulas.names import checked_names
from rewritelog.text import count_text, matches, printable


@dataclass(frozen=True)
class ParamNames:
    """The entries of a file, in its order."""

    name: str
    """The name of the file in messages."""
    entries: Mapping[str, tuple[str, ...]]
    """The names for each event or pattern; the first match is used."""

    def for_event(self, event: str, parameters: int) -> tuple[str, ...]:
        """Return the names for an event with this many parameters; empty without a match."""
        return next(
            (
                names
                for pattern, names in self.entries.items()
                if len(names) == parameters and matches(pattern, event)
            ),
            (),
        )

    def unused(self, events: Collection[tuple[str, int]]) -> Iterator[str]:
        """Yield a sentence for each entry that matches none of the events (name and parameters)."""
        for pattern, names in self.entries.items():
            if any(len(names) == count and matches(pattern, event) for event, count in events):
                continue
            yield (
                f"{self.name}: the names for {printable(pattern)!r} are not used: no event of that "
                f"name has {count_text(len(names), 'parameter')}"
            )


def parse_param_names(text: ModelText) -> ParamNames:
    """Return the contents of a file; raise `FormulaError` with the location of any error."""
    toml = read_toml(text.text, text.name)
    entries = {}
    for pattern, written in toml.document.items():
        names = toml.declared(written, list[str], (pattern,))
        if not names:
            raise toml.of_value((pattern,)).error('expected "event" = ["name", "name"]')
        named = [(name, toml.of_value((pattern, at))) for at, name in enumerate(names)]
        entries[pattern] = checked_names(named)
    if not entries:
        raise FormulaError(text.name, None, None, "names no event")
    return ParamNames(text.name, entries)


def with_names(fitted: ModelFit, names: ParamNames) -> ModelFit:
    """Return a fit whose reports use the names; those that a formula gives are kept."""
    if not isinstance(fitted, FittedEvents):
        return fitted
    named = {
        (event, count): fit if fit.names else fit.named(names.for_event(event, count))
        for (event, count), fit in fitted.fits.items()
    }
    unused = tuple(names.unused((*fitted.fits, *fitted.unfitted)))
    return replace(fitted, fits=named, notes=(*fitted.notes, *unused))
