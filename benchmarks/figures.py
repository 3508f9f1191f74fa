"""`python -m benchmarks.figures docs/figures`: draws the figures of the documentation as SVG.

Needs matplotlib, which nothing else here does. Data: the project's own timings of `cells`, and
made ones of kernels with known laws.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.process import ROOT
from benchmarks.trials import AUTO, ORIGINAL, Contender, k_folds
from rewritelog.models.base import EventTimings
from rewritelog.models.fitting.families import automatic_families
from rewritelog.models.fitting.pipeline import FitConfig, fit_event
from rewritelog.models.registry import load_model
from rewritelog.timings.read import read_timings

INK, ORANGE, BLUE = "#444444", "#d1495b", "#00798c"
COLOURS = (BLUE, ORANGE, "#edae49", "#66a182")
MICRO = 1e6


@dataclass(frozen=True)
class ProgramLaw:
    """A law of n and of a second parameter that takes two values, in nanoseconds."""

    title: str
    law: Callable[[Any, Any], Any]
    seconds: tuple[float, float]
    """The values of the second parameter."""
    lowest: float = 10.0
    highest: float = 1000.0


PROGRAM_LAWS = (
    ProgramLaw("(p2 == v)*T: a flag", lambda n, f: n * np.where(f == 1, 2, 10), (0.0, 1.0)),
    ProgramLaw("(p1 > k)*T: a cache", lambda n, f: n * f * np.where(n > 300, 4, 1), (5.0, 9.0)),
    ProgramLaw("min(p1, k): work up to a size", lambda n, f: f * np.minimum(n, 250), (5.0, 9.0)),
    ProgramLaw("abs(p1 - p2): a range", lambda n, m: 300 + 10 * np.abs(n - m), (200.0, 700.0)),
    ProgramLaw(
        "(p1 + p2)*log1p(p1 + p2): a merge", lambda n, m: (n + m) * np.log1p(n + m), (20, 700)
    ),
    ProgramLaw("2^min(p1, 2*max - min): a tree", lambda d, f: f * 2.0**d, (5.0, 9.0), 2.0, 12.0),
)


def main() -> None:
    """Draw all figures into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder to write to")
    folder = parser.parse_args().folder
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
    _save(_program_terms(), folder / "program-terms.svg")
    _save(_averaged_products(), folder / "averaged-products.svg")
    _save(_breaks(), folder / "breaks.svg")
    _save(_power_sums(), folder / "power-sums.svg")
    _save(_growth(), folder / "growth.svg")


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def _cells(timings: tuple[EventTimings, ...]) -> Figure:
    """Draw the law of one parameter with its interval, and held-out lines of the other kernel."""
    bonded = next(samples for samples in timings if samples.params.shape[1] == 1)
    pairs = next(samples for samples in timings if samples.params.shape[1] == 2)
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    fitted: Any = load_model("auto", {"exact_match": "never"}).fit((bonded,))
    n = np.linspace(bonded.params.min(), bonded.params.max(), 200)[:, None]
    low, high = fitted.interval(bonded.event, n)
    left.fill_between(
        n[:, 0], low * MICRO, high * MICRO, color=BLUE, alpha=0.2, lw=0, label="90 % interval"
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
        title="Cell::pairForces, held-out lines",
        xlabel="measured, µs",
        ylabel="predicted, µs",
    )
    return figure


def _product() -> Figure:
    """Draw what two models make of 30 calls of a kernel of repeats · n · log n."""
    rng = np.random.default_rng(1)

    def random_calls(count: int) -> tuple[Any, Any]:
        low, high = np.log([1, 8]), np.log([100, 4096])
        params = np.round(np.exp(rng.uniform(low, high, (count, 2))))
        return params, 1e-7 * params[:, 0] * params[:, 1] * np.log(params[:, 1])

    params, seconds = random_calls(30)
    timings = EventTimings("kernel", params, seconds * np.exp(rng.normal(0, 0.03, 30)))
    elsewhere, truth = random_calls(200)
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
        error_text = f"{error:.1%}" if error < 1 else f"{error:,.0%}"
        title = f"{name}: mean error {error_text}"
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
    for (left_out,) in k_folds((samples,), seed=0):
        model = load_model(contender.model, contender.options)
        fitted = model.fit((samples.part(~left_out),))
        predicted[left_out] = fitted.predict(samples.event, samples.params[left_out])
    return predicted


def _diagonal(axes: Any, values: Any) -> None:
    ends = [values.min(), values.max()]
    axes.plot(ends, ends, color=INK, lw=0.7, zorder=0)


def _program_terms() -> Figure:
    """Draw a kernel for each kind of program term, with what auto says of 60 lines of it."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    for axes, law in zip(figure.subplots(2, 3).flat, PROGRAM_LAWS, strict=True):
        rng = np.random.default_rng(11)
        n = np.round(np.exp(rng.uniform(np.log(law.lowest), np.log(law.highest), 60)))
        second = rng.choice(law.seconds, 60)
        times = law.law(n, second) * 1e-9 * np.exp(rng.normal(0, 0.05, 60))
        params = np.column_stack((n, second))
        fitted = load_model("auto", {}).fit((EventTimings("kernel", params, times),))
        line = np.round(np.geomspace(law.lowest, law.highest, 300))
        for value, colour in zip(law.seconds, (BLUE, ORANGE), strict=True):
            rows = second == value
            axes.plot(n[rows], times[rows] * MICRO, ".", color=colour, markersize=4)
            table = np.column_stack((line, np.full(len(line), value)))
            predicted = fitted.predict("kernel", table) * MICRO
            axes.plot(line, predicted, color=colour, linewidth=1, label=f"p2 = {value:g}")
        axes.set_yscale("log")
        axes.set_xscale("linear" if law.highest < 100 else "log")
        axes.set_title(law.title, fontsize=9)
        axes.set_xlabel("p1")
        axes.legend(frameon=False, fontsize=7)
        axes.set_ylabel("µs")
    return figure


def _averaged_products() -> Figure:
    """Draw what six calls of each of four kernels say of others, with averaged products or not."""
    few = automatic_families(6)
    without = {name: family for name, family in few.items() if name != "averaged products"}
    laws: dict[str, Any] = {
        "a·b + 1000": lambda a, b, _: a * b + 1000,
        "max(a, b)·c": lambda a, b, c: np.maximum(a, b) * c,
        "a·b·log b": lambda a, b, _: a * b * np.log(b),
        "a² + 500·c": lambda a, _b, c: a**2 + 500 * c,
    }
    rng = np.random.default_rng(3)
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    both = figure.subplots(1, 2, sharex=True, sharey=True)
    errors: list[list[float]] = [[], []]
    for (title, law), colour in zip(laws.items(), COLOURS, strict=True):
        params, elsewhere = (
            np.floor(np.exp(rng.uniform(np.log(4), np.log(1000), (count, 3)))) for count in (6, 200)
        )
        elsewhere = np.clip(elsewhere, params.min(axis=0), params.max(axis=0))
        times, truth = (1e-9 * law(*some.T) for some in (params, elsewhere))
        timings = EventTimings("kernel", params, times * np.exp(rng.normal(0, 0.03, 6)))
        for axes, families, panel_errors in zip(both, (without, few), errors, strict=True):
            predicted = fit_event(timings, FitConfig(families=families)).predict(elsewhere)
            axes.loglog(truth * MICRO, predicted * MICRO, ".", color=colour, ms=3, label=title)
            panel_errors.extend(np.abs(predicted / truth - 1).tolist())
    for axes, name, panel_errors in zip(both, ("without", "with"), errors, strict=True):
        _diagonal(axes, np.array([0.3, 1000.0]))
        heading = f"{name} averaged products: mean error {np.mean(panel_errors):.0%}"
        axes.set(title=heading, xlabel="true, µs", ylabel="predicted, µs")
    both[1].legend(frameon=False, fontsize=7)
    return figure


def _breaks() -> Figure:
    """Draw kernels whose power changes at a size, and jumps there, with what auto says of them."""
    rng = np.random.default_rng(12)
    n = np.round(np.exp(rng.uniform(np.log(10), np.log(100_000), 150))).astype(np.float64)
    laws: dict[str, Any] = {
        "a cache: n beyond 3000, √n before": np.sqrt(n) * np.maximum(n / 3000, 1) ** 0.5,
        "a protocol: 4 times as long beyond 3000": n**0.7 * np.where(n > 3000, 4, 1),
    }
    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, (title, sizes) in zip(figure.subplots(1, 2), laws.items(), strict=True):
        times = 1e-7 * sizes * np.exp(rng.normal(0, 0.08, len(n)))
        fitted = load_model("auto", {}).fit((EventTimings("kernel", n[:, None], times),))
        line = np.geomspace(n.min(), n.max(), 300)
        axes.plot(n, times * MICRO, ".", color=ORANGE, markersize=3)
        axes.plot(line, fitted.predict("kernel", line[:, None]) * MICRO, color=BLUE, linewidth=1)
        axes.set_title(title, fontsize=9)
        axes.set(xscale="log", yscale="log", xlabel="p1", ylabel="µs")
    return figure


def _power_sums() -> Figure:
    """Draw a kernel with work for each element and for each pair, with what auto says of it."""
    rng = np.random.default_rng(1)
    n, m = np.round(10 ** rng.uniform(1, 4, 120)), np.round(10 ** rng.uniform(0, 2, 120))
    times: Any = 4e-8 * n + 5e-10 * n**1.7 * m**0.6
    times *= np.exp(rng.normal(0, 0.05, len(n)))
    fitted = load_model("auto", {}).fit((EventTimings("kernel", np.column_stack((n, m)), times),))
    line = np.geomspace(n.min(), n.max(), 200)
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(n, times * MICRO, ".", color=ORANGE, markersize=3, label="120 lines")
    for second, style in ((1.0, ":"), (10.0, "--"), (100.0, "-")):
        table = np.column_stack((line, np.full(len(line), second)))
        seconds = fitted.predict("kernel", table)
        axes.plot(line, seconds * MICRO, style, color=BLUE, linewidth=1, label=f"p2 = {second:g}")
    axes.set(xscale="log", yscale="log", xlabel="p1", ylabel="µs")
    axes.legend(frameon=False)
    return figure


def _growth() -> Figure:
    """Draw predictions beyond the range of 40 lines, with their widening intervals."""
    rng = np.random.default_rng(4)
    n = np.round(np.exp(rng.uniform(np.log(10), np.log(300), 40)))
    m = rng.integers(1, 9, 40).astype(np.float64)
    times: Any = 1e-8 * n * np.log2(n) * np.exp(rng.normal(0, 0.08, 40))
    fitted: Any = load_model("auto", {}).fit(
        (EventTimings("kernel", np.column_stack((n, m)), times),)
    )
    line = np.geomspace(10, 30_000, 200)
    table = np.column_stack((line, np.full(len(line), 8.0)))
    low, high = fitted.interval("kernel", table)
    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(line, low * MICRO, high * MICRO, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(line, fitted.predict("kernel", table) * MICRO, color=BLUE, label="auto")
    axes.plot(line, 1e-2 * line * np.log2(line), "--", color=INK, linewidth=1, label="true")
    axes.plot(n, times * MICRO, ".", color=ORANGE, markersize=4, label="40 lines")
    axes.axvline(n.max(), color=INK, linewidth=0.5)
    axes.set(xscale="log", yscale="log", xlabel="p1", ylabel="µs")
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
