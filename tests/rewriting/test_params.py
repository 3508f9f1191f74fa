"""Param files as they come: odd ones are reported, and cost nothing but themselves."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from blocks import in_blocks
from logbuilder import bracket, seb, write_logs, write_params, write_timings

import rewritelog
from rewritelog.commands.durations import RewriteOptions
from rewritelog.errors import RewriteLogError, TimingError
from rewritelog.formats.bgtrace import params as params_module
from rewritelog.formats.bgtrace.blocks import BLOCK_BYTES
from rewritelog.rewriting.report import RewriteReport
from rewritelog.rewriting.run import rewrite
from tracebigsim.lines import scan as scan_lines


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    timeline = [seb(k, k + 1, events=bracket(0.2, 0.4)) for k in range(4)]
    return write_logs(tmp_path / "in", [timeline, timeline], files=2)


def run(logs: Path, block_bytes: int = BLOCK_BYTES, **options: Any) -> RewriteReport:
    timings = write_timings(
        logs.parent / "timings", *[("k", float(n), float(n)) for n in (1, 2, 4)]
    )
    settings = {"model_options": {"basis": "linear"}, "timings": (timings,)} | options
    opened = in_blocks(logs, block_bytes)
    return rewrite(opened, None, RewriteOptions(model="least-squares", **settings))


def warned(report: RewriteReport, *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in report.warnings)


def test_a_folder_of_its_own(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "params").mkdir()
    write_params(tmp_path / "params", 1, (2, "k", 3))
    report = run(logs, params=tmp_path / "params")
    assert report.events[0].by_model == 1
    assert report.events[0].new_s == pytest.approx(3)
    assert not warned(report, "not used")


def test_no_params_at_all_is_said(logs: Path) -> None:
    assert warned(run(logs), "no param files")


def test_a_params_folder_that_is_not_there(logs: Path, tmp_path: Path) -> None:
    with pytest.raises(RewriteLogError, match="nowhere: does not exist"):
        run(logs, params=tmp_path / "nowhere")


def test_records_of_sebs_that_do_not_exist(logs: Path) -> None:
    write_params(logs, 0, (4, "k", 1), (99, "k", 1), (1, "k", 1))
    report = run(logs)
    assert warned(report, "2 param records of SEBs that the log does not have", "PE 0 SEB 99")
    assert report.events[0].by_model == 1


def test_param_files_of_pes_that_do_not_exist(logs: Path) -> None:
    write_params(logs, 0, (0, "k", 1))
    write_params(logs, 7, (0, "k", 1))
    assert warned(run(logs), "1 param file of PEs that the log does not have", "param.7")


def test_malformed_lines_are_counted_with_file_and_line(logs: Path) -> None:
    write_params(logs, 0, (0, "k", 1))
    with (logs / "param.0").open("a") as file:
        file.write("1 TRACEBIGSIM: event:{ k params:{ 1 }\nTRACEBIGSIM: event:{ k } params:{ 1 }\n")
    write_params(logs, 1, (0, "k", 1))
    report = run(logs)
    assert warned(report, "2 malformed param lines", "param.0:2: ", "param.0:3: neither a time")
    assert report.events[0].by_model == 2
    with pytest.raises(TimingError, match=r"param\.0:2: "):
        run(logs, strict=True)


def test_a_line_without_a_seb_is_an_error_when_strict(logs: Path) -> None:
    (logs / "param.1").write_text("TRACEBIGSIM: event:{ k } params:{ 1 }\n")
    with pytest.raises(TimingError, match=r"param\.1:1: neither a time nor"):
        run(logs, strict=True)


def test_seqno_that_differs_is_said_and_the_first_number_counts(logs: Path) -> None:
    (logs / "param.1").write_text(
        "\n2 TRACEBIGSIM: event:{ k } seqno: { 3 } params:{ 1 }\n"
        "TRACEBIGSIM: event:{ k } seqno: { 0 } params:{ 1 }\n"
        "1 TRACEBIGSIM k 1\n"
    )
    report = run(logs)
    assert report.events[0].by_model == 3
    assert warned(
        report,
        "in 1 param line the SEB number and the seqno differ",
        "param.1:2: SEB 2, but seqno 3",
    )


def test_untimed_events_are_dilated_and_named(logs: Path) -> None:
    write_params(logs, 0, (0, "other", 1), (1, "k", 1, 2), (2, "k", 1))
    report = run(logs)
    assert warned(
        report,
        "2 brackets dilated",
        "'k' (1, timed with 1 parameter, not as many as its param records have), 'other' (1); ",
        "it covers 'k'; time them too",
    )
    assert {line.event: line.dilated for line in report.events} == {"other": 1, "k": 1}


def test_values_that_the_model_has_no_answer_for_are_no_other_number_of_parameters(
    logs: Path, tmp_path: Path
) -> None:
    write_params(logs, 0, (1, "k", 1))
    text = "class Silent:\n    def fit(self, X, y):\n        return self\n"
    text += "    def predict(self, X):\n        return X[:, 0] * float('nan')\n"
    (tmp_path / "silent.py").write_text(text)
    timings = write_timings(tmp_path / "lines", *[("k", float(n), float(n)) for n in (1, 2, 4)])
    silent = f"{tmp_path / 'silent.py'}:Silent"
    answer = "'k' (1, timed with 1 parameter, but the model has no answer for these values)"
    assert warned(rewrite(logs, None, RewriteOptions(model=silent, timings=(timings,))), answer)
    *_, warning = rewritelog.replay(logs, model=silent, timings=timings).warnings
    assert answer in warning


def test_records_in_any_order_and_large_files(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pe in (0, 1):
        write_params(logs, pe, *[(k, "k", k + 1) for k in (3, 0, 2, 1)])
    small = run(logs).to_json()
    monkeypatch.setattr(params_module, "SMALL_BYTES", 10)
    monkeypatch.setattr(params_module, "SPAN_BYTES", 100)
    for block in (1 << 20, 300):
        large = run(logs, block_bytes=block).to_json()
        assert large["events"] == small["events"]
        assert large["durations_s"] == small["durations_s"]
    assert small["events"][0]["new_s"] == pytest.approx(2 * (1 + 2 + 3 + 4))


def test_a_param_file_that_is_a_folder(logs: Path) -> None:
    (logs / "param.0").mkdir()
    with pytest.raises(RewriteLogError, match=r"param\.0: not a regular file"):
        run(logs)


def test_a_packed_param_file_is_read_whatever_its_size(logs: Path) -> None:
    for pe in (0, 1):
        write_params(logs, pe, (0, "k", 2), (3, "k", 4))
    plain = run(logs)
    path = logs / "param.1"
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert run(logs).events == plain.events
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(TimingError, match=r"param\.1: .*gzip"):
        run(logs)


def test_faults_of_a_timeline_in_many_blocks_are_counted_once(logs: Path) -> None:
    (logs / "param.0").write_text(
        "1 TRACEBIGSIM: event:{ k params:{ 1 }\nTRACEBIGSIM: event:{ k }\n"
    )
    for block in (1 << 20, 300):
        assert warned(run(logs, block_bytes=block), "2 malformed param lines")


def test_timing_lines_in_a_param_file_are_not_records(logs: Path) -> None:
    write_params(logs, 0, (0, "k", 1))
    with (logs / "param.0").open("a") as file:
        file.write("TRACEBIGSIM: event:{ k } time:{ 1 } params:{ 1 }\n")
    assert warned(run(logs), "1 malformed param line", "param.0:2: a timing line")


@pytest.mark.slow
def test_a_long_timeline_reads_of_its_params_what_each_part_needs(
    logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeline = [seb(k, k + 1, events=bracket(0.2, 0.4)) for k in range(2000)]
    write_logs(logs, [timeline])
    write_params(logs, 0, *[(k, "k", 2) for k in range(2000)])
    uncut = run(logs).to_json()
    monkeypatch.setattr(params_module, "SMALL_BYTES", 10)
    monkeypatch.setattr(params_module, "SPAN_BYTES", 5000)
    scanned = []

    def counted(text: Any) -> Any:
        scanned.append(len(text))
        return scan_lines(text)

    monkeypatch.setattr(params_module, "scan", counted)
    parts = run(logs, block_bytes=20_000).to_json()
    assert parts["events"] == uncut["events"]
    assert parts["events"][0]["by_model"] == 2000
    assert sum(scanned) < 4 * (logs / "param.0").stat().st_size


def test_predicted_durations_that_tracer_does_not_take_are_counted(tmp_path: Path) -> None:
    names = (b"AMPI_SEND", b"user_code", b"msgep", b"msgep2", b"AMPI_", b"msgep")
    sebs = [seb(k, k + 1, events=bracket(0.2, 0.4), name=name) for k, name in enumerate(names)]
    logs = write_logs(tmp_path / "in", [sebs])
    write_params(logs, 0, *[(k, "k", 2) for k in range(5)])
    (hint,) = run(logs).hints
    assert hint.startswith("TraceR would ignore 3 of the 5 predicted durations; replay")
    assert run(logs, params=tmp_path).hints == ()
