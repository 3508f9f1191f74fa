"""Conversion between log versions and byte orders, against the log library and construct."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from chosen import by_tier
from commands import rewritelog as rewritelog_command
from logbuilder import mark, message, seb, write_logs
from oracle import VERSIONS_AND_ORDERS, rich_timelines

import rewritelog
from rewritelog import converting, open_logs
from rewritelog.converting import Conversion, Loss
from rewritelog.errors import (
    DamagedLogError,
    OutputError,
    OutputWarning,
    RewriteLogError,
    UsageError,
)
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS, ByteOrder
from rewritelog.formats.bgtrace.logset import LogSet
from rewritelog.progress import listening


def contents(folder: Path, pattern: str = "bgTrace*") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(pattern)}


def run(source: Path | LogSet, out: Path, **options: Any) -> Conversion:
    public: Any = rewritelog
    converted: Conversion = public.convert(source, out, **options)
    return converted


@pytest.mark.parametrize(("version", "order"), oracle.WRITTEN_SETS)
def test_bytes_are_the_librarys(
    reference: Path, tmp_path: Path, version: int, order: ByteOrder
) -> None:
    source = reference / "cells/emulation"
    done = run(source, tmp_path / "out", log_version=version, byte_order=order, lossy=True)
    expected = contents(reference / oracle.WRITTEN_SETS[version, order])
    assert contents(tmp_path / "out") == expected
    assert (done.sebs, done.messages) == (676, 403)
    assert done.bytes_out == sum(map(len, expected.values())) - 60


@pytest.mark.parametrize("version", range(7))
def test_big_and_little_of_the_library_become_one_another(
    reference: Path, tmp_path: Path, version: int
) -> None:
    little, big = (reference / oracle.WRITTEN_SETS[version, order] for order in oracle.ORDERS)
    run(little, tmp_path / "big", byte_order="big")
    run(big, tmp_path / "little", byte_order="little")
    assert contents(tmp_path / "big") == contents(big)
    assert contents(tmp_path / "little") == contents(little)


def test_same_version_and_order_change_no_byte(log_set: Path, tmp_path: Path) -> None:
    done = run(log_set, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(log_set)
    assert contents(tmp_path / "out", "param.*") == contents(log_set, "param.*")
    assert done.losses == ()
    assert done.bytes_in == done.bytes_out


def test_newest_version_and_back_change_no_byte(log_set: Path, tmp_path: Path) -> None:
    version, order = oracle.format_of(log_set)
    other = oracle.ORDERS[1 - oracle.ORDERS.index(order)]
    run(log_set, tmp_path / "up", log_version=6, byte_order=other)
    assert oracle.same_as_kernel(tmp_path / "up") > 0
    run(tmp_path / "up", tmp_path / "back", log_version=version, byte_order=order)
    back, original = contents(tmp_path / "back"), contents(log_set)
    assert back["bgTrace"][:52] == original["bgTrace"][:52]
    assert back.pop("bgTrace")[52:] in (original.pop("bgTrace")[52:], bytes(4))
    assert back == original


@pytest.mark.parametrize(
    ("version", "order"),
    by_tier(VERSIONS_AND_ORDERS, VERSIONS_AND_ORDERS[::4], VERSIONS_AND_ORDERS),
)
def test_every_version_to_every_other_as_construct_has_it(
    tmp_path: Path, version: int, order: ByteOrder
) -> None:
    source = write_logs(
        tmp_path / "in", rich_timelines(), files=2, wth=2, log_version=version, order=order
    )
    for target, target_order in VERSIONS_AND_ORDERS:
        out = tmp_path / f"v{target}-{target_order}"
        run(source, out, log_version=target, byte_order=target_order, lossy=True)
        assert contents(out) == oracle.converted(source, target, target_order), out.name


@pytest.mark.parametrize("block_bytes", [1, 200, 1000])
def test_long_timelines_are_converted_in_parts(tmp_path: Path, block_bytes: int) -> None:
    source = write_logs(tmp_path / "in", rich_timelines(), files=2, wth=2)
    logs = replace(open_logs(source), block_bytes=block_bytes)
    done = run(logs, tmp_path / "out", log_version=2, byte_order="big", lossy=True)
    assert contents(tmp_path / "out") == oracle.converted(source, 2, "big")
    assert done.sebs == 10
    assert [(loss.field, loss.count, loss.pe, loss.seb) for loss in done.losses] == [
        ("mpiOp", 4, 0, 1),
        ("mpiSize", 4, 0, 1),
        ("charm_ep", 3, 0, 1),
        ("objId[3]", 3, 0, 1),
    ]


def test_loss_stops_and_names_everything(reference: Path, tmp_path: Path) -> None:
    with pytest.raises(RewriteLogError) as caught:
        run(reference / "cells/emulation", tmp_path / "out", log_version=1)
    assert str(caught.value).endswith(
        "log version 1 cannot hold charm_ep of 384 SEBs (first in PE 0, SEB 1); "
        "objId of 352 SEBs (first in PE 0, SEB 1); "
        "lossy=True converts anyway and drops them"
    )
    assert list(tmp_path.iterdir()) == []


def test_loss_leaves_the_folder_that_force_would_replace(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", rich_timelines())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").write_text("kept")
    with pytest.raises(RewriteLogError, match="lossy=True"):
        run(source, tmp_path / "out", log_version=0, force=True)
    assert contents(tmp_path / "out", "*") == {"old": b"kept"}


@pytest.mark.parametrize(
    ("version", "lowest", "field", "records", "fields"),
    [
        (6, 5, "mpiOp", "SEBs", {"mpi_op": 2, "mpi_size": 0}),
        (4, 3, "charm_ep", "SEBs", {"charm_ep": 0}),
        (3, 2, "objId[3]", "SEBs", {"obj_id": (-1, -1, -1, 0)}),
        (2, 1, "objId", "SEBs", {"obj_id": (-1, 0, -1)}),
        (1, 0, "group", "messages", {"messages": [message(0.5), message(0.5, group=0)]}),
    ],
)
def test_each_field_is_lost_below_its_version(
    tmp_path: Path, version: int, lowest: int, field: str, records: str, fields: dict[str, Any]
) -> None:
    plain, telling = seb(0.0, 1.0), seb(0.0, 1.0, **fields)
    timelines = [[plain], [plain, plain, telling, telling]]
    for order in oracle.ORDERS:
        source = write_logs(tmp_path / f"in-{order}", timelines, log_version=version, order=order)
        out = tmp_path / f"out-{order}"
        for same in range(lowest + 1, 7):
            assert run(source, out, log_version=same, force=True).losses == ()
        with pytest.raises(RewriteLogError, match="lossy=True"):
            run(source, out, log_version=lowest, force=True)
        done = run(source, out, log_version=lowest, lossy=True, force=True)
        assert done.losses == (Loss(field, 2, records, 1, 2),)
        assert f"dropped: {field} of 2 {records} (first in PE 1, SEB 2)" in done.text()
    assert str(Loss("ep", 1, "SEBs", 0, 0)) == "ep of 1 SEB (first in PE 0, SEB 0)"


def test_garbage_in_mpi_size_and_after_names_is_no_loss(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", [[seb(0.0, 1.0, mpi_size=77, messages=[message(0.5)])]])
    for version in LOG_VERSIONS:
        out = tmp_path / str(version)
        assert run(source, out, log_version=version).losses == ()
        assert b"msgep\0\xa5garbage" in (out / "bgTrace0").read_bytes()


def test_first_loss_is_that_of_the_lowest_pe(tmp_path: Path) -> None:
    """PE 1 is in the second file, PE 2 in the first one."""
    plain, telling = seb(0.0, 1.0), seb(0.0, 1.0, charm_ep=1)
    source = write_logs(tmp_path / "in", [[plain], [plain, telling], [telling]], files=2)
    done = run(source, tmp_path / "out", log_version=0, lossy=True)
    assert done.losses == (Loss("charm_ep", 2, "SEBs", 1, 1),)


@pytest.mark.parametrize("header_version", [0, 1])
@pytest.mark.parametrize(
    ("version", "summary_bytes", "target", "target_bytes"),
    [
        (0, 52, 0, 52),
        (0, 52, 3, 56),
        (1, 56, 0, 56),
        (6, 56, 6, 56),
        (6, 60, 0, 60),
        (0, 60, 6, 60),
    ],
)
def test_summary_says_the_version(
    tmp_path: Path,
    header_version: int,
    version: int,
    summary_bytes: int,
    target: int,
    target_bytes: int,
) -> None:
    source = write_logs(
        tmp_path / "in",
        [[seb(0.0, 1.0)]],
        log_version=version,
        summary_bytes=summary_bytes,
        header_version=header_version,
    )
    run(source, tmp_path / "out", log_version=target, byte_order="big")
    assert (tmp_path / "out" / "bgTrace").stat().st_size == target_bytes
    before, after = open_logs(source).summary, open_logs(tmp_path / "out").summary
    assert (after.log_version, after.order) == (target, "big")
    assert after.header_version == header_version
    assert after.thread_entry_point == before.thread_entry_point
    for name in ("bgTrace", "bgTrace0"):
        old, new = ((folder / name).read_bytes()[:16] for folder in (source, tmp_path / "out"))
        formats = {9, 12} if header_version == 0 else {10, 13}
        assert {place for place in range(16) if old[place] != new[place]} == formats


def test_odd_floats_keep_their_bits(tmp_path: Path) -> None:
    """Signalling NaNs, their payloads and −0 pass as bytes, never as numbers."""
    source = write_logs(tmp_path / "in", [[seb(0.0, 1.0, messages=[message(0.5)])]])
    raw = bytearray((source / "bgTrace0").read_bytes())
    odd = [bytes.fromhex("010000000000f07f"), bytes.fromhex("efbeadde0000f4ff"), bytes(7) + b"\x80"]
    begin = 24 + 4 + 24
    raw[begin : begin + 24] = b"".join(odd)
    (source / "bgTrace0").write_bytes(raw)
    run(source, tmp_path / "big", byte_order="big", log_version=0)
    assert b"".join(number[::-1] for number in odd) in (tmp_path / "big/bgTrace0").read_bytes()
    run(tmp_path / "big", tmp_path / "back", byte_order="little", log_version=6)
    assert (tmp_path / "back/bgTrace0").read_bytes()[begin : begin + 40] == raw[begin : begin + 40]


def test_companions_are_copied_and_nothing_else(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", rich_timelines())
    for name in ("param.0", "param.12", "cellsp.sts", "cellsp.0.log.gz", "bgTrace9", "notes"):
        (source / name).write_bytes(b"0 TRACEBIGSIM: " + name.encode())
    run(source, tmp_path / "out")
    kept = ("bgTrace", "bgTrace0", "cellsp.0.log.gz", "cellsp.sts", "param.0", "param.12")
    assert {name: (source / name).read_bytes() for name in kept} == contents(tmp_path / "out", "*")


def test_a_link_out_of_the_log_folder_is_not_copied(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", rich_timelines())
    (tmp_path / "secret").write_text("key")
    (source / "param.0").symlink_to("../secret")
    with pytest.warns(OutputWarning, match="is a link to a file outside of the log folders"):
        run(source, tmp_path / "out")
    assert not (tmp_path / "out" / "param.0").exists()
    done = rewritelog_command("convert", source, tmp_path / "out", "--force", "--fail-on-warning")
    assert done.returncode == 1  # there was no such option
    assert "is a link to a file outside of the log folders" in done.stderr


def test_file_without_timelines_is_written(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", [[seb(0.0, 1.0)], []], files=3)
    run(source, tmp_path / "out", byte_order="big", log_version=0)
    assert contents(tmp_path / "out") == oracle.converted(source, 0, "big")
    assert (tmp_path / "out" / "bgTrace2").stat().st_size == 20


def test_a_timeline_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_logs(tmp_path / "in", [[seb(0.0, 1.0)] * 3] * 5)
    size = int(np.diff(open_logs(source).files[0].borders)[0])
    monkeypatch.setattr(converting, "OFFSET_RANGE", size + 1)
    run(source, tmp_path / "out")
    raw = (tmp_path / "out" / "bgTrace0").read_bytes()
    monkeypatch.setattr(converting, "OFFSET_RANGE", size)
    with pytest.raises(OutputError, match=r"bgTrace0: the timeline of PE 0 would have 4 GiB"):
        run(source, tmp_path / "out", force=True)
    assert (tmp_path / "out" / "bgTrace0").read_bytes() == raw


def test_damaged_log_leaves_nothing(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", [[seb(0.0, 1.0)], [seb(0.0, 1.0, backward=[0])]])
    raw = bytearray((source / "bgTrace0").read_bytes())
    raw[-12:-8] = b"\xff\xff\xff\xff"
    (source / "bgTrace0").write_bytes(raw)
    with pytest.raises(DamagedLogError, match="PE 1, SEB 0, field number of backward"):
        run(source, tmp_path / "out", log_version=0)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_what_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", rich_timelines())
    newest = LOG_VERSIONS[-1]
    with pytest.raises(UsageError, match=f"log_version must be an integer from 0 to {newest}"):
        run(source, tmp_path / "out", log_version=newest + 1)
    with pytest.raises(UsageError, match="byte_order must be 'little' or 'big', not 'middle'"):
        run(source, tmp_path / "out", byte_order="middle")
    with pytest.raises(OutputError, match="would replace its own input"):
        run(source, source, force=True)
    shutil.copytree(source, tmp_path / "out")
    with pytest.raises(OutputError, match="not empty"):
        run(source, tmp_path / "out")


def test_progress_is_that_of_blocks(tmp_path: Path) -> None:
    source = write_logs(tmp_path / "in", [[seb(0.0, 1.0)] * 4] * 10)
    logs = replace(open_logs(source), block_bytes=1000)
    reported: list[tuple[str, int]] = []
    with listening(
        lambda stage, done, total, _: reported.append((stage, 100 * done // max(total, 1)))
    ):
        run(logs, tmp_path / "out", log_version=0, lossy=True)
    for stage in ("measuring", "converting"):
        steps = [done for name, done in reported if name == stage]
        assert len(steps) > logs.units_bytes // 2000
        assert steps[-1] == 100


def test_a_log_that_changes_between_the_passes_is_refused(tmp_path: Path) -> None:
    """The file keeps its size, and is a valid log by itself."""
    longer = [seb(0.0, 1.0, messages=[message(0.5)]), seb(1.0, 2.0)]
    (tmp_path / "other").mkdir()
    source = write_logs(tmp_path / "in", [longer])
    filled = [seb(0.0, 1.0, events=[mark(b"", 0.5)]), seb(1.0, 2.0)]
    missing = len((source / "bgTrace0").read_bytes())
    missing -= len((write_logs(tmp_path / "other", [filled]) / "bgTrace0").read_bytes())
    filled[0]["events"] = [mark(b" " * missing, 0.5)]
    other = (write_logs(tmp_path / "other", [filled]) / "bgTrace0").read_bytes()
    assert len(other) == (source / "bgTrace0").stat().st_size

    def change(stage: str, *_: object) -> None:
        if stage == "converting":
            (source / "bgTrace0").write_bytes(other)

    with listening(change), pytest.raises(DamagedLogError, match="changed during the run"):
        run(source, tmp_path / "out", log_version=0, lossy=True)
    assert not (tmp_path / "out").exists()
