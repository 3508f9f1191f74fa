"""The study of `docs/study.md`: logs of 16 sizes, their lost cycles, and a larger run predicted.

`python -m benchmarks.study FOLDER` makes the logs in a folder, prints what the page shows, and
draws its figures into `docs/figures`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

import rewritelog
from rewritelog.commands.fits import FitCommand
from rewritelog.evaluation.fit import fit
from rewritelog.evaluation.totals import RunPrediction
from rewritelog.replaying.network import Network
from rewritelog.replaying.study import StudyRun

DOCS = Path(__file__).parents[1] / "docs"
PES, SIZES = (8, 16, 32, 64), (16_000, 32_000, 64_000, 128_000)
LARGER = 128, 256_000
NETWORK = Network(latency=2e-6, bandwidth=1e9)
COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#8fd3b6", "#bbbbbb", "#f0e442", "#e69f00", "#d55e00",
           "#cc79a7", "#7a4988", "#000000")  # fmt: skip
HATCHES = ("", "", "", "", "", "//", "\\\\", "xx", "..", "++", "--")


def run(folder: Path, pes: int, size: int, timings_out: Path | None = None) -> StudyRun:
    """Make the logs of a size where they are missing, and split the time of their replay."""
    logs = folder / f"p{pes}-d{size}"
    if not logs.exists():
        rewritelog.synth(logs, pes=pes, sebs=1500, size=size, seed=pes + size, timings=0)
    variables = {"D": float(size)}
    return rewritelog.lost_cycles(
        logs, network=NETWORK, variables=variables, timings_out=timings_out
    )


def bars(runs: list[tuple[str, dict[str, float], float]], path: Path) -> None:
    """Draw each run's time as a bar of its categories, in seconds of the run."""
    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    names = list(runs[0][1])
    below = [0.0] * len(runs)
    for k, name in enumerate(names):
        heights = [categories[name] / pes for _, categories, pes in runs]
        labels = [label for label, _, _ in runs]
        axes.bar(labels, heights, bottom=below, label=name, color=COLOURS[k], hatch=HATCHES[k],
                 edgecolor="white", linewidth=0.3)  # fmt: skip
        below = [low + height for low, height in zip(below, heights, strict=True)]
    axes.set_ylabel("run time (s)")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), reverse=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw(runs: dict[tuple[int, int], StudyRun], truth: StudyRun, prediction: RunPrediction) -> None:
    """Draw the runs with the largest data, and the larger run as predicted and as it was."""
    largest = SIZES[-1]
    shown: Any = [(f"P = {pes}", runs[pes, largest].lost.totals_s, float(pes)) for pes in PES]
    bars(shown, DOCS / "figures" / "study-runs.svg")
    predicted = {part.category: part.seconds for part in prediction.categories}
    both: Any = [
        ("predicted", predicted, prediction.pes),
        ("replayed", truth.lost.totals_s, float(LARGER[0])),
    ]
    bars(both, DOCS / "figures" / "study-larger.svg")


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder to write to")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    plt.rcParams["svg.hashsalt"] = "rewritelog"  # the same bytes each time
    file, model = folder / "study.txt", folder / "model.json"
    file.unlink(missing_ok=True)
    runs = {(pes, size): run(folder, pes, size, file) for pes in PES for size in SIZES}
    fit(FitCommand((file,), formulas=DOCS / "lost-cycles.toml", output=model))
    prediction = rewritelog.predict_run(model, {"P": LARGER[0], "D": LARGER[1]})
    print(prediction.text())
    truth = run(folder, *LARGER)
    print(truth.text())
    draw(runs, truth, prediction)


if __name__ == "__main__":
    main()
