"""Fits to made lines of timings; prints JSON: `… child_fitting_made LINES PARAMETERS MODEL`.

The times are a product of three parameters beside a few terms, with noise of 3 %, over parameters
that range over two decades; every tenth set of parameters recurs.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from rewritelog.models.base import EventTimings
from rewritelog.models.registry import load_model


def main() -> None:
    """Fit once, and say how long it took."""
    lines, parameters, model = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    timings = (made_timings(lines, parameters),)
    began = time.perf_counter()
    fitted = load_model(model, {}).fit(timings)
    done = time.perf_counter()
    predicted = fitted.predict("kernel", timings[0].params[:1000])
    error = float(np.mean(np.abs(predicted / timings[0].seconds[:1000] - 1)))
    print(json.dumps({"lines": lines, "fit_s": done - began, "error": error}))


def made_timings(lines: int, parameters: int) -> EventTimings:
    """Return the lines, always the same ones."""
    rng = np.random.default_rng(lines)
    params = np.round(10 ** rng.uniform(0, 2, (lines, parameters)), 2)
    params[lines // 10 * 9 :] = params[: lines - lines // 10 * 9]
    p = params.T
    seconds = 2e-6 + 1e-9 * p[0] * p[1] * p[2] + 3e-8 * p[3] * np.log(p[3] + 1) + 2e-8 * p[4]
    return EventTimings("kernel", params, seconds * np.exp(rng.normal(0, 0.03, lines)))


if __name__ == "__main__":
    main()
