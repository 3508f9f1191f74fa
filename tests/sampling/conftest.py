"""Timings for the tests of sampling."""

from timed import event, reference_timings, sample_timings

__all__ = ["event", "reference_timings", "sample_timings"]
