"""`check` on files that are torn, mixed, missing or hostile: findings, and on with the rest."""

from __future__ import annotations

import os
import resource
import shutil
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blocks import in_blocks
from chosen import by_tier
from faulty import HANGS_S
from logbuilder import bracket, message, seb, write_logs
from oracle import WRITTEN_SETS, walk

from rewritelog.checking import run
from rewritelog.checking.findings import CheckReport, Findings
from rewritelog.checking.heads import read_heads
from rewritelog.checking.run import check_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import DamagedLogError, RewriteLogError
from rewritelog.formats.bgtrace import blocks
from rewritelog.rewriting.run import rewrite

HEAD = 16 + 4 + 4 * 4
"""Where the first timeline's count is in a file of four timelines."""
SEB_FIXED, MESSAGE = 101, 34
BLOCKS = [1 << 24, 300]


def i4(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


def overwrite(path: Path, offset: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[offset : offset + len(data)] = data
    path.write_bytes(content)


def check(folder: Path, **options: Any) -> CheckReport:
    return check_logs(folder, **options)


def shown(report: CheckReport, rule: str) -> str:
    return str(report.findings.shown[rule][0])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Four PEs in one file; PE 3 has a SEB that breaks a rule, so that one sees it was reached."""
    first = seb(0, 1, messages=[message(0.5)], events=bracket(0.2, 0.4), forward=[1])
    second = seb(1, 2, backward=[0])
    return write_logs(
        tmp_path / "in", [[first, second]] * 3 + [[first, second | {"exec_time": 9.0}]]
    )


def test_the_base_of_these_tests(logs: Path) -> None:
    assert check(logs).findings.counts == {"exec-time": 1}


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize(
    ("at", "number", "rule", "text"),
    [
        (SEB_FIXED, -1, "count", "negative message count -1"),
        (SEB_FIXED, 2**31 - 1, "count", "message count 2147483647 does not fit"),
        (SEB_FIXED + 4 + MESSAGE, -(2**31), "count", "negative log event count -2147483648"),
        (SEB_FIXED + 4 + MESSAGE, 10**9, "count", "log event count 1000000000 does not fit"),
        (SEB_FIXED + 8 + MESSAGE, 5, "event-type", "type 5; it is 1, 2 or 3"),
        (SEB_FIXED + 8 + MESSAGE + 9, 2**31 - 1, "count", "a text of 2147483647 bytes"),
    ],
)
def test_a_damaged_timeline_is_left_and_the_next_is_checked(
    at: int, number: int, rule: str, text: str, block_bytes: int, logs: Path
) -> None:
    place = next(seb.offset for seb in walk(logs) if seb.pe == 1) + at
    overwrite(logs / "bgTrace0", place, i4(number))
    report = check(logs, block_bytes=block_bytes)
    assert report.findings.counts == {rule: 1, "exec-time": 1}
    assert text in shown(report, rule)
    location = report.findings.shown[rule][0].location
    assert (location.offset_bytes, location.pe, location.seb) == (place, 1, 0)
    assert report.findings.sebs == 6
    assert "not-sent" in report.not_checked[0]


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize(
    ("count", "rule", "text"),
    [
        (-1, "count", "negative SEB count -1"),
        (2**31 - 1, "count", "SEB count 2147483647 does not fit"),
        (1, "left-over", "bytes left over"),
        (3, "count", "SEB count 3 does not fit"),
    ],
)
def test_a_count_of_sebs_that_cannot_be(
    count: int, rule: str, text: str, block_bytes: int, logs: Path
) -> None:
    at = next(seb.offset for seb in walk(logs) if seb.pe == 1) - 4
    overwrite(logs / "bgTrace0", at, i4(count))
    report = check(logs, block_bytes=block_bytes)
    assert report.findings.counts[rule] == 1
    assert report.findings.counts["exec-time"] == 1
    assert text in shown(report, rule)


@pytest.mark.parametrize("block_bytes", by_tier(BLOCKS, [BLOCKS[0]]))
@pytest.mark.parametrize("step", by_tier([1, 13], [13]))
def test_a_file_cut_off_anywhere(step: int, block_bytes: int, logs: Path) -> None:
    content = (logs / "bgTrace0").read_bytes()
    for length in range(0, len(content), step):
        (logs / "bgTrace0").write_bytes(content[:length])
        assert not check(logs, block_bytes=block_bytes).sound, length


@pytest.mark.parametrize("length", [n for n in range(80) if n not in (52, 56, 60)])
def test_a_summary_of_another_length(length: int, logs: Path) -> None:
    content = (logs / "bgTrace").read_bytes() + bytes(20)
    (logs / "bgTrace").write_bytes(content[:length])
    report = check(logs)
    assert set(report.findings.counts) == {"machine-header" if length < 16 else "summary"}
    assert not report.sound
    assert report.not_checked


@pytest.mark.parametrize(
    ("file", "offset", "data", "rule", "text"),
    [
        ("bgTrace", 0, b"\x7fELF", "machine-header", "not a bgTrace file"),
        ("bgTrace", 20, i4(-2), "summary", "field x: -2 is not positive"),
        ("bgTrace", 36, i4(0), "summary", "field worker threads per node: 0 is not positive"),
        ("bgTrace", 48, i4(0), "summary", "field timeline files: 0 is not positive"),
        ("bgTrace", 20, i4(2**31 - 1, 2**31 - 1, 2**31 - 1), "pe-count", "4 PEs, but 2147483647"),
    ],
)
def test_a_summary_that_nothing_can_be_done_with(
    file: str, offset: int, data: bytes, rule: str, text: str, logs: Path
) -> None:
    overwrite(logs / file, offset, data)
    report = check(logs)
    assert text in shown(report, rule)
    assert report.summary is None
    assert report.text().endswith("would stop the simulator")


@pytest.mark.parametrize(
    ("file", "offset", "data", "rule", "text"),
    [
        ("bgTrace", 16, i4(3), "pe-count", "3 PEs, but 4 × 1 × 1 nodes × 1 worker thread are 4"),
        ("bgTrace", 16, i4(-9), "pe-count", "field total PEs: -9 PEs, but 4 ×"),
        ("bgTrace0", 0, b"\x7fELF", "machine-header", "not a bgTrace file"),
        ("bgTrace0", 4, b"\x07", "machine-header", "unknown version 7"),
        ("bgTrace0", 6, b"\x04", "machine-header", "short size: 4 bytes"),
        ("bgTrace0", 8, b"\x04", "header-differs", "01 02 04 04"),
        ("bgTrace0", 16, i4(5), "timeline-count", "5 timelines, but the summary puts 4 PEs"),
        ("bgTrace0", 16, i4(-1), "timeline-count", "4,294,967,295 timelines"),
        ("bgTrace0", 20, i4(29), "offset", "PE 0, field offset: invalid timeline offset 29"),
    ],
)
def test_heads_that_are_wrong_are_read_all_the_same(
    file: str, offset: int, data: bytes, rule: str, text: str, logs: Path
) -> None:
    overwrite(logs / file, offset, data)
    report = check(logs)
    assert text in shown(report, rule)
    assert report.findings.counts["exec-time"] == 1
    assert report.findings.sebs == 8


@pytest.mark.parametrize("stray", [0, -1, 2**31 - 1, HEAD, HEAD + 1, 21])
@pytest.mark.parametrize("pe", [1, 2, 3])
def test_an_offset_that_points_elsewhere(pe: int, stray: int, logs: Path) -> None:
    """Backwards, beyond the file, to the bytes of another timeline: the others are checked."""
    overwrite(logs / "bgTrace0", 20 + 4 * pe, i4(stray))
    report = check(logs)
    assert report.findings.counts["offset"] == 1
    location = report.findings.shown["offset"][0].location
    assert (location.pe, location.offset_bytes) == (pe, 20 + 4 * pe)
    assert report.findings.sebs == 6
    assert ("exec-time" in report.findings.counts) == (pe != 3)


def test_a_timeline_too_short_for_its_count(logs: Path) -> None:
    """The offset after it lies within its count."""
    at = next(seb.offset for seb in walk(logs) if seb.pe == 1) - 4
    overwrite(logs / "bgTrace0", 20 + 4 * 2, i4(at + 2))
    report = check(logs)
    assert "the timeline has 2 bytes, too few for a SEB count" in shown(report, "count")
    assert report.findings.counts["exec-time"] == 1


def test_bytes_in_a_file_that_has_no_timeline(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]] * 2, files=3)
    assert check(folder).findings.counts == {}
    (folder / "bgTrace2").write_bytes((folder / "bgTrace2").read_bytes() + bytes(7))
    assert shown(check(folder), "left-over").endswith(
        "bgTrace2, byte 20: 7 bytes after the last timeline"
    )


def test_timelines_that_share_bytes(logs: Path) -> None:
    """All offsets the same, as of a file made to be read four times."""
    overwrite(logs / "bgTrace0", 20, i4(HEAD, HEAD, HEAD, HEAD))
    report = check(logs)
    assert report.findings.counts["offset"] == 3
    assert report.findings.sebs == 2


def test_offsets_of_a_file_above_4_gib(tmp_path: Path) -> None:
    """They have wrapped round, which is no damage; one that is wrong leaves those before it."""
    folder = write_logs(tmp_path / "in", [[], [], [], []])
    places = [HEAD, HEAD + 3_000_000_000, HEAD + 6_000_000_000, HEAD + 9_000_000_000]
    overwrite(folder / "bgTrace0", 20, struct.pack("<4I", *(place % 2**32 for place in places)))
    os.truncate(folder / "bgTrace0", 9_100_000_000)
    counts, borders = counts_and_borders(folder)
    assert (counts, borders) == ({}, [*places, 9_100_000_000])
    overwrite_in_place(folder / "bgTrace0", 32, struct.pack("<I", places[2] % 2**32 - 1))
    counts, borders = counts_and_borders(folder)
    assert (counts, borders[:3]) == ({"offset": 1}, places[:3])


def counts_and_borders(folder: Path) -> tuple[dict[str, int], list[int]]:
    findings = Findings()
    heads = read_heads(folder, findings)
    assert heads is not None
    _, (file,) = heads
    return findings.counts, file.borders.tolist()


def overwrite_in_place(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


class TestVersions:
    @pytest.mark.parametrize("true", [(v, order) for v, order in WRITTEN_SETS if order == "big"])
    @pytest.mark.parametrize("claimed", [0, 1, 2, 3, 4, 5, 6, 7, -1])
    def test_a_summary_that_does_not_fit_its_timelines(
        self, true: Any, claimed: int, reference: Path, tmp_path: Path
    ) -> None:
        shutil.copytree(reference / WRITTEN_SETS[true], tmp_path / "in")
        overwrite(tmp_path / "in/bgTrace", 52, struct.pack(">i", claimed))
        report = check(tmp_path / "in")
        alike = {4: {4, 5}, 5: {4, 5}}.get(true[0], {true[0]})
        if claimed in alike:
            assert report.findings.counts == {}
            return
        assert report.findings.counts == {"log-version": 1}
        name = "4 or 5" if 4 in alike else true[0]
        assert f"version {claimed}, but the timelines have the layout of version {name}" in shown(
            report, "log-version"
        )
        assert report.findings.sebs == 676

    def test_a_damaged_beginning_of_a_long_timeline_hides_no_version(self, tmp_path: Path) -> None:
        line = [seb(k, k + 1) for k in range(3000)]
        logs = write_logs(tmp_path, [line, line, line], files=1)
        overwrite(logs / "bgTrace", 52, i4(2))
        overwrite(logs / "bgTrace0", 16 + 4 * (1 + 3) + 4, b"\xff" * 400)
        assert "the layout of version 6" in shown(check(logs), "log-version")

    def test_from_the_project_s_own_samples(self, sample_logs: Path, tmp_path: Path) -> None:
        shutil.copytree(sample_logs / "cells-version-3", tmp_path / "in")
        overwrite(tmp_path / "in/bgTrace", 52, i4(6))
        assert "the layout of version 3" in shown(check(tmp_path / "in"), "log-version")

    def test_damage_is_not_taken_for_another_version(self, logs: Path) -> None:
        for walked in walk(logs):
            if walked.seb == 0:
                overwrite(logs / "bgTrace0", walked.offset + SEB_FIXED, i4(-5))
        assert check(logs).findings.counts == {"count": 4}

    def test_a_version_that_nobody_knows_and_nothing_to_tell_it_by(self, tmp_path: Path) -> None:
        folder = write_logs(tmp_path / "in", [[], []])
        overwrite(folder / "bgTrace", 52, i4(9))
        assert "version 9 is unknown" in shown(check(folder), "log-version")


def test_files_that_are_missing_or_too_many(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]] * 4, files=4)
    (folder / "bgTrace1").unlink()
    shutil.copy(folder / "bgTrace0", folder / "bgTrace17")
    report = check(folder)
    assert report.findings.counts == {"unreadable": 1, "extra-file": 1}
    assert shown(report, "unreadable") == f"{folder / 'bgTrace1'}: the file does not exist"
    assert "bgTrace17: the summary counts 4 files" in shown(report, "extra-file")
    assert report.findings.sebs == 3


@pytest.mark.parametrize(
    ("make", "text"), [(Path.mkdir, "a folder"), (os.mkfifo, "a pipe"), (Path.touch, "")]
)
def test_a_timeline_file_that_is_none(
    make: Callable[[Path], Any], text: str, tmp_path: Path
) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]] * 2, files=2)
    (folder / "bgTrace1").unlink()
    make(folder / "bgTrace1")
    report = check(folder)
    assert set(report.findings.counts) == {"unreadable" if text else "machine-header"}
    assert text in str(report.findings.shown.get("unreadable", [""])[0])
    assert report.findings.sebs == 1


def test_files_of_two_byte_orders(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]] * 2, files=2)
    big = write_logs(tmp_path / "big", [[seb(0, 1)]] * 2, files=2, order="big")
    shutil.copy(big / "bgTrace1", folder / "bgTrace1")
    report = check(folder)
    assert report.findings.counts == {"byte-order": 1}
    assert report.findings.sebs == 2


def test_a_file_that_is_damaged_between_the_two_passes_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second pass looks for SEBs whose message nobody sent, in bytes that it reads anew."""
    waits = seb(0, 1, src_pe=0, msg_id=77)
    folder = write_logs(tmp_path / "in", [[waits, waits], [waits]])
    at = walk(folder)[1].offset + SEB_FIXED
    why_not = run._not_checked

    def damage(*words: Any) -> tuple[str, ...]:
        overwrite(folder / "bgTrace0", at, i4(-1))
        return why_not(*words)

    monkeypatch.setattr(run, "_not_checked", damage)
    assert check(folder).findings.counts == {"not-sent": 2}


def test_a_file_that_vanishes_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_logs(tmp_path / "in", [[seb(0, 1)]] * 2, files=2)

    def remove(source: Path, findings: Findings) -> Any:
        heads = read_heads(source, findings)
        (folder / "bgTrace1").unlink()
        return heads

    monkeypatch.setattr(run, "read_heads", remove)
    report = check(folder)
    assert report.findings.counts == {"unreadable": 1}
    assert shown(report, "unreadable").startswith(f"{folder / 'bgTrace1'}: ")
    assert report.findings.sebs == 1
    assert "not-sent" in report.not_checked[0]


def test_no_log_set_at_all(tmp_path: Path) -> None:
    with pytest.raises(RewriteLogError, match="no log set here"):
        check(tmp_path)


def test_a_seb_that_goes_on_and_on(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A SEB that is larger than all sense is damage, though the file has the bytes for it."""
    monkeypatch.setattr(blocks, "MOST_SEB_BYTES", 1000)
    sent = [message(0.5, msg_id=k) for k in range(1000)]
    folder = write_logs(tmp_path / "large", [[seb(0, 1), seb(0, 1, messages=sent)], [seb(0, 1)]])
    report = check(folder, block_bytes=300)
    assert report.findings.counts == {"count": 1}
    assert "PE 0, SEB 1: the SEB has more than" in shown(report, "count")
    assert report.findings.sebs == 2
    with pytest.raises(DamagedLogError, match=r"PE 0, SEB 1: the SEB has more than"):
        rewrite(in_blocks(folder, 300), None, RewriteOptions())
    assert check(folder).findings.counts == {}


HUGE = """
    import resource, sys, time
    from rewritelog.checking.run import check_logs
    check_logs(sys.argv[1])  # so that the kernels are loaded
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for folder in sys.argv[2:]:
        started = time.process_time()
        report = check_logs(folder)
        assert not report.sound
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(more, time.process_time() - started)
"""


def test_huge_claims_cost_neither_memory_nor_time(
    logs: Path, sample_logs: Path, tmp_path: Path
) -> None:
    claims = [
        ("bgTrace", 16, i4(2**31 - 1, 2**31 - 1, 1, 1)),
        ("bgTrace", 16, i4(2**31 - 1, 1, 1, 2**31 - 1)),
        ("bgTrace", 36, i4(2**31 - 1)),
        ("bgTrace", 48, i4(2**31 - 1)),
        ("bgTrace0", 16, i4(2**31 - 1)),
        ("bgTrace0", HEAD, i4(2**31 - 1)),
        ("bgTrace0", HEAD + 4 + SEB_FIXED, i4(2**31 - 1)),
        ("bgTrace0", HEAD + 4 + SEB_FIXED + 4 + MESSAGE, i4(10**9)),
        ("bgTrace0", -4, i4(10**9)),
    ]
    folders = [tmp_path / f"claim {number}" for number in range(len(claims))]
    for folder, (name, offset, data) in zip(folders, claims, strict=True):
        shutil.copytree(logs, folder)
        overwrite(folder / name, offset % (folder / name).stat().st_size, data)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HUGE), sample_logs / "cells", *folders],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_S,
        cwd=tmp_path,
    )
    for line in done.stdout.splitlines():
        kilobytes, seconds = map(float, line.split())
        assert kilobytes < 50_000
        assert seconds < 5


def test_17_bytes(logs: Path) -> None:
    """The file for which a simulator took all 24 GB of a machine."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (logs / "bgTrace0").write_bytes((logs / "bgTrace0").read_bytes()[:17])
    report = check(logs)
    assert shown(report, "cut-off").endswith("the file ends within its header")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000
