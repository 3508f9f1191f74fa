"""How the tests run, and where they find real logs.

Real logs are the project's own samples and the reference folder. Hypothesis runs few examples, and
many where the long tests run too.
"""

from __future__ import annotations

import os

for _library in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_library, "1")  # as the command does, before numpy is imported

from pathlib import Path

import numpy as np
import pytest
from chosen import by_tier
from hypothesis import HealthCheck, settings
from kinds import MakeTimings, ReferenceTimings
from oracle import REFERENCE, REFERENCE_SETS, SAMPLE_LOGS, SAMPLE_SETS
from timed import read_timings

from rewritelog.models.base import EventTimings

pytest_plugins = ["passed"]

SLOW_SETS = ("ampi-halo", "cells-2workers", "cells-version-3")
"""Samples that only the slow tests go through, each a variant of what the others hold."""

settings.register_profile(
    "quick",
    max_examples=10,
    derandomize=True,  # the same examples each time: none is found by luck
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("quick"), max_examples=200)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files anew."""
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files of printed texts anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Draw many examples where long tests are selected."""
    with_long = "not long" not in config.getoption("markexpr")
    settings.load_profile("long" if with_long else "quick")


@pytest.fixture(scope="session")
def reference() -> Path:
    """Return the reference folder; a test that needs it is skipped where it is missing."""
    return _present(REFERENCE)


@pytest.fixture(scope="session")
def sample_logs() -> Path:
    """Return the folder of the project's own sample logs."""
    return SAMPLE_LOGS


@pytest.fixture(
    scope="session",
    params=[
        *by_tier(
            [f"sample_logs/{name}" for name in SAMPLE_SETS],
            [f"sample_logs/{name}" for name in SAMPLE_SETS if name not in SLOW_SETS],
            [f"sample_logs/{name}" for name in SLOW_SETS],
        ),
        *by_tier(  # the others are copies of samples
            [f"reference/{name}" for name in REFERENCE_SETS],
            [f"reference/{name}" for name in REFERENCE_SETS if name not in SAMPLE_SETS],
        ),
    ],
)
def log_set(request: pytest.FixtureRequest) -> Path:
    """Return the folder of each real log set; a sample that is missing fails in the test."""
    folder, name = str(request.param).split("/", 1)
    return SAMPLE_LOGS / name if folder == "sample_logs" else _present(REFERENCE) / name


@pytest.fixture(scope="session")
def reference_timings() -> ReferenceTimings:
    """Return the timings of a reference set, by its folder's name."""

    def read(name: str) -> list[EventTimings]:
        path = REFERENCE / name / "timings.txt"
        if not path.exists():
            pytest.skip(f"no reference data: {path}")
        return read_timings(path)

    return read


@pytest.fixture(scope="session")
def sample_timings() -> list[EventTimings]:
    """Return the timings of the project's own kernels."""
    return read_timings(SAMPLE_LOGS / "cells" / "timings.txt")


@pytest.fixture(scope="session")
def event() -> MakeTimings:
    """Return a maker of the samples of `kernel`: columns of parameters, then seconds."""

    def make(*columns: object, seconds: object, name: str = "kernel") -> EventTimings:
        times = np.array(seconds, dtype=np.float64)
        params = np.empty((len(times), len(columns)))
        for place, column in enumerate(columns):
            params[:, place] = np.asarray(column)
        return EventTimings(name, params, times)

    return make


@pytest.fixture(scope="session")
def two_classes(event: MakeTimings) -> EventTimings:
    """Samples whose second parameter, 0 or 1, says how much their times vary."""
    rng = np.random.default_rng(5)
    kind = np.tile([0.0, 1.0], 200)
    p = rng.uniform(1, 100, 400)
    seconds = 1e-6 * p * np.exp(rng.normal(0, np.where(kind > 0, 0.3, 0.01)))
    return event(p, kind, seconds=seconds)


def _present(folder: Path) -> Path:
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder} (REWRITELOG_REFERENCE names the folder)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _elsewhere(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Run the tests in another folder, so that programs they start use the installed package."""
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
