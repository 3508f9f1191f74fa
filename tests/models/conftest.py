"""Timings for the tests of models."""

from timed import event, reference_timings, sample_timings

__all__ = ["event", "reference_timings", "sample_timings"]
