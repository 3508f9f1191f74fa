"""What tests read out of saved pages, without a browser."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from rewritelog.arrays import Floats


def data_of(page: Path, name: str = "events-data") -> Any:
    """The JSON that a page's scripts work on."""
    match = re.search(
        f'<script type="application/json" id="{name}">(.*?)</script>', page.read_text(), re.DOTALL
    )
    assert match is not None
    return json.loads(match[1])


def points_of(event: dict[str, Any]) -> dict[str, Floats]:
    """The points of an event by column."""
    names = ["measured", "predicted", "low", "high", "outlier"]
    names += [f"p{k + 1}" for k in range(event["parameters"])]
    table = np.frombuffer(base64.b64decode(event["points"]), "<f4").reshape(len(names), -1)
    return dict(zip(names, table.astype(np.float64), strict=True))
