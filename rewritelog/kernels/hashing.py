"""The hash of `rewritelog.hashing`, compiled for single keys."""

from __future__ import annotations

from rewritelog import hashing
from tracebigsim.compiled import inner

mix = inner(hashing.mix)
