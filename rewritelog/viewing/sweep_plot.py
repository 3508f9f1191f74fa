"""The figure of a sweep, drawn by matplotlib, which the extra `[view]` installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewritelog import units
from rewritelog.errors import OutputError, UsageError
from rewritelog.replaying.network import QUANTITIES
from rewritelog.replaying.sweep import DILATION, Axis, Sweep
from rewritelog.viewing.extra import drawing_defaults, require

_KINDS = (".png", ".svg", ".pdf")
_MOST_LINES = 8
_MARKERS = "osD^vPX*"


def check_plot(path: Path) -> None:
    """Raise a `RewriteLogError` if no figure can be drawn to a path."""
    if path.suffix not in _KINDS:
        raise UsageError(f"{path}: a figure needs the ending {', '.join(_KINDS)}")
    _figure_class()


def _figure_class() -> Any:
    return require("matplotlib.figure", "--plot").Figure


def _axis_value(axis: Axis, value: str) -> float:
    read = units.number if axis.name == DILATION else QUANTITIES[axis.name].read
    return read(value, axis.name)


def write_plot(sweep: Sweep, path: Path) -> None:
    """Draw run time against the axis with the most values, a line per setting of the others."""
    new_figure = _figure_class()
    longest = max(range(len(sweep.axes)), key=lambda k: len(sweep.axes[k].values))
    axis = sweep.axes[longest]
    lines: dict[tuple[str, ...], list[tuple[float, float]]] = {}
    for point in sweep.points:
        others = (*point.values[:longest], *point.values[longest + 1 :])
        at = _axis_value(axis, point.values[longest])
        lines.setdefault(others, []).append((at, point.predicted_s))
    others_names = [other.name for k, other in enumerate(sweep.axes) if k != longest]
    with drawing_defaults():
        figure = new_figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.subplots()
        for k, (others, points) in enumerate(list(lines.items())[:_MOST_LINES]):
            label = ", ".join(f"{n} {v}" for n, v in zip(others_names, others, strict=True))
            points.sort()
            axes.plot(*zip(*points, strict=True), marker=_MARKERS[k], label=label or None)
        if len(lines) > _MOST_LINES:
            axes.set_title(f"{_MOST_LINES} of {len(lines)} settings")
        if all(at > 0 for points in lines.values() for at, _ in points) and len(axis.values) > 2:
            axes.set_xscale("log")
        unit = "" if axis.name == DILATION else f" ({QUANTITIES[axis.name].base})"
        axes.set_xlabel(f"{axis.name}{unit}")
        axes.set_ylabel("predicted run time (s)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        if others_names:
            axes.legend()
        try:
            figure.savefig(path, dpi=150)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
