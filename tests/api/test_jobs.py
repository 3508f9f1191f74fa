"""The commands as functions: the same bytes and reports as by the command line."""

from __future__ import annotations

import json
import math
import pickle
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from logbuilder import write_params
from oracle import SAMPLE_LOGS

import rewritelog
from rewritelog import UsageTypeError
from rewritelog.commands.fits import ExploreCommand
from rewritelog.viewing import explore

CELLS = SAMPLE_LOGS / "cells"
LINES = CELLS / "timings.txt"


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("bgTrace*")}


def test_all_ways_to_give_a_model_rewrite_the_same_bytes(tmp_path: Path) -> None:
    fitted = rewritelog.fit(LINES, "least-squares")
    fitted.save(tmp_path / "m.json")
    timings = rewritelog.read_timings(LINES)
    ways = {
        "files": {"timings": str(LINES), "model": "least-squares", "dilation": 0.5},
        "several": {"timings": [LINES], "model": "least-squares", "dilation": 0.5},
        "at hand": {"timings": timings, "model": "least-squares", "dilation": 0.5},
        "fitted": {"fitted": fitted, "dilation": 0.5},
        "model": {"model": fitted, "dilation": 0.5},
        "file": {"fitted": str(tmp_path / "m.json"), "dilation": 0.5},
    }
    outputs, origins = [], []
    for name, options in ways.items():
        report = rewritelog.rewrite(str(CELLS), str(tmp_path / name), **options)  # type: ignore[arg-type]
        outputs.append(bytes_of(tmp_path / name))
        assert sum(line.by_model for line in report.events) > 0
        assert report.to_json()["options"]["dilation"] == 0.5
        assert len(repr(report)) < 160
        provenance = json.loads((tmp_path / name / "rewritelog.json").read_text())
        origins.append(provenance["model"]["fitted_to"])
    assert all(output == outputs[0] for output in outputs)
    assert origins[:3] == [None] * 3
    assert origins[3] == origins[4] == origins[5]
    assert origins[3]["lines"] == 600
    assert outputs[0] != bytes_of(CELLS)


def test_options_of_the_model_and_dilations_by_name(tmp_path: Path) -> None:
    report = rewritelog.rewrite(
        CELLS,
        timings=LINES,
        model="least-squares",
        model_options={"basis": "linear"},
        dilation_for={"*": 2.0},
    )
    assert report.options.model_options == {"basis": "linear"}
    assert report.options.dilation_for == (("*", 2.0),)
    with pytest.raises(UsageTypeError, match="unexpected keyword argument 'basis'; it takes"):
        rewritelog.rewrite(CELLS, timings=LINES, basis="linear")  # type: ignore[call-arg]
    with pytest.raises(
        UsageTypeError, match="too many positional arguments; it takes files, output=…, force=…"
    ):
        rewritelog.merge(LINES, tmp_path / "merged.txt")  # type: ignore[call-arg]


def test_timings_in_memory_are_fitted_with_the_names_of_parameters(tmp_path: Path) -> None:
    (tmp_path / "names.toml").write_text('"Cell::pairForces" = ["atoms", "carbons"]\n')
    report = rewritelog.rewrite(
        CELLS, timings=rewritelog.read_timings(LINES), param_names=tmp_path / "names.toml",
        dilation=1.0,
    )  # fmt: skip
    assert "Cell::pairForces(atoms, carbons)" in report.details()


def test_a_dump_has_every_field_of_a_timeline() -> None:
    sebs = list(rewritelog.dump(CELLS, 3))
    assert [seb["seb"] for seb in sebs] == list(range(len(sebs)))
    assert sum(len(seb["messages"]) for seb in sebs) == len(rewritelog.open_logs(CELLS).messages(3))
    with pytest.raises(rewritelog.UsageError, match="PE 99"):
        rewritelog.dump(CELLS, 99)


def test_params_of_one_file_are_those_of_its_pe() -> None:
    """They were those of all files of its folder."""
    params = rewritelog.read_params(CELLS / "param.3")
    assert set(params.pe.tolist()) == {3}
    assert len(params) == len(rewritelog.read_params(CELLS, [3]))
    assert len(rewritelog.read_params(CELLS / "bgTrace")) == len(rewritelog.read_params(CELLS))


@pytest.mark.parametrize("name", ["timings.txt", "bgTrace0", "MANIFEST.md"])
def test_a_file_that_has_no_params_is_refused(name: str) -> None:
    """The params of its folder were read in its place."""
    with pytest.raises(rewritelog.UsageError, match=f"{name}: is neither a folder of param files"):
        rewritelog.read_params(CELLS / name)


@pytest.mark.parametrize("pe", [np.arange(2), [1], True, "x", None])
def test_a_timeline_is_that_of_one_pe(pe: Any) -> None:
    """Of an array it was numpy's error on the truth of one, and True was PE 1."""
    with pytest.raises(rewritelog.UsageError, match=f"PE {re.escape(repr(pe))} is not in the log"):
        rewritelog.open_logs(CELLS).timeline(pe)


def test_tables_of_logs_become_frames() -> None:
    pytest.importorskip("pandas")
    logs = rewritelog.open_logs(CELLS)
    sebs = rewritelog.to_frame(logs.sebs([0, 3]))
    assert len(sebs) == len(logs.sebs([0, 3]))
    for pes in ("3,0,3", [3, 0, 3]):  # there is one row for each SEB
        assert logs.sebs(pes).tobytes() == logs.sebs([0, 3]).tobytes()
    assert logs.sebs("0,2-3")["pe"].tolist() == logs.sebs(np.array([0, 2, 3]))["pe"].tolist()
    assert (logs.sebs(logs.sebs(3)["pe"][0]) == logs.sebs(3)).all()
    assert {f"obj_id_{k}" for k in range(4)} <= set(sebs.columns)
    assert "obj_id" not in sebs.columns
    assert {type(name) for name in sebs["name"]} == {str}
    assert len(rewritelog.to_frame(logs.messages([0]))) == len(logs.messages([0]))
    assert rewritelog.to_frame(logs.sebs([0])[1])["seb"].tolist() == [1]
    squared = logs.sebs([0])[:4].reshape(2, 2)  # it was a bare IndexError
    assert rewritelog.to_frame(squared)["seb"].tolist() == [0, 1, 2, 3]
    assert squared.to_frame().equals(rewritelog.to_frame(squared))
    assert logs.timeline(np.float64(1)).sebs["pe"][0] == 1  # type: ignore[arg-type]
    assert "text" in rewritelog.to_frame(logs.log_events([0])).columns
    assert repr(logs) == f"<LogSet {CELLS}: 16 PEs in 2 files, log version 6>" or "…" in repr(logs)


def test_data_frames_without_pandas_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(rewritelog.RewriteLogError, match="data frames need pandas: pip install"):
        rewritelog.to_frame(rewritelog.open_logs(CELLS).sebs([0]))


def test_params_are_read_as_they_stand() -> None:
    params = rewritelog.read_params(CELLS)
    lines = [line for pe in range(16) for line in (CELLS / f"param.{pe}").read_text().splitlines()]
    assert len(params) == len(lines) == 80
    pe, seb, X = params.table("Cell::pairForces")
    first = next(line for line in lines if "pairForces" in line)
    assert int(first.split()[0]) == seb[0]
    assert X.shape == (len(pe), 2)
    assert len(rewritelog.read_params(CELLS, [3])) == int((params.pe == 3).sum())
    assert params._repr_html_().count("<tr>") == 3


def test_params_that_there_are_not(tmp_path: Path) -> None:
    params = rewritelog.read_params(CELLS)
    assert repr(params) == "<Params: 80 records of 2 events (Cell::pairForces, Cell::bonded)>"
    bonded = rewritelog.read_timings(CELLS / "timings.txt")["Cell::bonded"]
    assert repr(bonded) == "<EventTimings Cell::bonded(p1): 200 samples>"
    assert params.warnings == ()
    with pytest.raises(rewritelog.UsageError, match="no record of the event 'pair'; events: 'Ce"):
        params.table("pair")
    with pytest.raises(rewritelog.UsageError, match="parameters must be 2, not 3"):
        params.table("Cell::pairForces", 3)
    with pytest.raises(rewritelog.UsageError, match="'params' or 'counters', not 'both'"):
        rewritelog.read_params(CELLS, columns="both")  # type: ignore[arg-type]
    write_params(tmp_path, 0, (0, "k", 1), (1, "k", 1, 2))
    with (tmp_path / "param.0").open("a") as file:
        file.write("2 TRACEBIGSIM: event:{ k } seqno: { 3 } params:{ 7 }\n")
    odd = rewritelog.read_params(tmp_path)
    assert "seqno 3" in odd.warnings[0]
    with pytest.raises(rewritelog.UsageError, match="parameters must be 1 or 2, not None"):
        odd.table("k")
    assert odd.table("k", 1)[1].tolist() == [0, 2]


def test_params_become_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = rewritelog.read_params(CELLS).to_frame()
    assert list(frame.columns) == ["pe", "seb", "event", "p1", "p2"]
    assert frame[frame["event"] == "Cell::bonded"]["p2"].isna().all()
    some = rewritelog.read_params(CELLS).to_frame(np.array([3, 1]))
    assert some["seb"].tolist() == frame["seb"][[3, 1]].tolist()


def test_a_choice_is_the_list_of_the_command(tmp_path: Path) -> None:
    report = rewritelog.sample(CELLS, tmp_path / "chosen.txt", fraction=0.2, timings=LINES)
    assert (tmp_path / "chosen.txt").read_text() == report.listing()
    assert report.chosen == len(report.rows)


def test_check_diff_info_convert_and_synth(tmp_path: Path) -> None:
    synthesis = rewritelog.synth(tmp_path / "made", pes=2, sebs=40)
    assert "2 PEs" in repr(synthesis)
    checked = rewritelog.check(tmp_path / "made")
    assert (checked.sound, repr(checked)) == (True, "<CheckReport: nothing found>")
    rewritelog.convert(tmp_path / "made", tmp_path / "big", byte_order="big")
    comparison = rewritelog.diff(tmp_path / "made", tmp_path / "big")
    assert comparison.structure_same
    assert not comparison.same
    info = rewritelog.info(rewritelog.open_logs(tmp_path / "big"))
    assert info.sebs == len(rewritelog.open_logs(tmp_path / "made").sebs())
    for report in (synthesis, comparison, info):
        assert len(repr(report)) < 160
        assert report._repr_html_().startswith("<pre>")


def test_rewriting_without_anything_keeps_the_bytes(tmp_path: Path) -> None:
    rewritelog.rewrite(CELLS, tmp_path / "out")
    assert bytes_of(tmp_path / "out") == bytes_of(CELLS)
    assert np.isfinite(rewritelog.open_logs(tmp_path / "out").sebs()["start_time"]).all()


def test_the_data_frame_of_a_sweep_has_numbers() -> None:
    pytest.importorskip("pandas")
    grid: dict[str, list[float | str]]
    grid = {"machine": ["alps", "cray-xe6"], "node-latency": [0, "2us"], "dilation": [0.5, 1]}
    swept = rewritelog.sweep(CELLS, grid)
    frame = swept.to_frame()
    assert list(frame.columns) == ["machine", "node-latency", "dilation", "predicted_s"]
    assert frame["node-latency"].tolist() == [0, 0, 2e-6, 2e-6] * 2
    assert frame["predicted_s"].tolist() == [point.predicted_s for point in swept.points]
    alone = rewritelog.replay(CELLS, machine="cray-xe6", node_latency="2us", gains=0)
    row = frame[(frame.machine == "cray-xe6") & (frame["node-latency"] > 0) & (frame.dilation == 1)]
    assert row["predicted_s"].tolist() == [alone.predicted_s]


def test_replay_sweep_and_lost_cycles_agree(tmp_path: Path) -> None:
    network = rewritelog.Network(latency=1e-6, bandwidth=1e9)
    replayed = rewritelog.replay(CELLS, network=network, dilation=0.5, gains=0)
    with_units = rewritelog.replay(CELLS, latency="1us", bandwidth=1e9, dilation=0.5, gains=0)
    assert with_units.predicted_s == replayed.predicted_s
    (tmp_path / "machine.toml").write_text('latency = "1us"\nbandwidth = "1GB/s"\n')
    of_file = rewritelog.replay(CELLS, machine=tmp_path / "machine.toml", dilation=0.5, gains=0)
    assert of_file.predicted_s == replayed.predicted_s
    sweep = rewritelog.sweep(CELLS, {"dilation": [0.5], "latency": [1e-6, "2us"]}, network=network)
    assert sweep.points[0].predicted_s == replayed.predicted_s < sweep.points[1].predicted_s
    machines = rewritelog.sweep(
        CELLS,
        {"machine": ["alps", str(tmp_path / "machine.toml")], "latency": ["1us"]},
        dilation=0.5,
    )
    assert machines.points[1].predicted_s == replayed.predicted_s
    assert "alps" in machines.text()
    assert "except for what is varied" not in machines.text(), "the points share no network"
    assert machines.to_json()["network"] is None
    packets = replace(network, packet_size=1000.0, cost_per_packet=1e-6)
    of_packets = rewritelog.sweep(CELLS, {"cost-per-packet": [1e-6]}, network=packets)
    assert of_packets.points[0].predicted_s == (
        rewritelog.replay(CELLS, network=packets, gains=0).predicted_s
    )
    with_packets = {"machine": ["alps", "cray-xe6"], "cost-per-packet": ["10ns"]}
    assert len(rewritelog.sweep(CELLS, with_packets | {"packet-size": ["1kB"]}).points) == 2
    with pytest.raises(rewritelog.OutputError, match=r"machine\.toml"):
        rewritelog.sweep(
            CELLS, {"machine": [str(tmp_path / "machine.toml")]}, output=tmp_path / "machine.toml"
        )
    with pytest.raises(rewritelog.UsageError, match="is a whole network"):
        rewritelog.sweep(CELLS, {"machine": ["alps"]}, latency=1e-6)
    numbers = rewritelog.sweep(CELLS, {"bandwidth": [1e9, 2.5e8], "latency": [1e-6]})
    assert {point.values for point in numbers.points} == {("1GB/s", "1us"), ("250MB/s", "1us")}
    out = tmp_path / "study.txt"
    run = rewritelog.lost_cycles(
        CELLS,
        network=network,
        dilation=0.5,
        timings_out=out,
        variables={"D": 16},
        lost_as={"msgep": "x"},
    )
    assert run.lost.predicted_s == replayed.predicted_s
    assert math.isclose(sum(run.lost.totals_s.values()), 16 * replayed.predicted_s, rel_tol=1e-12)
    lines = out.read_text().splitlines()
    assert lines[0] == "# lost cycles; parameters: P, D"
    assert any(
        "event:{ lost::x }" in line and "params:{ 16.000000 16.000000 }" in line for line in lines
    )


def test_reports_go_through_pickle(tmp_path: Path) -> None:
    damaged = shutil.copytree(CELLS, tmp_path / "cells")
    (damaged / "bgTrace1").write_bytes((CELLS / "bgTrace1").read_bytes()[:-9])
    for report in (
        rewritelog.check(damaged),
        rewritelog.check(SAMPLE_LOGS / "transformer" / "training"),
        rewritelog.replay(CELLS),
        rewritelog.sweep(CELLS, {"dilation": [1, 2]}),
        rewritelog.rewrite(CELLS, dilation=0.5),
        rewritelog.diff(CELLS, CELLS),
    ):
        again = pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
        assert again.text() == report.text()
        assert again.to_json() == report.to_json()


def test_a_report_of_a_rewrite_with_a_listener_is_pickled() -> None:
    """A function within another cannot be pickled, and the report had it among its options."""
    stages: list[str] = []
    report = rewritelog.rewrite(CELLS, progress=lambda stage, *_: stages.append(stage))
    assert stages
    again = pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
    assert again.to_json() == report.to_json()


def test_written_timings_say_where_they_are(tmp_path: Path) -> None:
    """The repr ended with an arrow, where the text was wrapped."""
    folder = SAMPLE_LOGS / "transformer/profile"
    written = rewritelog.write_timings(folder, tmp_path / "nodes.txt")
    assert repr(written).endswith("/nodes.txt>")
    assert "112 timing lines of 4 events" in written.text().splitlines()


@pytest.mark.long
def test_export_writes_what_the_command_does(tmp_path: Path) -> None:
    exported = rewritelog.export(CELLS, tmp_path / "out", "goal")
    assert exported.counts["sebs"] == 676
    assert (tmp_path / "out" / "program.goal").read_text().startswith("num_ranks 16\nrank 0 {\n")
    part = rewritelog.export(CELLS, tmp_path / "part", "csv", pes="0-3", until_s=1e-4)
    assert part.pes == 4
    assert 0 < part.counts["sebs"] < 676


def test_names_and_texts_are_str_and_a_notebook_shows_a_table() -> None:
    logs = rewritelog.open_logs(CELLS)
    assert logs.sebs(0)["name"].dtype.kind == "U"
    assert logs.sebs(0)["name"][0] == "msgep"
    assert set(logs.log_events([1])["text"]) <= {"startTraceBigSim %f\n", "endTraceBigSim %f\n"}
    assert "<td>log version</td><td>6</td>" in logs._repr_html_()
    traces: Any = rewritelog.open_traces(SAMPLE_LOGS / "transformer/training")
    assert "<td>ranks</td><td>2</td>" in traces._repr_html_()
    rules: Any = rewritelog.rules("summary")
    assert rules._repr_html_() == f"<pre>{rules}</pre>"


def test_a_picture_is_returned_and_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = rewritelog.timeline(CELLS, tmp_path / "t.svg", pes=[0, 1])
    assert (tmp_path / "t.svg").read_bytes() == picture
    with pytest.raises(rewritelog.UsageError, match="no PE is chosen"):
        rewritelog.timeline(CELLS, tmp_path / "t.svg", pes=[])
    with pytest.raises(rewritelog.UsageError, match=r"a picture needs the ending \.png"):
        rewritelog.timeline(CELLS, tmp_path / "t.gif")
    with pytest.raises(rewritelog.UsageError, match="P, the number of PEs"):
        rewritelog.predict_run(rewritelog.fit(LINES, "least-squares"), {"D": 2})


@pytest.mark.slow
def test_pages_of_reports_and_fits_are_those_of_the_commands(tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    timings = CELLS / "timings.txt"
    fitted = rewritelog.fit(timings, "least-squares")
    text = rewritelog.page(fitted, timings, output=tmp_path / "fit.html")
    assert (tmp_path / "fit.html").read_text() == text
    assert "Cell::pairForces" in text
    report = rewritelog.rewrite(CELLS, dilation=0.5)
    assert "Rewrite of" in rewritelog.page(report)
    rewritelog.replay(CELLS, gains=0, html=tmp_path / "replay.html")
    assert "critical path" in (tmp_path / "replay.html").read_text()
    sweep = rewritelog.sweep(CELLS, {"dilation": [0.5, 1]}, plot=tmp_path / "sweep.svg")
    assert "<svg" in (tmp_path / "sweep.svg").read_text()
    assert "0.5" in rewritelog.page(sweep)
    rewritelog.sweep(CELLS, {"machine": ["alps", "cray-xe6"]}, plot=tmp_path / "machines.svg")
    assert "alps" in (tmp_path / "machines.svg").read_text()
    for place in range(13):
        (tmp_path / f"m{place}.toml").write_text(f'latency = "{place}us"\nbandwidth = "1GB/s"\n')
    machines = [str(tmp_path / f"m{place}.toml") for place in range(13)]
    rewritelog.sweep(CELLS, {"machine": machines}, plot=tmp_path / "many.svg")
    rewritelog.sweep(CELLS, {"bandwidth": [1e9, 2e9, "inf"]}, plot=tmp_path / "inf.svg")
    tried = rewritelog.compare(timings, "least-squares", folds=2)
    assert "least-squares" in rewritelog.page(tried)
    chosen = rewritelog.sample(CELLS, tmp_path / "chosen.txt", fraction=0.2)
    assert "Cell::bonded" in rewritelog.page(chosen)
    assert "Cell::bonded" in rewritelog.page(fitted)
    fitted.save(tmp_path / "model.json")
    with pytest.raises(rewritelog.UsageError, match="a model file has no samples"):
        rewritelog.page(rewritelog.load_model(tmp_path / "model.json"))
    with pytest.raises(rewritelog.UsageError, match="the page of RewriteReport takes no timings"):
        rewritelog.page(report, timings)
    with pytest.raises(rewritelog.UsageError, match="no page for an object of type LogSet"):
        rewritelog.page(rewritelog.open_logs(CELLS))  # type: ignore[arg-type]


def test_traces_give_timing_lines_that_are_summarised_merged_and_fitted(tmp_path: Path) -> None:
    lines, merged = tmp_path / "lines.txt", tmp_path / "merged.txt"
    written = rewritelog.write_timings(SAMPLE_LOGS / "transformer" / "profile", lines)
    assert {event: count for event, count, _ in written.events}["aten::mm"] == 64
    assert "aten::mm(p1, p2, p3, p4): 64 lines" in rewritelog.stats(lines).text()
    assert rewritelog.merge([lines, LINES], output=merged).lines == 112 + 600
    assert len(rewritelog.read_timings(merged)) == 112 + 600
    assert "aten::mm" in rewritelog.fit(merged, "least-squares").events
    with pytest.raises(rewritelog.OutputError, match="File name too long"):
        rewritelog.merge(lines, output=tmp_path / ("x" * 300))


def test_the_live_page_is_served_with_what_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("bokeh")
    served: list[ExploreCommand] = []
    monkeypatch.setattr(explore, "explore", served.append)
    rewritelog.explore(str(LINES), rewritelog.open_logs(CELLS), output=tmp_path, no_browser=True)
    (options,) = served
    assert options.timings == (LINES,)
    assert options.logs is not None
    assert options.logs.folder == CELLS
    assert (options.output, options.no_browser) == (tmp_path, True)


@pytest.mark.slow
def test_a_page_has_the_ending_of_one(tmp_path: Path) -> None:
    """HTML was written to p.json, where pictures with such a name are refused."""
    pytest.importorskip("bokeh")
    with pytest.raises(rewritelog.UsageError, match=r"p\.json: a page needs the ending \.html"):
        rewritelog.replay(CELLS, gains=0, html=tmp_path / "p.json")
    info = rewritelog.info(CELLS)
    for name in ("p", "p.json", "p.html.txt"):
        with pytest.raises(rewritelog.UsageError, match=r"a page needs the ending \.html"):
            rewritelog.page(info, output=tmp_path / name)
    for name in ("p.html", "P.HTML", "/dev/null"):
        rewritelog.page(info, output=tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"p.html", "P.HTML"}


def test_no_page_or_figure_replaces_an_input(tmp_path: Path) -> None:
    pytest.importorskip("bokeh")
    pytest.importorskip("matplotlib")
    logs = tmp_path / "logs"
    shutil.copytree(CELLS, logs)
    before = {path.name: path.read_bytes() for path in logs.rglob("*") if path.is_file()}
    with pytest.raises(rewritelog.OutputError):
        rewritelog.replay(logs, gains=0, html=logs / "bgTrace0")
    with pytest.raises(rewritelog.OutputError):
        rewritelog.page(rewritelog.rewrite(logs, dilation=2), output=logs / "bgTrace0")
    fitted = rewritelog.fit(logs / "timings.txt", "least-squares")
    for timings in (None, logs / "timings.txt", rewritelog.read_timings(logs / "timings.txt")):
        with pytest.raises(rewritelog.OutputError):
            rewritelog.page(fitted, timings, output=logs / "timings.txt")
    with pytest.raises(rewritelog.UsageError, match=r"a page needs the ending \.html"):
        rewritelog.page(rewritelog.info(logs), output=logs / "timings.txt")
    assert {path.name: path.read_bytes() for path in logs.rglob("*") if path.is_file()} == before
