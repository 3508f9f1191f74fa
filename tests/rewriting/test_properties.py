"""What holds for every log set: random ones, built by construct."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from blocks import in_blocks, loaded_from, params_of, rewritten
from hypothesis import assume, given
from hypothesis import strategies as st
from logbuilder import (
    END,
    START,
    bracket,
    mark,
    message,
    seb,
    timeline_bytes,
    write_logs,
    write_params,
    write_timings,
)
from oracle import rebuilt, same_as_kernel, walk

import rewritelog
from rewritelog.commands.durations import RecvPolicy, RewriteOptions
from rewritelog.formats.bgtrace.declaration import layout
from rewritelog.formats.bgtrace.records import records_of
from rewritelog.rewriting.run import rewrite

times = st.floats(0, 100).map(abs)


@st.composite
def sebs(draw: st.DrawFn) -> dict[str, Any]:
    start, end = draw(times), draw(times)
    duration = max(end - start, 0.0)
    inside = st.floats(-0.1, 1.1).map(lambda share: share * duration)
    marks = [
        mark(draw(st.sampled_from([START, END])), draw(inside))
        for _ in range(draw(st.integers(0, 4)))
    ]
    if draw(st.booleans()):
        a, b = sorted((draw(inside), draw(inside)))
        marks = [mark(START, a), mark(END, b)]
    other = {"type": 1, "r_time": draw(inside), "data": draw(st.integers(0, 99))}
    messages = [
        message(start + draw(inside), start + draw(inside), msg_id=k)
        for k in range(draw(st.integers(0, 5)))
    ]
    return seb(
        start,
        end,
        name=draw(st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name)),
        messages=messages,
        events=[*marks, other] if draw(st.booleans()) else marks,
        backward=draw(st.lists(st.integers(0, 50), max_size=3)),
        forward=draw(st.lists(st.integers(0, 50), max_size=3)),
    )


@st.composite
def log_sets(draw: st.DrawFn) -> dict[str, Any]:
    wth = draw(st.integers(1, 2))
    nodes = draw(st.integers(1, 4))
    timelines = [draw(st.lists(sebs(), max_size=5)) for _ in range(nodes * wth)]
    return {
        "timelines": timelines,
        "wth": wth,
        "files": draw(st.integers(1, 5)),
        "log_version": draw(st.integers(0, 6)),
        "order": draw(st.sampled_from(["little", "big"])),
        "header_version": draw(st.integers(0, 1)),
    }


def build(folder: Path, logs: dict[str, Any]) -> Path:
    settings = dict(logs)
    return write_logs(folder, settings.pop("timelines"), **settings)


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.iterdir() if path.name != "rewritelog.json")
    return {path.name: path.read_bytes() for path in paths}


@given(log_sets())
def test_construct_gives_back_the_bytes_and_the_kernels_say_the_same(logs: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        source = build(Path(folder), logs)
        assert rebuilt(source) == contents(source)
        same_as_kernel(source)


@given(log_sets(), st.sampled_from([150, 1000, 1 << 20]))
def test_dilation_1_and_no_model_give_the_same_bytes(logs: dict[str, Any], block: int) -> None:
    with TemporaryDirectory() as folder:
        source = build(Path(folder) / "in", logs)
        rewrite(in_blocks(source, block), Path(folder) / "out", RewriteOptions())
        assert contents(Path(folder) / "out") == contents(source)


@given(log_sets(), st.floats(1e-3, 1e3), st.sampled_from(["shift", "keep"]))
def test_only_times_of_rewritten_sebs_change(
    logs: dict[str, Any], factor: float, recv: RecvPolicy
) -> None:
    with TemporaryDirectory() as folder:
        source = build(Path(folder) / "in", logs)
        rewrite(source, Path(folder) / "out", RewriteOptions(dilation=factor, recv=recv))
        before, after = walk(source), walk(Path(folder) / "out")
        assert len(before) == len(after)
        for (*place, old), (*same_place, new) in zip(before, after, strict=True):
            assert place == same_place
            _assert_seb(old, new, factor)


def _assert_seb(old: Any, new: Any, factor: float) -> None:
    rewritten = old.end_time > old.start_time and factor != 1
    for name in old:
        if name in ("_io", "messages", "events", "exec_time", "end_time"):
            continue
        assert old[name] == new[name], name
    duration = (old.end_time - old.start_time) * (factor if rewritten else 1)
    np.testing.assert_allclose(
        new.end_time - new.start_time if rewritten else duration, duration, rtol=1e-9, atol=1e-12
    )
    if not rewritten:
        assert (new.exec_time, new.end_time) == (old.exec_time, old.end_time)
    for a, b in zip(old.messages, new.messages, strict=True):
        assert {k: v for k, v in a.items() if k not in ("_io", "send_time", "recv_time")} == {
            k: v for k, v in b.items() if k not in ("_io", "send_time", "recv_time")
        }
        if rewritten and old.start_time <= a.send_time <= old.end_time:
            assert new.start_time <= b.send_time <= new.end_time
        if a.recv_time >= a.send_time:
            assert b.recv_time >= b.send_time
    sent = sorted(
        zip((m.send_time for m in old.messages), (m.send_time for m in new.messages), strict=True)
    )
    assert [b for _, b in sent] == sorted(b for _, b in sent)
    for a, b in zip(old.events, new.events, strict=True):
        assert (a.type, a.data) == (b.type, b.data)


@given(log_sets(), st.data())
def test_blocks_and_threads_change_nothing(logs: dict[str, Any], data: st.DataObject) -> None:
    """The bytes and the report's figures are those of one block a file, however it is cut."""
    with TemporaryDirectory() as folder:
        source = build(Path(folder) / "in", logs)
        for pe, timeline in enumerate(logs["timelines"]):
            for index in range(len(timeline) + 1):
                if data.draw(st.booleans()):
                    write_params(source, pe, (index, "k", index))
        timings = write_timings(Path(folder) / "t", *[("k", 0.1 * k, float(k)) for k in range(4)])
        options: dict[str, Any] = {"model": "least-squares", "timings": (timings,), "dilation": 1.5}
        uncut = rewrite(source, Path(folder) / "a", RewriteOptions(**options, jobs=1))
        opened = in_blocks(source, 200)
        cut = rewrite(opened, Path(folder) / "b", RewriteOptions(**options, jobs=2))
        assert contents(Path(folder) / "a") == contents(Path(folder) / "b")
        uncut_json, cut_json = uncut.to_json(), cut.to_json()
        for key in ("counts", "durations_s", "events", "warnings"):
            assert uncut_json[key] == cut_json[key]


@st.composite
def regions(draw: st.DrawFn) -> tuple[Any, Any, Any, float]:
    """Bounds with regions down to one ulp or nothing, new lengths, and times anywhere inside."""
    base = draw(st.floats(1e-9, 1e3))
    bounds = [0.0]
    for _ in range(2 * draw(st.integers(0, 3)) + 1):
        step = draw(st.sampled_from(["nothing", "ulp", "some"]))
        last = bounds[-1]
        bounds.append(
            {
                "nothing": last,
                "ulp": float(np.nextafter(last, np.inf)),
                "some": last + base * draw(st.floats(0, 1)),
            }[step]
        )
    nothing = st.just(float("nan"))
    lengths = [draw(nothing | st.floats(0, 1e3)) for _ in bounds[1:]]
    if len(lengths) > 1:
        lengths[::2] = [float("nan")] * len(lengths[::2])
    assume(bounds[-1] > 0)
    inside = draw(st.lists(st.sampled_from(bounds) | st.floats(0, bounds[-1]), max_size=20))
    return np.array(sorted(inside)), np.array(bounds), np.array(lengths), draw(st.floats(1e-3, 1e3))


def mapped_times(times: Any, bounds: Any, lengths: Any, factor: float) -> Any:
    """What becomes of the times of log events in a SEB with these regions; it starts at 0."""
    middle = bounds[1:-1].reshape(-1, 2)
    pointers = [{"type": 1, "r_time": time, "data": 0} for time in times]
    marks = [event for start, end in middle for event in bracket(start, end)]
    timeline = timeline_bytes([seb(0.0, bounds[-1], events=[*marks, *pointers])], 6, "little")
    buffer = np.frombuffer(timeline, dtype=np.uint8)[4:].copy()
    ends = (np.array([k]) for k in (0, len(buffer), 1))
    loaded = loaded_from(layout(6, "little"), buffer, *ends)
    given_s = lengths[1::2] if len(middle) else lengths
    none = np.zeros(len(given_s), dtype=np.int64)
    rewritten(loaded, params_of(none, none), given_s, factor)
    return records_of(loaded).events["r_time"][len(marks) :]


@given(regions())
def test_the_mapping_keeps_order_and_meets_the_region_ends(case: Any) -> None:
    inside, bounds, lengths, factor = case
    moved = mapped_times(inside, bounds, lengths, factor)
    assert (np.diff(moved) >= 0).all()
    old = np.diff(bounds)
    new = np.where(np.isnan(lengths), old * factor, lengths)
    ends = np.concatenate([[0.0], np.cumsum(new)])
    if (new == old).all():
        assert (moved == inside).all()
        return
    assert (moved >= 0).all()
    assert (moved <= ends[-1]).all()
    mapped = mapped_times(bounds, bounds, lengths, factor)
    first = np.searchsorted(bounds, bounds)  # of bounds at one place the first one counts
    np.testing.assert_array_equal(mapped[bounds < bounds[-1]], ends[first][bounds < bounds[-1]])
    assert mapped[-1] == ends[-1]


def test_rewritten_logs_open_like_any_other(tmp_path: Path) -> None:
    write_logs(tmp_path / "in", [[seb(0, 1)], []], files=2)
    rewrite(tmp_path / "in", tmp_path / "out", RewriteOptions(dilation=2))
    assert list(rewritelog.open_logs(tmp_path / "out").sebs()["exec_time"]) == [2]
