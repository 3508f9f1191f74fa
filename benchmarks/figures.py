"""`python -m benchmarks.figures docs/figures`: draws the figures of the documentation as SVG.

Needs matplotlib, which nothing else here does. Data: the project's own timings of `cells`, and
made ones of a kernel whose work is a product.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.process import ROOT
from benchmarks.trials import AUTO, ORIGINAL, Contender, k_folds
from rewritelog.models.base import EventTimings
from rewritelog.models.registry import load_model
from rewritelog.timings.read import read_timings

INK, ORANGE, BLUE = "#444444", "#d1495b", "#00798c"
MICRO = 1e6


def main() -> None:
    """Draw all figures into a folder."""
    folder = Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    mpl.rcParams.update(
        {
            "svg.hashsalt": "rewritelog",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    timings = read_timings([ROOT / "sample_logs" / "cells" / "timings.txt"]).timings
    _save(_cells(timings), folder / "cells.svg")
    _save(_product(), folder / "product.svg")


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def _cells(timings: tuple[EventTimings, ...]) -> Figure:
    """Draw the law of one parameter with its interval, and held-out lines of the other kernel."""
    bonded = next(one for one in timings if one.params.shape[1] == 1)
    pairs = next(one for one in timings if one.params.shape[1] == 2)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    fitted: Any = load_model("auto", {"exact_match": "never"}).fit((bonded,))
    n = np.linspace(bonded.params.min(), bonded.params.max(), 200)[:, None]
    low, high = fitted.interval(bonded.event, n)
    left.fill_between(
        n[:, 0], low * MICRO, high * MICRO, color=BLUE, alpha=0.2, lw=0, label="nine in ten lines"
    )
    left.plot(bonded.params[:, 0], bonded.seconds * MICRO, ".", color=INK, ms=3, label="measured")
    left.plot(n[:, 0], fitted.predict(bonded.event, n) * MICRO, color=BLUE, label="auto")
    left.set(title="Cell::bonded", xlabel="n", ylabel="µs", xlim=(0, None), ylim=(0, None))
    left.legend(frameon=False)
    held_out = _held_out(AUTO, pairs)
    right.loglog(pairs.seconds * MICRO, held_out * MICRO, ".", color=BLUE, ms=3)
    _diagonal(right, pairs.seconds * MICRO)
    for axis in (right.xaxis, right.yaxis):
        axis.set_ticks([3, 10, 30], ["3", "10", "30"])
        axis.set_ticks([], minor=True)
    right.set(
        title="Cell::pairForces, lines left out of the fit",
        xlabel="measured, µs",
        ylabel="predicted, µs",
    )
    return figure


def _product() -> Figure:
    """Draw what two models make of 30 calls of a kernel of repeats · n · log n."""
    rng = np.random.default_rng(1)

    def drawn(count: int) -> tuple[Any, Any]:
        low, high = np.log([1, 8]), np.log([100, 4096])
        params = np.round(np.exp(rng.uniform(low, high, (count, 2))))
        return params, 1e-7 * params[:, 0] * params[:, 1] * np.log(params[:, 1])

    params, seconds = drawn(30)
    timings = EventTimings("kernel", params, seconds * np.exp(rng.normal(0, 0.03, 30)))
    elsewhere, truth = drawn(200)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, contender, name, color in zip(
        figure.subplots(1, 2, sharex=True, sharey=True),
        (ORIGINAL, AUTO),
        ("least squares over 1, p, p²", "auto"),
        (ORANGE, BLUE),
        strict=True,
    ):
        fitted = load_model(contender.model, contender.options).fit((timings,))
        predicted = fitted.predict("kernel", elsewhere)
        error = np.mean(np.abs(predicted / truth - 1))
        shown = np.maximum(predicted, 1e-7)
        axes.loglog(truth * 1e3, shown * 1e3, ".", color=color, ms=3)
        _diagonal(axes, truth * 1e3)
        below = int((predicted <= 0).sum())
        said = f"{error:.1%}" if error < 1 else f"{error:,.0%}"
        title = f"{name}: mean error {said}"
        axes.set(title=title, xlabel="true, ms", ylabel="predicted, ms")
        if below:
            axes.text(
                0.98,
                0.12,
                f"{below} of {len(truth)} below zero, drawn at the bottom",
                transform=axes.transAxes,
                ha="right",
                color=color,
            )
    return figure


def _held_out(contender: Contender, samples: EventTimings) -> Any:
    """Return what fits without each line predict for it."""
    predicted = np.empty(len(samples.seconds))
    for split in k_folds((samples,), seed=0):
        (left_out,) = split.left_out
        fitted = load_model(contender.model, contender.options).fit(split.fitted_to((samples,)))
        predicted[left_out] = fitted.predict(samples.event, samples.params[left_out])
    return predicted


def _diagonal(axes: Any, values: Any) -> None:
    ends = [values.min(), values.max()]
    axes.plot(ends, ends, color=INK, lw=0.7, zorder=0)


if __name__ == "__main__":
    main()
