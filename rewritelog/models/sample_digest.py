"""A digest of samples, which identifies them in reports and model files."""

from __future__ import annotations

import hashlib

import numpy as np

from rewritelog.models.base import Timings


def digest_of(timings: Timings) -> str:
    """Return the SHA-256 in hex of all events, shapes and numbers in little-endian byte order."""
    digest = hashlib.sha256()
    for samples in timings:
        name = samples.event.encode(errors="surrogatepass")
        shape = np.array([len(name), *samples.params.shape], dtype="<i8")
        digest.update(shape.tobytes() + name)
        for numbers in (samples.params, samples.seconds):
            digest.update(np.ascontiguousarray(numbers, dtype="<f8").data)
    return digest.hexdigest()
