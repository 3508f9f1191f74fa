"""What all commands have in common: help, warnings, streams, options that mean the same."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chosen import by_tier
from commands import Done, rewritelog
from logbuilder import bracket, seb, write_logs, write_params, write_timings
from oracle import SAMPLE_LOGS

import rewritelog as api
from rewritelog import commands
from rewritelog.cli import process
from rewritelog.commands.fits import FitCommand
from rewritelog.running.engines import limited_to
from rewritelog.timings.read import read_timings
from rewritelog.viewing.explore import effect_on

COMMANDS = commands.NAMES


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    timeline = [seb(k, k + 1, events=bracket(0.25, 0.75)) for k in range(3)]
    folder = write_logs(tmp_path / "in", [timeline, timeline])
    for pe in (0, 1):
        write_params(folder, pe, *[(k, "k", k + 1) for k in range(3)])
    return folder


@pytest.fixture
def timings(tmp_path: Path) -> Path:
    return write_timings(tmp_path / "timings.txt", *[("k", 2.0 * n, float(n)) for n in range(1, 9)])


def warned(done: Done, *words: str) -> bool:
    lines = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    return any(all(word in line for word in words) for line in lines)


@pytest.mark.parametrize("number", ["1_0", "\u0661\u0660"])
@pytest.mark.parametrize("option", ["--speedup=", "--jobs=", "--dilation-for=k=", "--clock-hz="])
def test_numbers_that_only_python_reads_are_refused(
    logs: Path, timings: Path, option: str, number: str
) -> None:
    """`P=6_4` was read as 64, but no timing line and no formula may have such a number."""
    words = ("--timings", timings, f"{option}{number}")
    done = rewritelog("rewrite", logs, logs.parent / "out", *words)
    assert done.returncode == 2
    assert option.partition("=")[0] in done.stderr
    assert number in done.stderr


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_shows_words(command: str) -> None:
    done = rewritelog(*command.split(), "--help", env={"COLUMNS": "80"})
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "..." not in done.stdout.replace("TIMINGS...", "").replace("LOGS...", "").replace(
        "FILE...", ""
    ).replace("[ARGS]...", "").replace("NAME,NAME,...", "").replace("VALUE,...", "")
    for kind in ("FLOAT", "INTEGER", "<path>", "<float>", "<int>", "x>=0"):
        assert kind not in done.stdout


def test_the_usual_options_of_timings_are_those_of_the_manual() -> None:
    """Every example gives it the parameters of nodes, and its help left them out."""
    assert "--event-params FILE" in rewritelog("timings", "--help").stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_one_screen(command: str) -> None:
    done = rewritelog(*command.split(), "--help", env={"COLUMNS": "80"})
    assert len(done.stdout.splitlines()) <= (40 if command else 60)
    everything = rewritelog(*command.split(), "--help-all") if command else done
    assert len(everything.stdout) >= len(done.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_says_what_the_commands_say(command: str) -> None:
    listed = " ".join(rewritelog("--help").stdout.split())
    help_text = " ".join(rewritelog(command, "--help").stdout.split())
    summary = commands.summary(command)
    assert f" {command} {summary}" in listed
    assert f" {summary}. " in help_text


@pytest.mark.parametrize("command", COMMANDS)
def test_debug_and_version_are_where_they_are_looked_for(command: str) -> None:
    done = rewritelog(command, "--version")
    assert (done.returncode, done.stdout[:11]) == (0, "rewritelog ")
    done = rewritelog("dump", "nowhere", "--pe", "0", "--debug")
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_quiet_and_jobs_are_where_they_are_looked_for(command: str) -> None:
    help_text = rewritelog(command, "--help").stdout
    assert ("-q, --quiet" in help_text) == (command not in {"completion", "models", "rules"})
    has_no_jobs = {"completion", "dump", "merge", "models", "predict", "predict-run", "rules",
                   "stats", "verify"}  # fmt: skip
    assert ("-j, --jobs N" in help_text) == (command not in has_no_jobs)


@pytest.mark.slow
def test_no_more_workers_are_used_than_the_jobs_allow(
    logs: Path, timings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replays for pictures, exports and the live page, and pages of fits, used all cores."""

    def all_cores(_: int) -> set[int]:
        raise AssertionError("all cores are used")

    pytest.importorskip("bokeh", reason="needs the extra [view]")
    monkeypatch.setattr(os, "sched_getaffinity", all_cores)
    with pytest.raises(AssertionError):
        api.info(logs)
    api.timeline(logs, tmp_path / "page.html", times="replay", jobs=1)
    api.export(logs, tmp_path / "out", "goal", replayed=True, jobs=1)
    fit = FitCommand(timings, jobs=1)
    assert fit.page(fit.run())
    with limited_to(1):
        effect = effect_on(api.open_logs(logs), None)
    fits = api.fit(timings, jobs=1)
    with ThreadPoolExecutor(1) as requests:  # which do not know the limit
        assert requests.submit(effect, fits, fits, 0.5).result()["seconds"]


def test_quiet_leaves_what_was_asked_for(logs: Path, timings: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    assert rewritelog("fit", timings, "-o", model, "-q").stdout == ""
    assert rewritelog("predict", model, timings, "-q").stdout.startswith("file,line,")
    assert rewritelog("dump", logs, "--pe", "0", "-q").stdout.startswith("PE 0: 3 SEBs")
    assert rewritelog("predict", model, tmp_path / "nowhere").stdout == ""


def test_usage_errors_have_the_style_of_all_errors() -> None:
    for words in ((), ("fit",), ("rewrite", "a", "b", "--job", "x"), ("nonsense",)):
        if words:
            done = rewritelog(*words)
            assert done.returncode == 2
            assert done.stderr.startswith("rewritelog: error: ")
            assert "--help' for help." in done.stderr


def test_files_that_follow_timings_are_timings_too(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    more = write_timings(tmp_path / "more.txt", ("k", 20.0, 10.0))
    for words in (
        ("rewrite", logs, tmp_path / "out", "--timings", timings, more),
        ("rewrite", "--timings", timings, more, logs, tmp_path / "out"),
        ("rewrite", logs, "--timings", timings, more, "--dry-run"),
        ("rewrite", logs, tmp_path / "out", "--timings", timings, "--timings", more),
        ("rewrite", logs, "--timings", timings, more, tmp_path / "new", "-vj", "1"),
    ):
        done = rewritelog(*words, "-v", *(() if "--dry-run" in words else ("--force",)))
        assert done.returncode == 0, done.stderr
        assert "fitted to 9 timing lines" in done.stdout
    assert rewritelog("replay", "--timings", timings, more, logs, logs).returncode == 0


def test_what_had_no_effect_is_warned_of(logs: Path, timings: Path, tmp_path: Path) -> None:
    done = rewritelog("rewrite", logs, "--dry-run", "--dilation-for", "x*=2", "--dilation-for=*=2")
    assert warned(done, "'x*'", "no SEB")
    assert not warned(done, "'*'")
    done = rewritelog("rewrite", logs, "--dry-run", "--dilation", "2", "--params", tmp_path)
    assert warned(done, "reads no params")
    done = rewritelog("rewrite", logs, "--dry-run", "--dilation", "2", "--dilation", "3")
    assert warned(done, "--dilation is given more than once", "last")
    twice = ("--timings", timings, tmp_path / "in/../timings.txt")
    done = rewritelog("rewrite", logs, "--dry-run", *twice, "--dilation=1")
    assert warned(done, "timings.txt: given more than once")


def test_time_at_the_hosts_speed_is_warned_of_unless_it_is_meant(logs: Path, timings: Path) -> None:
    fit = ("rewrite", logs, "--dry-run", "--timings", timings)
    assert warned(rewritelog(*fit), "keeps the host's speed", "--dilation")
    stated = rewritelog(*fit, "--dilation", "1", "--model", "least-squares")
    assert not warned(stated, "keeps the host's speed")
    assert warned(rewritelog(*fit, "--dilation-for", "end*=2"), "unless --dilation-for matches")
    assert not warned(rewritelog(*fit, "--dilation-for=*=2"), "keeps the host's speed")


def test_a_rewrite_of_nothing_says_that_it_copies(logs: Path, tmp_path: Path) -> None:
    done = rewritelog("rewrite", logs, tmp_path / "out")
    assert done.stdout.startswith("Every duration stays as it is")
    assert "OUT is a copy of LOGS" in " ".join(done.stdout.split())


def test_warnings_stay_with_quiet_and_can_fail(logs: Path, timings: Path, tmp_path: Path) -> None:
    words = ("rewrite", logs, tmp_path / "out", "--timings", timings, "--quiet")
    done = rewritelog(*words)
    assert (done.returncode, done.stdout) == (0, "")
    assert warned(done, "host's speed")
    done = rewritelog(*words, "--force", "--fail-on-warning")
    assert done.returncode == 1
    assert (tmp_path / "out/bgTrace0").exists()


def test_what_concerns_users_of_tracer_alone_is_no_warning(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "in", [[seb(0, 1, events=bracket(0.2, 0.4), name=b"msgep")]])
    write_params(logs, 0, (0, "k", 2))
    timings = write_timings(tmp_path / "timings.txt", ("k", 0.3, 2.0))
    words = ("rewrite", logs, tmp_path / "out", "--timings", timings, "--dilation", "1", "--force")
    done = rewritelog(*words, "--fail-on-warning", "--json")
    assert "note: TraceR would ignore 1 of the 1 predicted duration" in done.stderr
    assert done.returncode == int("warning:" in done.stderr)
    assert "TraceR" not in rewritelog(*words, "--quiet").stderr


def test_what_was_noted_when_a_model_file_was_made_is_no_warning_of_its_use(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    """Each rewrite with it failed under --fail-on-warning, and warned of a file it did not read."""
    names, model = tmp_path / "names.toml", tmp_path / "m.json"
    names.write_text('other = ["n"]\n')
    fit = ("fit", timings, "--model", "least-squares", "--param-names", names)
    done = rewritelog(*fit, "-o", model)
    assert warned(done, "parameter names for 'other' are not used")
    done = rewritelog("rewrite", logs, "--dry-run", "--fitted", model)
    assert f"note: {model}: parameter names for 'other' are not used" in done.stderr
    assert not warned(done, "are not used")
    assert any("are not used" in warning for warning in api.load_model(model).warnings)


def test_json_on_stdout_is_the_report_file(logs: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    for words in (("rewrite", logs, "--dry-run"), ("info", logs), ("check", logs),
                  ("diff", logs, logs), ("convert", logs, tmp_path / "old")):  # fmt: skip
        done = rewritelog(*words, "--json", "--report", report)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == json.loads(report.read_text())


def test_standard_streams_are_named_by_a_dash(timings: Path) -> None:
    command = [sys.executable, "-m", "rewritelog", "fit", "-", "-o", "-", "--model=least-squares"]
    done = subprocess.run(
        command, input=timings.read_text(), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["format"] == "rewritelog model"
    assert "least-squares" in done.stderr


def test_standard_input_is_read_only_once() -> None:
    for words in (("fit", "-", "-"), ("stats", "-", "-")):  # the second was read as empty
        done = rewritelog(*words)
        assert done.returncode == 2
        assert "standard input (-) can be read only once" in done.stderr


def test_a_report_in_json_stands_beside_a_file_on_stdout(timings: Path) -> None:
    done = rewritelog("fit", timings, "-o", "-", "--json")
    assert json.loads(done.stdout)["format"] == "rewritelog model"
    assert json.loads(done.stderr)["timing_lines"] == 8


def test_json_on_stdout_is_printed_once_and_beside_timing_lines(logs: Path) -> None:
    done = rewritelog("check", logs, "--json", "--report", "-")
    assert json.loads(done.stdout)["format"] == "bgTrace logs"
    command = [sys.executable, "-m", "rewritelog", "lost-cycles", str(logs)]
    command += ["--timings-out", "-"]
    for more in ((), ("--json",)):
        beside = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
        head, *lines = beside.stdout.splitlines()
        assert head.startswith("# lost cycles")
        assert all(line.startswith("TRACEBIGSIM") for line in lines)
    assert json.loads(beside.stderr)["logs"] == str(logs)


def test_a_picture_on_stdout_is_svg(logs: Path) -> None:
    pytest.importorskip("matplotlib")
    done = rewritelog("timeline", logs, "-o", "-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<?xml")
    assert done.stdout.rstrip().endswith("</svg>")


def test_output_says_where_it_comes_from(logs: Path, timings: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m.json", tmp_path / "out"
    assert rewritelog("fit", timings, "-o", model).returncode == 0
    fitted = ("--fitted", model, "--dilation", "0.5")
    assert rewritelog("rewrite", logs, out, *fitted).returncode == 0
    provenance = json.loads((out / "rewritelog.json").read_text())
    assert provenance["options"]["dilation"] == 0.5
    assert provenance["model"]["fitted_to"]["lines"] == 8
    assert str(tmp_path) not in (out / "rewritelog.json").read_text()
    assert rewritelog("rewrite", logs, tmp_path / "same", *fitted, "-j", "1").returncode == 0
    same = (tmp_path / "same/rewritelog.json").read_bytes()
    assert same == (out / "rewritelog.json").read_bytes()
    assert "rewritten by rewritelog" in rewritelog("info", out).stdout
    again = rewritelog("rewrite", out, tmp_path / "twice", "--dilation", "2")
    assert warned(again, "rewritten before", "second time")
    assert rewritelog("info", logs, "--json").stdout.count('"provenance": null') == 1


def test_a_rewrite_with_other_options_than_usual_is_told_with_them(
    logs: Path, timings: Path, tmp_path: Path
) -> None:
    """A dilation that no SEB had was all that `info` said, and what a rewrite of it warned of."""
    out = tmp_path / "out"
    usual = tmp_path / "usual"
    assert rewritelog("rewrite", logs, usual, "--timings", timings).returncode == 0
    factors = ("--dilation", "0.5", "--dilation-for", "*=0.9")
    others = ("--total", "typical", "--recv", "keep", "--spread", "residual", "--seed", "3")
    words = ("rewrite", logs, out, "--timings", timings)
    assert rewritelog(*words, *factors, *others).returncode == 0
    told = "dilation 0.5, 0.9 for *, recv keep, total typical, spread residual, seed 3"
    assert told in " ".join(rewritelog("info", out).stdout.split())
    assert warned(rewritelog("rewrite", out, "--dry-run"), told)
    assert warned(rewritelog("rewrite", usual, "--dry-run"), "timing lines, dilation 1.0: its")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = rewritelog("completion", shell)
    assert "_REWRITELOG_COMPLETE" in done.stdout


COMPLETED = [
    ("rewritelog re", {"rewrite", "replay"}),
    ("rewritelog fit --model le", {"least-squares"}),
    ("rewritelog fit --output x --fail", {"--fail-on-warning"}),
    ("rewritelog compare --models auto,coun", {"auto,counters"}),
    ("rewritelog rewrite --recv s", {"shift"}),
    ("rewritelog replay --machine al", {"alps"}),
    ("rewritelog rules two", {"two-causes"}),
    (f"rewritelog fit {SAMPLE_LOGS}/cells/timings.txt --event Cell::p", {"Cell::pairForces"}),
    (
        f"rewritelog replay x --timings {SAMPLE_LOGS}/cells/timings.txt --lost-as Cell::p",
        {"Cell::pairForces="},
    ),
]


@pytest.mark.parametrize(("words", "completions"), by_tier(COMPLETED, COMPLETED[1::4], COMPLETED))
def test_completions(words: str, completions: set[str]) -> None:
    asked = {
        "_REWRITELOG_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    script = Path(sys.executable).parent / "rewritelog"
    done = subprocess.run(
        [script], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == completions


def test_colours_of_messages_are_all_that_a_terminal_obeys() -> None:
    written = io.BytesIO()
    stream = process.EscapedMessages(written, "utf-8", "backslashreplace")
    stream.write("\x1b[31merror:\x1b[0m a\x1b[2Jb\n")
    stream.flush()
    assert written.getvalue() == b"\x1b[31merror:\x1b[0m a\\x1b[2Jb\n"


@pytest.mark.long
def test_messages_have_colours_on_terminals_alone(logs: Path) -> None:
    leader, terminal = os.openpty()
    command = [sys.executable, "-m", "rewritelog", "info", "no\x1b[2Jwhere"]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    for more, colour in (({}, b"\x1b[31mrewritelog: error:\x1b[0m "), ({"NO_COLOR": "1"}, b"rew")):
        shown = environment | {"TERM": "xterm"} | more
        done = subprocess.run(command, stderr=terminal, env=shown, check=False)
        assert done.returncode == 1
        printed = os.read(leader, 10_000)
        assert printed.lstrip(b"\r").startswith(colour)  # after an empty line of progress
        assert b"\x1b[2J" not in printed
    os.close(leader)
    os.close(terminal)
    piped = rewritelog("info", logs / "nowhere")
    assert "\x1b" not in piped.stderr


def test_a_clock_and_files_without_effect_are_warned_of(timings: Path) -> None:
    done = rewritelog("fit", timings, timings, "--clock-hz", "1e9", "--model", "least-squares")
    assert warned(done, "clock rate is not used")
    assert warned(done, "given more than once")
    for words in (("stats",), ("merge", "-o", "-")):  # they did not say so
        assert warned(rewritelog(*words, timings, timings), f"{timings}: given more than once")
        assert not warned(rewritelog(*words, timings), "given more than once")


def test_a_clock_rate_may_have_a_unit(tmp_path: Path) -> None:
    lines = tmp_path / "cycles.txt"
    line = "TRACEBIGSIM: event:{{ k }} time_in_cycles:{{ {} }} params:{{ {} }}\n"
    lines.write_text("".join(line.format(2000 * n, n) for n in range(1, 9)))
    expected = [1e-6 * n for n in range(1, 9)]
    for rate in ("2GHz", "2e9", "2000 MHz"):
        (samples,) = read_timings(lines, clock_hz=rate)
        assert samples.seconds.tolist() == pytest.approx(expected)
        done = rewritelog("fit", lines, "--clock-hz", rate)
        assert done.returncode == 0, done.stderr
        assert "8 timing lines of" in done.stdout
        assert "cycles of 500 ps" in " ".join(done.stdout.split())  # 2 for 2GHz would be 500 ms
    for rate, message in (("2s", "is not a clock rate"), ("-2GHz", "above 0"), ("0", "above 0")):
        done = rewritelog("fit", lines, "--clock-hz", rate)
        assert done.returncode == 2
        assert message in done.stderr


def test_a_long_term_fits_80_columns(timings: Path, tmp_path: Path) -> None:
    factors = "*".join(f"(p1 + {number})" for number in range(1, 20))
    formulas = tmp_path / "long.toml"
    formulas.write_text(f'[[formula]]\nevent = "k"\nterms = ["{factors}"]\n')
    report = rewritelog("fit", timings, "--formulas", formulas, "-v").stdout
    assert max(map(len, report.replace(str(timings), "timings.txt").splitlines())) <= 80
    assert factors.replace(" ", "") in "".join(report.split())


def test_what_the_model_has_no_use_for_is_said(logs: Path, timings: Path) -> None:
    done = rewritelog("rewrite", logs, "--dry-run", "--dilation", "2", "--total", "typical")
    assert warned(done, "--total typical", "changes nothing", "'constant'")
    fit = ("rewrite", logs, "--dry-run", "--timings", timings, "--dilation", "1")
    assert not warned(rewritelog(*fit, "--total", "typical"), "changes nothing")
    spread = rewritelog(*fit, "--total", "typical", "--spread", "residual")
    assert warned(spread, "--total typical", "changes nothing", "spread", "measured machine's sum")
    done = rewritelog(*fit, "--seed", "7")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--seed is for --spread residual and --model sampled" in done.stderr
    assert rewritelog(*fit, "--seed", "7", "--spread", "residual").returncode == 0


def test_options_of_an_output_are_refused_without_one(logs: Path) -> None:
    for option in ("--force", "--copy-params", "--no-flush"):
        done = rewritelog("rewrite", logs, "--dry-run", option)
        assert done.returncode == 2
        assert f"{option} is for OUT, which a dry run does not write" in done.stderr


def test_a_network_as_recorded_takes_no_quantities_of_another(logs: Path) -> None:
    for option, value in (("--cost-per-packet", "1us"), ("--packet-size", "64B")):
        done = rewritelog("replay", logs, "--network", "log", option, value)
        assert done.returncode == 2
        assert f"--network log takes no {option}" in done.stderr
    done = rewritelog("replay", logs, "--network", "log", "--node-latency", "1us")
    assert done.returncode == 0, done.stderr


def test_a_domain_without_cells_is_refused(tmp_path: Path) -> None:
    done = rewritelog("synth", tmp_path / "out", "--size", "0")
    assert done.returncode == 2
    assert "--size must be an integer of 1 or more, not '0'" in done.stderr
