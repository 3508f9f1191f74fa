"""Pictures that a notebook shows, and the figure of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.base import EventTimings
from rewritelog.models.fitted import Fitted
from rewritelog.text import Readable, bytes_text, event_label, printable
from rewritelog.viewing.extra import drawing


class Picture(bytes):
    """The bytes of a picture; a notebook shows it.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))
    >>> picture.kind
    'svg'
    """

    kind: str
    """svg, png, pdf or html."""
    over_time: tuple[dict[str, Any], ...]
    """The share of PEs in each colour over time, for each timeline in the picture; JSON types."""
    warnings: tuple[str, ...]
    """What a timeline leaves out, one sentence each."""

    def __new__(
        cls,
        content: bytes,
        kind: str,
        over_time: tuple[dict[str, Any], ...] = (),
        warnings: tuple[str, ...] = (),
    ) -> Picture:
        """Return the picture of these bytes."""
        picture = super().__new__(cls, content)
        picture.kind, picture.over_time, picture.warnings = kind, over_time, warnings
        return picture

    def __getnewargs__(self) -> tuple[Any, ...]:  # type: ignore[override]
        return bytes(self), self.kind, self.over_time, self.warnings

    def _repr_svg_(self) -> str | None:
        return self.decode() if self.kind == "svg" else None

    def _repr_png_(self) -> bytes | None:
        return bytes(self) if self.kind == "png" else None

    def _repr_html_(self) -> str | None:
        if self.kind != "html":
            return None
        from html import escape  # noqa: PLC0415 - only notebooks need it

        return f'<iframe srcdoc="{escape(self.decode())}" width="100%" height="600"></iframe>'

    def __repr__(self) -> str:
        return f"<Picture: {self.kind}, {len(self):,} bytes>"

    __str__ = __repr__


@dataclass(frozen=True, repr=False)
class WrittenPicture(Readable):
    """A picture that was written to a file."""

    path: Path
    picture: Picture

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of the picture."""
        return self.picture.warnings

    def text(self) -> str:
        """Return the file and its size."""
        return f"{printable(str(self.path))}: {bytes_text(len(self.picture))}"

    def to_json(self) -> dict[str, Any]:
        """Return the shares of PEs in each colour over time, and warnings."""
        warnings = [printable(text) for text in self.warnings]
        return {"over_time": list(self.picture.over_time), "warnings": warnings}


MOST_PANELS = 4
"""Further parameters are not drawn."""

_CURVE_POINTS = 200


def fit_figure(
    fitted: Fitted, samples: EventTimings, names: tuple[str, ...], kind: Literal["svg", "png"]
) -> bytes:
    """Return the figure of an event, with a panel for each parameter.

    With one parameter the fit is a curve with its 90 % interval; with more, each sample has its
    predicted time. Raise `UsageError` if matplotlib is not installed.
    """
    panels = max(1, min(samples.parameters, MOST_PANELS))
    with drawing((1 + 4 * panels, 4)) as (figure, saved):
        for index, axes in enumerate(np.atleast_1d(figure.subplots(1, panels, sharey=True))):
            at = samples.params[:, index] if samples.parameters else np.zeros(len(samples.seconds))
            axes.plot(at, samples.seconds, ".", color="#1f77b4", alpha=0.6, label="measured")
            _draw_fit(axes, fitted, samples, at)
            axes.set_xlabel(printable(names[index]) if names else "")
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, alpha=0.3)
        figure.axes[0].set_ylabel("seconds")
        figure.axes[0].legend()
        figure.suptitle(event_label(samples.event, samples.parameters, names=names))
        return saved(kind)


def _draw_fit(axes: Any, fitted: Fitted, samples: EventTimings, at: Floats) -> None:
    """Draw the predictions: a curve over one parameter, else a point for each sample."""
    if samples.parameters != 1:
        predicted = fitted.prediction(samples.event, samples.params).seconds
        axes.plot(at, predicted, "x", color="#d62728", alpha=0.6, label="predicted")
        return
    line = np.linspace(at.min(), at.max(), _CURVE_POINTS)[:, None]
    low, high = fitted.bounds(samples.event, line)
    axes.fill_between(line[:, 0], low, high, color="#d62728", alpha=0.15, label="90 % interval")
    seconds = fitted.prediction(samples.event, line).seconds
    axes.plot(line[:, 0], seconds, color="#d62728", label="predicted")
