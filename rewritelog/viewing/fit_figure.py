"""The figure of one event's fit: measured and predicted seconds over each parameter."""

from __future__ import annotations

import io
from typing import Any, Literal

import numpy as np

from rewritelog.arrays import Floats
from rewritelog.models.base import EventTimings, ModelFit
from rewritelog.text import event_label, printable
from rewritelog.viewing.extra import drawing_defaults, require

MOST_PANELS = 4
"""Further parameters are not drawn."""

_CURVE_POINTS = 200


def fit_figure(
    fitted: ModelFit,
    samples: EventTimings,
    names: tuple[str, ...],
    kind: Literal["svg", "png"] = "svg",
) -> bytes:
    """Return the figure of an event, with a panel for each parameter.

    With one parameter the fit is a curve with its 90 % interval; with more, each sample has its
    predicted time. Raise `UsageError` if matplotlib is not installed.
    """
    figure_class = require("matplotlib.figure", "the figure").Figure
    panels = max(1, min(samples.parameters, MOST_PANELS))
    with drawing_defaults():
        figure = figure_class(figsize=(1 + 4 * panels, 4), layout="constrained")
        for index, axes in enumerate(np.atleast_1d(figure.subplots(1, panels, sharey=True))):
            at = samples.params[:, index] if samples.parameters else np.zeros(len(samples.seconds))
            axes.plot(at, samples.seconds, ".", color="#1f77b4", alpha=0.6, label="measured")
            _draw_fit(axes, fitted, samples, at)
            axes.set_xlabel(printable(names[index]) if names else "")
            axes.set_ylim(bottom=0)
            axes.grid(visible=True, alpha=0.3)
        figure.axes[0].set_ylabel("seconds")
        figure.axes[0].legend()
        label = event_label(samples.event, samples.parameters, names=names)
        figure.suptitle(label.replace("$", r"\$"))
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()


def _draw_fit(axes: Any, fitted: ModelFit, samples: EventTimings, at: Floats) -> None:
    """Draw the predictions: a curve over one parameter, else a point for each sample."""
    if samples.parameters != 1:
        predicted = fitted.predict(samples.event, samples.params)
        axes.plot(at, predicted, "x", color="#d62728", alpha=0.6, label="predicted")
        return
    line = np.linspace(at.min(), at.max(), _CURVE_POINTS)[:, None]
    low, high = fitted.interval(samples.event, line)
    axes.fill_between(line[:, 0], low, high, color="#d62728", alpha=0.15, label="90 % interval")
    axes.plot(line[:, 0], fitted.predict(samples.event, line), color="#d62728", label="predicted")
