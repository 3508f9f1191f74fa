"""The provenance file of OUT: what it was made from and how; equal runs write equal files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import rewritelog
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.formats.files import FORMAT, PROVENANCE_NAME, VERSION, read_provenance
from rewritelog.formats.traces import Traces
from rewritelog.models.base import Model, digest_of
from rewritelog.options import deciding
from rewritelog.rewriting.options import RewriteOptions
from rewritelog.text import json_text
from rewritelog.timings.read import TimingsRead


def write_provenance(
    draft: Path,
    logs: LogSet | Traces,
    options: RewriteOptions,
    model: Model[Any],
    timings: TimingsRead | None,
) -> None:
    """Write the file into the draft of OUT."""
    content = provenance_of(logs, options, model, timings)
    (draft / PROVENANCE_NAME).write_text(json_text(content, indent=2) + "\n", encoding="utf-8")


def provenance_of(
    logs: LogSet | Traces, options: RewriteOptions, model: Model[Any], timings: TimingsRead | None
) -> dict[str, Any]:
    """Return what determines the bytes of OUT: versions, options and digests, no paths or dates."""
    earlier = read_provenance(logs.folder)
    model_file = options.fitted if isinstance(options.fitted, Path) else None
    return {
        "format": FORMAT,
        "version": VERSION,
        "rewritelog": rewritelog.__version__,
        "options": deciding(options, RewriteOptions),
        "model": {
            "name": "fitted" if options.fitted else options.model_name,
            "options": dataclasses.asdict(model.options),
            "timing_lines": None if timings is None else timings.lines,
            "fitted_to": _source_of(model_file),
        },
        "sha256": {
            "samples": None if timings is None else digest_of(timings.timings),
            "formulas": _file_digest(options.formulas),
            "coefficients": _file_digest(options.coefficients),
            "model_file": _file_digest(model_file),
            "summary": _file_digest(logs.summary_path if isinstance(logs, LogSet) else None),
            **(
                {"event_params": _file_digest(options.event_params)} if options.event_params else {}
            ),
        },
        "timeline_bytes": logs.sizes,
        "rewritten_from": None if earlier is None else dict(earlier.content),
    }


def _file_digest(path: Path | None) -> str | None:
    return None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _source_of(model_file: Path | None) -> Any:
    """Return the source in a model file that has been read before."""
    if model_file is None:
        return None
    return json.loads(model_file.read_text(encoding="utf-8-sig"))["source"]
