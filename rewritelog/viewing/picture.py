"""Pictures that a notebook shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewritelog.text import Readable, bytes_text, printable


class Picture(bytes):
    """The bytes of a picture; a notebook shows it.

    >>> picture = rewritelog.timeline("sample_logs/cells", pes=range(4))  # doctest: +SKIP
    >>> picture.kind  # doctest: +SKIP
    'svg'
    """

    kind: str
    """svg, png, pdf or html."""
    over_time: tuple[dict[str, Any], ...]
    """The share of PEs in each colour over time, for each timeline in the picture; JSON types."""

    def __new__(
        cls, content: bytes, kind: str, over_time: tuple[dict[str, Any], ...] = ()
    ) -> Picture:
        """Return the picture of these bytes."""
        picture = super().__new__(cls, content)
        picture.kind, picture.over_time = kind, over_time
        return picture

    def _repr_svg_(self) -> str | None:
        return self.decode() if self.kind == "svg" else None

    def _repr_png_(self) -> bytes | None:
        return bytes(self) if self.kind == "png" else None

    def _repr_html_(self) -> str | None:
        if self.kind != "html":
            return None
        from html import escape  # noqa: PLC0415 - only notebooks need it

        return f'<iframe srcdoc="{escape(self.decode())}" width="100%" height="600"></iframe>'

    def __repr__(self) -> str:
        return f"<Picture: {self.kind}, {len(self):,} bytes>"

    __str__ = __repr__


@dataclass(frozen=True, repr=False)
class WrittenPicture(Readable):
    """A picture that was written to a file."""

    path: Path
    picture: Picture

    def text(self) -> str:
        """Return the file and its size."""
        return f"{printable(str(self.path))}: {bytes_text(len(self.picture))}"

    def to_json(self) -> dict[str, Any]:
        """Return the shares of PEs in each colour over time."""
        return {"over_time": list(self.picture.over_time)}
