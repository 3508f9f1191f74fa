"""Powers of the parameters as terms: the family of the least-squares model.

They are powers of scaled parameters u = (p − centre) / scale, which lie in [−1, 1] for the samples:
1, u and u² span the same space as 1, p and p², and are well conditioned even for p = 10⁶ ± 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.expressions import Expression, parse
from rewritelog.models.fitting.bases.sums import independent_terms
from rewritelog.models.fitting.design import ONE, Family, Parameters, SelectionSamples


@dataclass(frozen=True, order=True)
class ScaledPower:
    """A power of one scaled parameter; the constant is power 0 of parameter 0."""

    parameter: int
    power: int
    centre: float
    scale: float
    """Half of the range over the samples."""

    @property
    def name(self) -> str:
        """The same power of the original parameter, as reports show it."""
        if not self.power:
            return "1"
        return f"p{self.parameter}" if self.power == 1 else f"p{self.parameter}^{self.power}"

    @property
    def expression(self) -> Expression:
        """The power of the scaled parameter, as it is fitted."""
        if not self.power:
            return ONE
        sign = "+" if self.centre < 0 else "-"
        scaled = f"(p{self.parameter} {sign} {abs(self.centre)!r})/{self.scale!r}"
        return parse(scaled if self.power == 1 else f"({scaled})^{self.power}")


CONSTANT = ScaledPower(0, 0, 0.0, 1.0)


@dataclass(frozen=True)
class Polynomial:
    """The constant and the powers of each parameter up to the highest, without products."""

    highest_power: int

    @property
    def family(self) -> Family:
        """The family that takes all of these terms that are linearly independent."""
        return Family(
            self._choose,
            non_negative=False,
            bounded=False,
            given=self._terms,
            as_reported=self._as_reported,
        )

    def _candidates(self, parameters: Parameters) -> list[ScaledPower]:
        """Return the terms in order of preference: lower powers first."""
        powers = range(1, self.highest_power + 1)
        halves = np.array((parameters.lowest, parameters.highest)) / 2
        centres, scales = halves.sum(axis=0).tolist(), (halves[1] - halves[0]).tolist()
        return [
            CONSTANT,
            *(
                ScaledPower(number, power, centres[number - 1], scales[number - 1])
                for power in powers
                for number in parameters.varying
            ),
        ]

    def _terms(self, parameters: Parameters) -> dict[str, Expression]:
        """Return all terms by name, including those of ignored parameters."""
        powers = range(1, self.highest_power + 1)
        plain = {
            name: parse(name)
            for number in parameters.ignored
            for name in (f"p{number}", f"p{number}^2")[: len(powers)]
        }
        candidates = self._candidates(parameters)
        return plain | {
            scaled.name: (scaled if scaled.power < 2 else replace(scaled, centre=0.0)).expression
            for scaled in candidates
        }

    def _as_reported(
        self, terms: Sequence[Expression], parameters: Parameters
    ) -> tuple[tuple[str, ...], Floats]:
        """Return the terms' names, and the matrix that maps coefficients to those of the names.

        The names are powers of the original parameters: u = p/s − c/s and
        u² = p²/s² − 2c·p/s² + c²/s², c and s being centre and scale.
        """
        known = self._candidates(parameters)
        by_term = {
            scaled.expression: scaled
            for scaled in [*known, *(replace(scaled, centre=0.0) for scaled in known)]
        }
        powers = [by_term[term] for term in terms]
        index_of = {(scaled.parameter, scaled.power): index for index, scaled in enumerate(powers)}
        matrix = np.zeros((len(powers), len(powers)))
        matrix[0, 0] = 1
        for (parameter, power), column in index_of.items():
            centre, scale = np.float64(powers[column].centre), np.float64(powers[column].scale)
            if power:
                matrix[column, column] = (1 / scale) ** power
                matrix[0, column] = (-centre / scale) ** power
            if power == 2 and centre:
                matrix[index_of[parameter, 1], column] = -2 * (centre / scale) / scale
        return tuple(scaled.name for scaled in powers), matrix

    def _choose(self, selection: SelectionSamples) -> tuple[Expression, ...]:
        """Choose the terms that are no linear combination of terms of lower power.

        A square without p itself is not centred: u² would include p.
        """
        chosen: list[ScaledPower] = []
        for power in range(self.highest_power + 1):
            linear = {scaled.parameter for scaled in chosen}
            more = [
                scaled if power < 2 or scaled.parameter in linear else replace(scaled, centre=0.0)
                for scaled in self._candidates(selection.parameters)
                if scaled.power == power
            ]
            kept = set(
                independent_terms(
                    [scaled.expression for scaled in (*chosen, *more)], selection.samples
                )
            )
            chosen = [scaled for scaled in (*chosen, *more) if scaled.expression in kept]
        return tuple(scaled.expression for scaled in sorted(chosen))
