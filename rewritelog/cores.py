"""The number of cores that a job may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rewritelog.errors import UsageError

_jobs: ContextVar[int] = ContextVar("rewritelog_jobs", default=0)


@contextmanager
def limited_to(jobs: int) -> Iterator[None]:
    """Limit the `with` block to this many cores; 0 means all that the process may use.

    Raise `UsageError` for a negative number.
    """
    token = _jobs.set(_checked_jobs(jobs))
    try:
        yield
    finally:
        _jobs.reset(token)


def cores(jobs: int = 0) -> int:
    """Return how many cores to use: `jobs`, or for 0 the limit of the surrounding `limited_to`.

    Raise `UsageError` for a negative number.
    """
    return _checked_jobs(jobs) or _jobs.get() or len(os.sched_getaffinity(0))


def _checked_jobs(jobs: int) -> int:
    if jobs < 0:
        raise UsageError(f"the number of jobs must be 0 or more, not {jobs}")
    return jobs
