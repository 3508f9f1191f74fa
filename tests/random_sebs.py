"""Random SEBs by the million: times and regions of every size, down to one ulp and to nothing.

They are made, rewritten by the kernel that rewrites logs, and judged with numpy, a batch of SEBs of
one shape at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from blocks import loaded_from, params_of, rewritten
from numpy.typing import NDArray

from rewritelog.formats.bgtrace.declaration import Layout, layout

BATCH = 20_000
MESSAGES = 5

_TEXT_BYTES = 17
_TEXTS = [b"startTraceBigSim\0", b"endTraceBigSim\0\0\0"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Batch:
    """SEBs of one shape, as they are in a timeline, and what a model says of their brackets."""

    lay: Layout
    sebs: NDArray[Any]
    seconds: Floats
    """Shape (SEBs, brackets); NaN where the model has none."""
    factor: float

    @property
    def start(self) -> Floats:
        return native(self.sebs["head"]["start_time"])

    @property
    def end(self) -> Floats:
        return native(self.sebs["head"]["end_time"])

    @property
    def sent(self) -> Floats:
        """Shape (SEBs, messages), rising in each SEB."""
        return native(self.sebs["message"]["send_time"])

    @property
    def received(self) -> Floats:
        return native(self.sebs["message"]["recv_time"])

    @property
    def marks(self) -> Floats:
        """Shape (SEBs, 2 · brackets), rising in each SEB."""
        return native(self.sebs["event"]["r_time"])

    def lengths(self) -> tuple[Floats, Floats]:
        """Return the old and the new lengths of all regions, shape (SEBs, regions)."""
        bounds = np.column_stack([np.zeros(len(self.sebs)), self.marks, self.end - self.start])
        old = np.diff(bounds)
        new = old * self.factor
        predicted = ~np.isnan(self.seconds)
        new[:, 1::2][predicted] = self.seconds[predicted]
        return old, new

    def rewritten(self, *, keep_recv: bool) -> Batch:
        """Return the batch as the kernel rewrites it."""
        sebs = self.sebs.copy()
        brackets = self.seconds.shape[1]
        numbers = np.repeat(np.arange(len(sebs)), brackets)
        buffer = sebs.view(np.uint8)
        bounds = (np.array([k], dtype=np.int64) for k in (0, len(buffer), len(sebs)))
        loaded = loaded_from(self.lay, buffer, *bounds)
        records = params_of(np.zeros_like(numbers), numbers)
        rewritten(loaded, records, self.seconds.ravel(), self.factor, keep_recv=keep_recv)
        return Batch(self.lay, sebs, self.seconds, self.factor)


def native(values: NDArray[Any]) -> Floats:
    """Return numbers in this machine's byte order."""
    return values.astype(np.float64)


def random_batch(draw: np.random.Generator, count: int = BATCH) -> Batch:
    """Return a batch with up to three brackets in each SEB, in a random version and byte order."""
    lay = layout(int(draw.integers(0, 7)), "little" if draw.random() < 0.5 else "big")
    brackets = int(draw.integers(0, 4))
    start = _starts(draw, count)
    end = _ends(draw, start)
    marks = _marks(draw, end - start, 2 * brackets)
    sent = _sends(draw, start, end, marks)
    sebs = sebs_of(lay, start, end, marks, sent)
    sebs["message"]["recv_time"] += draw.random(sent.shape) * (draw.random(sent.shape) < 0.5)
    lengths = np.diff(marks)[:, ::2] if brackets else np.zeros((count, 0))
    factor = draw.choice([1.0, 0.5, np.nextafter(1, 2), 10.0 ** draw.uniform(-3, 3)])
    return Batch(lay, sebs, _predictions(draw, lengths), float(factor))


def sebs_of(lay: Layout, start: Floats, end: Floats, marks: Floats, sent: Floats) -> NDArray[Any]:
    """Return SEBs with marks and messages at the times given, a row of `marks` and `sent` each."""
    brackets = marks.shape[1] // 2
    sebs = np.zeros(len(start), dtype=_shape(lay, brackets))
    sebs["head"]["start_time"], sebs["head"]["end_time"] = start, end
    sebs["head"]["exec_time"], sebs["head"]["seqno"] = end - start, np.arange(len(start))
    sebs["messages"], sebs["events"] = MESSAGES, 2 * brackets
    sebs["event"]["type"], sebs["event"]["number"] = 3, _TEXT_BYTES
    sebs["event"]["text"] = np.array(_TEXTS * brackets, dtype=f"V{_TEXT_BYTES}")
    sebs["event"]["r_time"] = marks
    sebs["message"]["send_time"] = sebs["message"]["recv_time"] = sent
    return sebs


def _shape(lay: Layout, brackets: int) -> np.dtype[Any]:
    number = np.dtype("i4").newbyteorder("<" if lay.order == "little" else ">")
    event = [
        *((name, lay.event[name]) for name in lay.event.names or ()),
        ("text", f"V{_TEXT_BYTES}"),
    ]
    return np.dtype(
        [
            ("head", lay.seb),
            ("messages", number),
            ("message", lay.message, (MESSAGES,)),
            ("events", number),
            ("event", event, (2 * brackets,)),
            ("backward", number),
            ("forward", number),
        ]
    )


def _one_of(draw: np.random.Generator, *choices: Floats) -> Floats:
    """Return for each place the value that one of the choices has there, each as likely."""
    choice = draw.integers(0, len(choices), size=choices[0].shape)
    return np.choose(choice, choices)


def _starts(draw: np.random.Generator, count: int) -> Floats:
    size = 10.0 ** draw.uniform(-12, 7, count)
    plain = draw.random(count)
    return _one_of(draw, np.zeros(count), size, plain, np.round(plain, 3), -size)


def _ends(draw: np.random.Generator, start: Floats) -> Floats:
    """Return ends that lie a few ulps to many orders of magnitude behind the starts."""
    duration = 10.0 ** draw.uniform(-14, 4, len(start))
    ulps = draw.integers(1, 10, len(start)).astype(np.float64) * np.spacing(np.abs(start))
    end: Floats = start + _one_of(draw, duration, np.round(duration, 6), ulps, np.abs(start))
    return np.maximum(end, np.nextafter(start, np.inf))


def _marks(draw: np.random.Generator, duration: Floats, count: int) -> Floats:
    marks = np.sort(draw.random((len(duration), count)) * duration[:, None])
    for k in range(count):
        before = marks[:, k - 1] if k else np.zeros(len(duration))
        near = np.nextafter(before, np.inf)
        marks[:, k] = _one_of(draw, marks[:, k], marks[:, k], before, near, duration)
        marks[:, k] = np.clip(marks[:, k], before, duration)
    return marks


def _sends(draw: np.random.Generator, start: Floats, end: Floats, marks: Floats) -> Floats:
    """Return rising times in each SEB: anywhere, at its ends, at its marks and an ulp from them."""
    shape = (len(start), MESSAGES)
    first, last = (np.broadcast_to(bound[:, None], shape) for bound in (start, end))
    anywhere = first + draw.random(shape) * (last - first)
    choices = [anywhere, anywhere, first, last]
    if marks.shape[1]:
        at = first + np.take_along_axis(marks, draw.integers(0, marks.shape[1], shape), axis=1)
        choices += [at, np.nextafter(at, np.inf), np.nextafter(at, -np.inf)]
    return np.sort(np.clip(_one_of(draw, *choices), first, last))


def _predictions(draw: np.random.Generator, lengths: Floats) -> Floats:
    """Return what a model says: nothing, zero, the old length or an ulp from it, or any other."""
    other = 10.0 ** draw.uniform(-14, 4, lengths.shape)
    return _one_of(
        draw,
        np.full_like(lengths, np.nan),
        np.zeros_like(lengths),
        lengths,
        np.nextafter(lengths, np.inf),
        np.maximum(np.nextafter(lengths, -np.inf), 0),
        other,
        lengths * 10.0 ** draw.uniform(-3, 3, lengths.shape),
    )


def predict_detailed(old: Batch, new: Batch) -> dict[str, int]:
    """Return how many times break each promise of a rewrite."""
    start, end = new.start, new.end
    sent, marks = new.sent, new.marks
    lengths, new_lengths = old.lengths()
    taken = native(new.sebs["head"]["exec_time"])
    same = (lengths == new_lengths).all(axis=1)
    total = np.where(same, old.end - old.start, np.cumsum(new_lengths, axis=1)[:, -1])
    at_end = old.sent == old.end[:, None]
    return {
        "start moved": _count(start != old.start),
        "duration is not the sum of its regions": _count(taken != total),
        "end is not start and duration": _count(~same & (end != start + total)),
        "sent before the SEB": _count(sent < start[:, None]),
        "sent after the SEB": _count(sent > end[:, None]),
        "sent in another order": _count(np.diff(sent) < 0),
        "sent at the end, and not any more": _count(at_end & (sent != end[:, None])),
        "received before it was sent": _count(new.received < sent),
        "marks in another order": _count(np.diff(marks) < 0),
        "marks outside": _count((marks < 0) | (marks > (end - start)[:, None])),
        "touched without a cause": _count(old.sebs[same] != new.sebs[same]),
    }


def _count(wrong: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(wrong))
