"""Large logs: rewrites against a plain copy, memory, and the foreign byte order."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from functools import partial

from benchmarks.logs import BASE, SAMPLE, Workshop, fitted, timeline_bytes
from benchmarks.process import Ran, in_turns, median_s, peak, rewritelog, run, walls
from benchmarks.results import Result, Row, Table, ratio_text, verdict

ROUNDS = 7
FLUSHING = ("", ", flushed")
CPP_MB_S = 84
"""The original C++ tool's speed on such logs."""
MEMORY_LIMIT, MEMORY_AIM = 512e6, 300e6


def against_copy(shop: Workshop) -> Result:
    """Measure both models, less their start-up, against a copy in the same rounds.

    Both as they are, with the output flushed to the disk, and without.
    """
    logs = shop.logs(shop.scale)
    least_squares, its_sample = fitted(logs), fitted(SAMPLE)
    ran = in_turns(
        {
            "copy": shop.copying(logs),
            "copy, flushed": shop.copying(logs, flush=True),
            "constant": shop.rewriting(logs, "--no-flush"),
            "constant, flushed": shop.rewriting(logs),
            "constant, nothing written": partial(
                run, rewritelog("rewrite", logs, "--dry-run", *BASE)
            ),
            "constant, sample": shop.rewriting(SAMPLE, "--no-flush"),
            "least-squares": shop.rewriting(logs, "--no-flush", *least_squares),
            "least-squares, flushed": shop.rewriting(logs, *least_squares),
            "least-squares, sample": shop.rewriting(SAMPLE, "--no-flush", *its_sample),
        },
        ROUNDS,
    )
    size = timeline_bytes(logs)
    kinds = (("constant", 1.5, 20), ("least-squares", 4.0, 10))
    net = [
        _net_row(ran, model, flushed, limit) for model, limit, _ in kinds for flushed in FLUSHING
    ]
    gross = [
        _gross_row(ran, model, flushed, times, size)
        for model, _, times in kinds
        for flushed in FLUSHING
    ]
    return Result([*net, *gross], [_runs_table(ran, size)])


def _net_row(ran: dict[str, list[Ran]], model: str, flushed: str, limit: float) -> Row:
    nets = _less(ran[model + flushed], ran[f"{model}, sample"])
    copies = ran["copy" + flushed]
    ratios = [net / copy for net, copy in zip(nets, walls(copies), strict=True)]
    middle = statistics.median(ratios)
    seconds = f"{statistics.median(nets):.2f} s, the copy {median_s(copies):.2f} s"
    return Row(
        f"{model} model, net{flushed}",
        f"{ratio_text(ratios, middle)}; {seconds}",
        f"≤ {limit:g} × the copy",
        verdict(ratios, limit),
    )


def _gross_row(
    ran: dict[str, list[Ran]], model: str, flushed: str, limit: float, size_bytes: int
) -> Row:
    """Return a row with the speed, and that of a copy after the same start-up as the limit."""
    runs = ran[model + flushed]
    speed = size_bytes / 1e6 / median_s(runs)
    copied_s = median_s(ran["copy" + flushed]) + median_s(ran[f"{model}, sample"])
    copied = size_bytes / 1e6 / copied_s
    measured = (
        f"{speed / CPP_MB_S:.1f} × ({speed:.0f} MB/s); start-up and a copy: {copied / CPP_MB_S:.1f}"
    )
    times = [run_s * CPP_MB_S * 1e6 / size_bytes for run_s in walls(runs)]
    return Row(
        f"{model} model, gross{flushed}",
        f"{measured} ×",
        f"≥ {limit:g} × {CPP_MB_S} MB/s",
        verdict(times, 1 / limit),
    )


def _less(runs: Sequence[Ran], start_up: Sequence[Ran]) -> list[float]:
    """Return the wall times of runs less those of the sample in the same round, in seconds."""
    return [a - b for a, b in zip(walls(runs), walls(start_up), strict=True)]


def _runs_table(ran: dict[str, list[Ran]], size_bytes: int) -> Table:
    rows = []
    for name, runs in ran.items():
        speed = "" if "sample" in name else f"{size_bytes / 1e6 / median_s(runs):.0f}"
        rows.append(
            [
                name,
                f"{median_s(runs):.3f}",
                f"{min(walls(runs)):.3f}",
                f"{max(walls(runs)):.3f}",
                *_processor(runs),
                speed,
                f"{peak(runs) / 1e6:.0f}",
            ]
        )
    title = f"Whole processes, {ROUNDS} rounds in turns, {size_bytes / 1e6:.0f} MB of timelines:"
    return Table(
        title,
        ["run", "median s", "min s", "max s", "user s", "system s", "MB/s", "peak MB"],
        rows,
    )


def _processor(runs: Sequence[Ran]) -> list[str]:
    """Return the medians of the processor's time in own code and in the kernel."""
    times = zip(*((ran.user_s, ran.system_s) for ran in runs), strict=True)
    return [f"{statistics.median(time):.2f}" for time in times]


def memory(shop: Workshop) -> Result:
    """Measure the peak of resident memory of the models at two sizes that differ 20 times."""
    peaks = {}
    for scale in (shop.small_scale, shop.scale):
        logs = shop.logs(scale)
        choices = {
            "constant": [],
            "least-squares": fitted(logs),
            "sampled": fitted(logs, "sampled"),
        }
        for model, words in choices.items():
            peaks[model, scale] = shop.rewriting(logs, *words)().peak_bytes
    worst = max(peaks.values())
    measured = ", ".join(
        f"{model} {scale:g} GB {value / 1e6:.0f} MB" for (model, scale), value in peaks.items()
    )
    aim = "" if worst <= MEMORY_AIM else "; above the aim of 300 MB"
    return Result(
        [
            Row(
                "peak resident memory",
                measured + aim,
                "≤ 512 MB; the aim is 300 MB",
                worst <= MEMORY_LIMIT,
            )
        ]
    )


def big_endian(shop: Workshop) -> Result:
    """Measure logs in foreign byte order against the same logs in that of the machine."""
    big = shop.logs(shop.scale, "big")
    ran = in_turns(
        {
            "little": shop.rewriting(shop.logs(shop.scale)),
            "big": shop.rewriting(big),
            "sample": shop.rewriting(SAMPLE),
        },
        ROUNDS,
    )
    shutil.rmtree(big)  # or what comes next finds the other logs gone from the file cache
    pairs = zip(_less(ran["big"], ran["sample"]), _less(ran["little"], ran["sample"]), strict=True)
    ratios = [big / little for big, little in pairs]
    middle = statistics.median(ratios)
    return Result(
        [
            Row(
                "big-endian logs, constant model, net, against little-endian ones",
                ratio_text(ratios, middle),
                "≤ 2 ×",
                verdict(ratios, 2),
            )
        ]
    )
