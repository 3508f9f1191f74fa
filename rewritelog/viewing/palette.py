"""Colours that people with any kind of colour vision can distinguish, also in print.

Eight of Okabe and Ito ("Color Universal Design", 2008), and four of Tol's muted scheme ("Colour
Schemes", SRON/EPS/TN/09-002, 2021).
"""

from __future__ import annotations

COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#882255",
    "#332288",
    "#999933",
    "#AA4499",
    "#117733",
)

OTHER = "#9A9A9A"
"""The colour of everything that has no colour of its own."""

OUTSIDE = "#C9C9C9"
"""The colour of SEBs where their brackets have colours."""

BRACKET = "#000000"
MESSAGE = "#444444"
IDLE = "#FFFFFF"


def rgb(colour: str) -> tuple[float, float, float]:
    """Return red, green and blue, each in [0, 1], of a colour such as `#0072B2`."""
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return red, green, blue
