"""Samples of made and of real runs: the list, its report, and what is wrong with inputs."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from logbuilder import bracket, seb, write_logs, write_params, write_timings

import rewritelog
from rewritelog.commands.fits import SampleCommand
from rewritelog.errors import DamagedLogError, OutputError, RewriteLogError, TimingError, UsageError
from rewritelog.models.expressions import FormulaError
from rewritelog.sampling.sample import SampleReport, sample
from rewritelog.text import json_text
from rewritelog.timings import params as run_params
from tracebigsim.chosen import read_chosen

FORMULA = """
[[formula]]
event = "pair"
params = ["n", "side"]
terms = ["1", "n"]
category = "side"
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a log set of 4 PEs with 30 SEBs each: 20 of the event pair, 10 of the event self."""
    timeline = [seb(k, k + 1, events=bracket(0.2, 0.4)) for k in range(30)]
    folder = write_logs(tmp_path / "in", [timeline] * 4, files=2)
    for pe in range(4):
        write_params(folder, pe, *[(k, "pair", 1 + 4 * k + pe, k % 2) for k in range(20)])
        write_params(folder, pe, *[(k, "self", 100 - k) for k in range(20, 30)])
    return folder


def run(logs: Path, **options: Any) -> SampleReport:
    return sample(SampleCommand(logs, logs.parent / "list.txt", **options))


def listed(logs: Path) -> list[tuple[Any, ...]]:
    return [tuple(line) for line in read_chosen(logs.parent / "list.txt")]


def warned(report: SampleReport, *words: str) -> bool:
    return any(all(word in warning for word in words) for warning in report.warnings)


def test_each_line_is_the_one_of_the_param_file(sample_logs: Path, tmp_path: Path) -> None:
    folder = sample_logs / "cells"
    report = sample(SampleCommand(folder, tmp_path / "list.txt", fraction=0.3))
    lines = [line for line in (tmp_path / "list.txt").read_text().splitlines() if line[0] != "#"]
    for line in lines:
        pe, _, record = line.partition(" ")
        assert record in (folder / f"param.{pe}").read_text().splitlines()
    assert len(set(lines)) == len(lines) == report.chosen == 24
    assert [int(line.split()[0]) for line in lines] == sorted(
        int(line.split()[0]) for line in lines
    )


def test_both_events_are_chosen_from_over_their_range(logs: Path) -> None:
    report = run(logs, fraction=0.15)
    chosen = listed(logs)
    assert Counter(event for _, _, event, _ in chosen).keys() == {"pair", "self"}
    assert report.chosen == len(chosen) == 18
    sizes = [params[0] for _, _, event, params in chosen if event == "pair"]
    assert (min(sizes), max(sizes)) == (1, 80)
    assert report.extrapolated == 0
    for pe, index, event, params in chosen:
        expected = (1 + 4 * index + pe, index % 2) if event == "pair" else (100 - index,)
        assert params == expected


def test_the_report_says_how_many_of_how_many(logs: Path) -> None:
    report = run(logs, fraction=0.15)
    said_json = json.loads(json_text(report.to_json()))
    pair, own = said_json["strata"]
    assert (pair["event"], pair["records"], pair["points"], pair["category"]) == (
        "pair",
        80,
        80,
        None,
    )
    assert (own["event"], own["records"], own["points"]) == ("self", 40, 10)
    assert pair["chosen"] + own["chosen"] == said_json["chosen"] == 18
    assert said_json["output"] == str(logs.parent / "list.txt")
    assert sample(SampleCommand(logs)).to_json()["output"] is None
    assert said_json["options"] == {
        "params": None,
        "seed": 1,
        "clock_hz": None,
        "strict": False,
        "param_names": None,
        "timings": None,
        "fraction": 0.15,
        "method": "design",
        "floor": 5,
        "formulas": None,
        "replicates": 1,
    }
    assert "18 param records chosen of 120 (15.00 %)" in report.text()


def test_a_formula_splits_an_event(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(FORMULA)
    report = run(logs, fraction=0.05, formulas=tmp_path / "f.toml", floor=3)
    categories = [
        (choice.stratum.event, choice.stratum.category, len(choice.stratum.params))
        for choice in report.strata
    ]
    assert categories == [("pair", 0, 40), ("pair", 1, 40), ("self", None, 40)]
    strata = report.to_json()["strata"]
    assert [stratum["category"] for stratum in strata] == [0, 1, None]
    assert re.search(r"pair +2 +0 +40.*\n +pair +2 +1 +40.*\n +self +1 +40", report.text())
    sides = Counter(params[1] for _, _, event, params in listed(logs) if event == "pair")
    assert sides == {0: 3, 1: 3}
    assert f", formulas {tmp_path / 'f.toml'}\n" in (logs.parent / "list.txt").read_text()
    assert warned(report, "9 param records are chosen", "more than the 6 of fraction", "floor=")


def test_a_formula_that_cannot_be_used(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text(FORMULA.replace('"side"]', '"side", "more"]'))
    report = run(logs, formulas=tmp_path / "f.toml")
    assert warned(report, "f.toml:2", "for 'pair' is not used")
    (tmp_path / "f.toml").write_text(FORMULA.replace('"n"]\ncat', '"m"]\ncat'))
    with pytest.raises(FormulaError, match=r"f\.toml:5:"):
        run(logs, formulas=tmp_path / "f.toml")


def test_too_many_categories_are_refused(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewritelog.sampling.sample.MOST_CATEGORIES", 10)
    (tmp_path / "f.toml").write_text(FORMULA.replace('category = "side"', 'category = "n"'))
    with pytest.raises(RewriteLogError, match=r"f.toml:2.*'pair' into 80 classes"):
        run(logs, formulas=tmp_path / "f.toml")


def test_timed_lines_count_as_known(logs: Path, tmp_path: Path) -> None:
    timings = write_timings(
        tmp_path / "t",
        *[("self", 1.0, float(n)) for n in range(71, 76)],
        *[(f"other{k}", 1.0) for k in range(300)],
    )
    report = run(logs, fraction=0.1, timings=(timings,))
    chosen = [params[0] for _, _, event, params in listed(logs) if event == "self"]
    assert len(chosen) > 0
    assert set(chosen) <= {76, 77, 78, 79, 80}
    assert warned(report, "timed, but not in the run: other0(), other1(),", "and 295 more")
    assert "other" not in report.text(), "each had a warning, and a line that it does not vary"
    assert len(report.strata[1].stratum.timed) == 5


def test_records_are_not_said_to_be_sebs(tmp_path: Path) -> None:
    """Each SEB has two brackets: 40 of them were "80 with a param record"."""
    line = [seb(k, k + 1, events=bracket(0.1, 0.2) + bracket(0.3, 0.4)) for k in range(40)]
    logs = write_logs(tmp_path / "in", [line])
    write_params(logs, 0, *[(k // 2, "self", k) for k in range(80)])
    assert "16 param records chosen of 80 (20.00 %)" in run(logs, fraction=0.2).text()


def test_nothing_is_left_to_choose_of_what_is_timed(logs: Path, tmp_path: Path) -> None:
    """Half of the SEBs are asked for, but all parameters of the larger event are timed."""
    timed = [
        ("pair", 1.0, float(1 + 4 * k + pe), float(k % 2)) for k in range(20) for pe in range(4)
    ]
    report = run(logs, fraction=0.5, timings=(write_timings(tmp_path / "t", *timed),))
    assert report.chosen == 10
    assert warned(
        report, "10 param records are chosen, fewer than the 60 of fraction", "timed already"
    )


def test_noise_without_parameters_that_recur_is_not_measured_again(tmp_path: Path) -> None:
    line = [seb(k, k + 1, events=bracket(0.2, 0.4)) for k in range(20)]
    logs = write_logs(tmp_path / "in", [line])
    write_params(logs, 0, *[(k, "self", k) for k in range(20)])
    noisy = [("self", seconds, float(k)) for k in range(20) for seconds in (0.9, 1.0, 1.1)]
    report = run(logs, fraction=0.1, timings=(write_timings(tmp_path / "t", *noisy),))
    assert warned(report, "self", "vary by 10.0 %", "no parameters recur in the run")
    for times in ((1.0,), (1.0, 3.0)):
        few = [("self", seconds, float(k)) for k in range(3) for seconds in times]
        assert "variation" not in run(logs, timings=(write_timings(tmp_path / "few", *few),)).text()


def test_a_negative_count_of_sebs_is_damage(logs: Path) -> None:
    content = (logs / "bgTrace1").read_bytes()
    (logs / "bgTrace1").write_bytes(content[:28] + b"\xff" * 4 + content[32:])
    with pytest.raises(DamagedLogError, match="PE 1, field count: negative SEB count -1"):
        run(logs)


def test_a_warning_of_noise_says_how_often_the_list_has_a_point(
    sample_logs: Path, tmp_path: Path
) -> None:
    """It gave the number that the noise calls for, also where no parameters recur that often."""
    folder, out = sample_logs / "cells", tmp_path / "list.txt"
    timings = (folder / "timings.txt",)
    report = sample(SampleCommand(folder, out, fraction=0.3, timings=timings))
    times = Counter((event, params) for _, _, event, params in map(tuple, read_chosen(out)))
    assert max(times.values()) == 2
    assert warned(report, "Cell::bonded", "vary by 5.7 %", "repeats 1 point of it up to 2 times")


def test_noise_asks_for_replicates(logs: Path, tmp_path: Path) -> None:
    noisy = [("self", seconds, 500.0) for seconds in (0.942, 1.0, 1.058)]
    timings = write_timings(
        tmp_path / "t", *noisy, ("pair", 1.0, 1.0, 0.0), ("pair", 1.01, 1.0, 0.0)
    )
    report = run(logs, fraction=0.1, timings=(timings,))
    assert warned(report, "self", "vary by 5.8 %", "more than 3 %", "up to 4 times")
    assert not warned(report, "pair", "vary by")
    times = Counter(params for _, _, event, params in listed(logs) if event == "self")
    assert set(times.values()) == {1, 4} or set(times.values()) == {4}
    assert report.replicates == sum(times.values()) - len(times) > 0
    assert report.chosen == 12 + report.replicates
    assert not warned(report, "of fraction"), "replicates come on top of it"
    assert "variation of pair(p1, p2): 0.7 %" in report.text()
    (tmp_path / "n.toml").write_text('self = ["size"]\npair = ["size", "near"]\n')
    named = run(logs, fraction=0.1, timings=(timings,), param_names=tmp_path / "n.toml")
    assert "variation of pair(size, near): 0.7 %" in named.text()
    assert warned(named, "self(size): times of identical parameters vary by 5.8 %")


def test_replicates_of_categories_are_told_by_the_most(tmp_path: Path) -> None:
    """Points of one category recur 4 times in the run, those of the other twice."""
    logs = write_logs(
        tmp_path / "in", [[seb(k, k + 1, events=bracket(0.2, 0.4)) for k in range(60)]]
    )
    write_params(logs, 0, *[(k, "pair", k % 10, int(k >= 40)) for k in range(60)])
    (tmp_path / "f.toml").write_text(FORMULA)
    noisy = [("pair", seconds, 500.0, 0.0) for seconds in (0.942, 1.0, 1.058)]
    report = run(
        logs,
        fraction=0.2,
        formulas=tmp_path / "f.toml",
        timings=(write_timings(tmp_path / "t", *noisy),),
    )
    times = Counter((side, n) for _, _, _, (n, side) in listed(logs))
    assert [max(times[side, n] for n in range(10)) for side in (0, 1)] == [4, 2]
    assert warned(report, "pair", "vary by 5.8 %", "up to 4 times")


def test_what_will_be_extrapolated_is_warned_of(logs: Path) -> None:
    report = run(logs, fraction=0.01, floor=2, method="random", seed=3)
    pair = report.strata[0]
    chosen = [params for _, _, event, params in listed(logs) if event == "pair"]
    sizes, sides = zip(*chosen, strict=True)
    outside = sum(
        not (min(sizes) <= 1 + 4 * k + pe <= max(sizes) and min(sides) <= k % 2 <= max(sides))
        for k in range(20)
        for pe in range(4)
    )
    assert pair.outside == outside > 4
    assert pair.beyond != outside
    of_pair = dict(zip(report.table.heads, report.table.rows[0], strict=True))
    assert of_pair["outside"] == f"{100 * outside / 80:.1f} %"
    assert of_pair["beyond"] == f"{100 * pair.beyond / 80:.1f} %"
    assert report.to_json()["extrapolated_share"] == report.extrapolated / 120
    assert warned(report, "pair", "would be extrapolated from the 2 points", "fraction")


def test_who_has_a_formula_is_not_told_to_write_one(logs: Path, tmp_path: Path) -> None:
    assert warned(run(logs, fraction=0.01, floor=1), "pair", "coefficients or more", "formulas")
    (tmp_path / "f.toml").write_text(FORMULA.replace('"1", ', ""))
    report = run(logs, fraction=0.01, floor=1, formulas=tmp_path / "f.toml")
    assert warned(report, "pair(n, side), category 1", "for a fit with 1 coefficient; choose")
    assert not warned(report, "pair", "what its time depends on")


def test_any_way_of_reading_chooses_the_same(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(logs)
    first = (logs.parent / "list.txt").read_bytes()
    monkeypatch.setattr(run_params, "PES_AT_A_TIME", 1)
    monkeypatch.setattr("rewritelog.formats.bgtrace.params.SMALL_BYTES", 10)
    run(logs)
    assert (logs.parent / "list.txt").read_bytes() == first


def test_params_of_another_folder_and_of_no_seb(logs: Path, tmp_path: Path) -> None:
    params = tmp_path / "params"
    params.mkdir()
    write_params(params, 1, (3, "k", 1), (29, "k", 2), (30, "k", 3))
    write_params(params, 7, (3, "k", 1))
    (params / "param.2").write_text("2 TRACEBIGSIM: event:{ k } seqno: { 2 } par\n")
    (params / "param.3").write_text("5 TRACEBIGSIM: event:{ k } seqno: { 6 } params:{ 8 }\n")
    report = run(logs, params=params, fraction=1.0)
    assert [line[:2] for line in listed(logs)] == [(1, 3), (1, 29), (3, 5)]
    assert warned(
        report, "1 param line whose seqno is not the SEB", "param.3:1: SEB 5, but seqno 6"
    )
    assert warned(report, "left out: 1 param record", "param.1, SEB 30")
    assert warned(report, "left out: 1 param file", "param.7")
    assert warned(report, "1 malformed param line", "param.2:1")
    with pytest.raises(TimingError, match=r"param\.2:1"):
        run(logs, params=params, strict=True)
    torn = write_timings(tmp_path / "torn", ("k", 1.0, 1.0))
    torn.write_text(torn.read_text() + "TRACEBIGSIM: event:{ k } time:{ 1 } par\n")
    assert warned(run(logs, params=logs, timings=torn), "1 malformed timing line", "torn:2")
    with pytest.raises(TimingError, match="torn:2"):
        run(logs, params=logs, timings=torn, strict=True)


def test_a_pe_without_sebs_is_passed_over(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "in", [[], [seb(0, 1)]])
    write_params(folder, 1, (0, "k", 1))
    assert run(folder).chosen == 1


def test_a_run_without_records_is_an_error(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/param.0").touch()
    none = "in: none of its SEBs has a param record"
    with pytest.raises(RewriteLogError, match=f"{none} in {tmp_path / 'empty'}: without"):
        run(logs, params=tmp_path / "empty")
    for pe in range(4):
        (logs / f"param.{pe}").write_text("")
    with pytest.raises(RewriteLogError, match=f"{none}: without"):
        run(logs)
    with pytest.raises(RewriteLogError, match="nowhere: does not exist"):
        run(logs, params=tmp_path / "nowhere")
    assert not (tmp_path / "list.txt").exists()


def test_logs_apart_from_their_param_files_need_the_folder_of_these(
    logs: Path, tmp_path: Path
) -> None:
    """The program was said to have no brackets, as of logs that a rewrite wrote."""
    out = tmp_path / "out"
    rewritelog.rewrite(logs, out)
    with pytest.raises(RewriteLogError, match=r"out: has no param files: .* with params$"):
        rewritelog.sample(out)
    assert rewritelog.sample(out, params=logs).chosen > 0


def test_inputs_are_never_written_over(logs: Path, tmp_path: Path) -> None:
    timings = write_timings(tmp_path / "t", ("self", 1.0, 1.0))
    (tmp_path / "linked").hardlink_to(timings)
    for out in (timings, tmp_path / "linked", logs / "param.0", logs / "bgTrace"):
        before = out.read_bytes()
        with pytest.raises(OutputError, match="replace an input"):
            sample(SampleCommand(logs, out, timings=(timings,)))
        assert out.read_bytes() == before
    with pytest.raises(OutputError, match="is a folder"):
        sample(SampleCommand(logs, tmp_path))
    with pytest.raises(OutputError, match="nowhere"):
        sample(SampleCommand(logs, tmp_path / "nowhere" / "x"))


@pytest.mark.parametrize("options", [{"fraction": 0.0}, {"floor": 0}, {"replicates": 0}], ids=str)
def test_numbers_that_cannot_be_meant(options: dict[str, Any], logs: Path) -> None:
    with pytest.raises(UsageError):
        SampleCommand(logs, **options)


def test_a_clock_without_timings_is_refused(logs: Path) -> None:
    with pytest.raises(UsageError, match="clock_hz is for timings"):
        sample(SampleCommand(logs, clock_hz=2e9))


def test_any_number_of_replicates_and_floor_can_be_asked_for(logs: Path) -> None:
    report = sample(SampleCommand(logs, replicates=10**20, floor=10**20))
    assert report.chosen == report.records
    assert "if there are as many" in report.warnings[0]


def test_real_runs_of_two_workers(reference: Path, tmp_path: Path) -> None:
    folder = reference / "cells-2workers"
    report = sample(SampleCommand(folder, tmp_path / "list.txt", fraction=0.25))
    lines = sum(path.read_text().count("TRACEBIGSIM") for path in folder.glob("param.*"))
    assert report.records == lines
    for chosen in read_chosen(tmp_path / "list.txt"):
        text = (folder / f"param.{chosen.pe}").read_text()
        assert f"{chosen.seb} TRACEBIGSIM: event:{{ {chosen.event} }}" in text
