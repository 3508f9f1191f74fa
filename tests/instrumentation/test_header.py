"""What C and C++ programs print through `tracebigsim.h` in timed runs, in each of its modes."""

from __future__ import annotations

import math
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from building import (
    PAPI,
    PAPI_STUB,
    WARNINGS,
    build,
    compiled,
    environment,
    events_of,
    params_of,
    run,
    sound,
    tool,
    written,
)
from chosen import by_tier
from faulty import HANGS_S

import tracebigsim
from tracebigsim import format_chosen
from tracebigsim.lines import TimeUnit

CALLS = r"""
#include "tracebigsim.h"
void calls(void) {
  unsigned long whole = 3;
  long double three = 3;
  startTraceBigSim();
  endTraceBigSim((char *)"no params");
  startTraceBigSimFor("mixed", 1, 2.5f, 0.1, three, -1e-300, -0.0, whole++);
  endTraceBigSim("mixed", 1, 2.5f, 0.1, three, -1e-300, -0.0, whole++);
  startTraceBigSim();
  endTraceBigSim("twenty", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
}
"""
PARAMS = [[], [1, 2.5, 0.1, 3, -1e-300, 0, 4], list(range(1, 21))]
MAIN = "{} int main(void) {{ calls(); return 0; }}\n"

LANGUAGES = [("c", "c99"), ("c", "gnu99"), ("c", "c17"), ("cpp", "c++11"), ("cpp", "c++20")]


def main(body: str, before: str = "") -> str:
    """A source whose main function has this body."""
    return f'#include "tracebigsim.h"\n{before}\nint main(void) {{ {body} return 0; }}\n'


@pytest.mark.parametrize(
    ("suffix", "standard"), by_tier(LANGUAGES, [("c", "c99"), ("cpp", "c++11")])
)
@pytest.mark.parametrize("level", by_tier(["-O0", "-O3", "-Ofast"], ["-O3"]))
def test_every_call_prints_its_line(suffix: str, standard: str, level: str, tmp_path: Path) -> None:
    sources = [(f"calls.{suffix}", CALLS), (f"main.{suffix}", MAIN.format("void calls(void);"))]
    program = build(tmp_path, *sources, options=[f"-std={standard}", level])
    table = run([program]).table()
    assert events_of(table) == ["no params", "mixed", "twenty"]
    assert params_of(table) == PARAMS
    assert all(math.copysign(1, param) == 1 for param in table.params if param == 0)
    assert set(table.time_unit) == {TimeUnit.SECONDS}
    assert 0 <= min(table.time) <= max(table.time) < 60


def test_c_and_cpp_sources_of_a_program_share_their_brackets(tmp_path: Path) -> None:
    """A bracket may be opened in one source and closed in another, whatever their languages."""
    opens = '#include "tracebigsim.h"\nextern "C" void opens(void) { startTraceBigSim(); }\n'
    program = build(
        tmp_path,
        ("opens.cpp", opens),
        ("main.c", main('opens(); endTraceBigSim("k", 2);', "void opens(void);")),
    )
    assert params_of(run([program]).table()) == [[2]]


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_a_macro_that_is_0_is_not_defined(suffix: str, tmp_path: Path) -> None:
    """Brackets were off, without a word, if a build passed TRACEBIGSIM_OFF=0."""
    macros = ["OFF", "CYCLES", "PAPI"]
    zeros = ["-DCMK_BIGSIM_CHARM=0", *(f"-DTRACEBIGSIM_{macro}=0" for macro in macros)]
    source = main('startTraceBigSim(); endTraceBigSim("k", 2);')
    table = run([build(tmp_path, (f"a.{suffix}", source), options=zeros)]).table()
    assert (params_of(table), set(table.time_unit)) == ([[2]], {TimeUnit.SECONDS})
    for value in ("=", "", "=1", "=ON"):
        off = build(tmp_path, (f"a.{suffix}", source), options=[f"-DTRACEBIGSIM_OFF{value}"])
        assert run([off]).out == b""


MODES = {
    "seconds": "",
    "cycles": "#define TRACEBIGSIM_CYCLES\n",
    "off": "#define TRACEBIGSIM_OFF\n",
    "simulated": """
extern int begun;
#define TRACEBIGSIM_SIMULATOR_BEGIN() (++begun)
#define TRACEBIGSIM_SIMULATOR_END() ((void)0)
#define TRACEBIGSIM_READ_CYCLES() 7
""",
}
IN_MODE = """
#include "tracebigsim.h"
void MODE() {
  startTraceBigSimFor("MODE", 1);
  endTraceBigSim("MODE", 1);
  tracebigsim::Bracket bracket("MODE", 2);
}
"""


@pytest.mark.parametrize("order", [1, -1])
def test_each_source_of_a_cpp_program_has_its_own_mode(order: int, tmp_path: Path) -> None:
    """The linker took the guard and the functions of one of them for all of its brackets."""
    sources = [(f"{mode}.cpp", MODES[mode] + IN_MODE.replace("MODE", mode)) for mode in MODES]
    declared = "int begun; " + " ".join(f"void {mode}();" for mode in MODES)
    calls = "seconds(); off(); cycles(); const int others = begun; simulated();"
    ends = "return others == 0 && begun > 1 ? 0 : 1;"
    main_source = f"{declared} int main() {{ {calls} {ends} }}\n"
    program = build(tmp_path, *sources[::order], ("main.cpp", main_source), options=["-O0"])
    printed = run([program])
    table = printed.table()
    assert events_of(table) == [mode for mode in ("seconds", "cycles", "simulated") for _ in "12"]
    assert list(table.time_unit) == [TimeUnit.SECONDS] * 2 + [TimeUnit.CYCLES] * 4
    assert printed.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["aarch64-macos", "x86_64-linux-musl"])
def test_programs_compile_for_other_systems(target: str, tmp_path: Path) -> None:
    pytest.importorskip("ziglang", reason="zig compiles for other systems")
    source = tmp_path / "main.c"
    source.write_text(main('startTraceBigSim(); endTraceBigSim("k", 2.0);'))
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-std=c99", *WARNINGS]
    includes = ["-I", str(tracebigsim.include_dir())]
    command = [*zig, *includes, "-c", str(source), "-o", str(tmp_path / "main.o")]
    subprocess.run(command, check=True, timeout=HANGS_S)


GUARD = r"""
#include "tracebigsim.h"
static void raises() { tracebigsim::Bracket bracket("raises"); throw 1; }
int main() {
  { tracebigsim::Bracket bracket("guard", 3, 0.5); }
  try { raises(); } catch (int) { tracebigsim::Bracket bracket("after"); }
  return 0;
}
"""


@pytest.mark.parametrize("standard", by_tier(["c++11", "c++17"], ["c++17"]))
def test_a_guard_brackets_its_block_unless_it_is_left_by_an_exception(
    standard: str, tmp_path: Path
) -> None:
    printed = run([build(tmp_path, ("guard.cpp", GUARD), options=[f"-std={standard}"])])
    assert events_of(printed.table()) == ["guard", "after"]
    assert printed.err == ""


def test_a_guard_has_the_name_that_it_began_with(tmp_path: Path) -> None:
    """The name of a temporary string was gone at its end, and the line had what was there then."""
    body = """for (size_t length = 1999; length <= 2002; length++) {
                std::string name(length, 'k');
                tracebigsim::Bracket bracket(name.c_str(), length);
                name[0] = '?';
              }"""
    program = build(tmp_path, ("a.cpp", main(body, "#include <string>")))
    printed = run([program])
    table = printed.table()
    assert events_of(table) == ["k" * 1999, "k" * 2000]
    assert params_of(table) == [[1999], [2000]]
    assert printed.err.count("the name has more than 2000 bytes") == 2


@pytest.mark.parametrize("level", by_tier(["-O0", "-O1", "-O2", "-O3", "-Os"], ["-O1"]))
def test_a_guard_compiles_without_warnings(level: str, tmp_path: Path) -> None:
    """At -O1 and -Os, g++ warned that a literal is shorter than the longest name."""
    calls = 'void kernel(int n);\nvoid kernel(int n) { tracebigsim::Bracket bracket("k", n); }\n'
    source = written(tmp_path, "guard.cpp", f'#include "tracebigsim.h"\n{calls}')
    assert compiled(source, tmp_path, level, "-std=gnu++17").stderr == ""


def test_a_guard_without_a_name_is_a_warning(tmp_path: Path) -> None:
    """It ends where it begins, and printed the time of nothing."""
    source = written(tmp_path, "nameless.cpp", main('tracebigsim::Bracket("k", 1);'))
    assert "nodiscard" in compiled(source, tmp_path).stderr


def test_a_strict_source_that_includes_others_first_gets_one_error(tmp_path: Path) -> None:
    """Fifteen others followed it."""
    source = written(tmp_path, "strict.c", f"#include <stdio.h>\n{MAIN.format(CALLS)}")
    errors = re.findall(r"tracebigsim\.h:\d+:\d+: error: (.*)", compiled(source, tmp_path).stderr)
    assert len(errors) == 1
    assert "before other headers, or compile with -D_POSIX_C_SOURCE=200809L" in errors[0]


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_a_twenty_first_number_does_not_compile(suffix: str, tmp_path: Path) -> None:
    numbers = ", ".join("1" * 21)
    for call in ("endTraceBigSim", "startTraceBigSimFor"):
        source = written(tmp_path, f"many.{suffix}", main(f'{call}("k", {numbers});'))
        assert compiled(source, tmp_path).returncode != 0


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_what_does_not_pair_up_is_reported_and_goes_on(suffix: str, tmp_path: Path) -> None:
    body = """endTraceBigSim("first"); startTraceBigSim(); startTraceBigSim();
              endTraceBigSim("inner", 1); endTraceBigSim("outer"); startTraceBigSim();
              endTraceBigSim("later");"""
    printed = run([build(tmp_path, (f"a.{suffix}", main(body)))])
    assert events_of(printed.table()) == ["inner", "later"]
    assert printed.err.splitlines() == [
        "tracebigsim: first: an end without a start",
        "tracebigsim: start: within an open bracket, which is dropped",
        "tracebigsim: outer: an end without a start",
    ]


def test_reports_come_to_an_end(tmp_path: Path) -> None:
    body = 'for (int i = 0; i < 1000; i++) endTraceBigSim("k");'
    lines = run([build(tmp_path, ("a.c", main(body)))]).err.splitlines()
    assert len(lines) == 20
    assert lines[-1].endswith("(further reports are left out)")


NAMES = ["", " k", "k\t", "a\\nb", "a\\x7f", "a{", "}a{", "a:{b}", "a: {b}", "xTRACEBIGSIM"]
GOOD_NAMES = ["k", "a b", "Cell<{int}>::f", "a::{b}", "é", "k\tl", "TRACE"]


@pytest.mark.parametrize("level", by_tier(["-O2", "-Ofast"], ["-Ofast"], ["-O2"]))
def test_names_and_numbers_that_no_line_can_hold(level: str, tmp_path: Path) -> None:
    calls = [f'endTraceBigSim("{name}", 1);' for name in (*NAMES, *GOOD_NAMES)]
    calls += [
        f'endTraceBigSim("{"k" * 2001}");',
        'endTraceBigSim("nan", 0.0 / zero);',
        'endTraceBigSim("inf", 1 / zero);',
        f'endTraceBigSim("{"k" * 2000}");',
    ]
    body = "double zero = 0; " + "".join(f"startTraceBigSim(); {call}\n" for call in calls)
    printed = run([build(tmp_path, ("a.c", main(body)), options=[level])])
    assert events_of(printed.table()) == [*GOOD_NAMES, "k" * 2000]
    assert len(printed.err.splitlines()) == len(NAMES) + 3


NUMBERS = r"""
#include "tracebigsim.h"
#include <locale.h>
int main(void) {
  double value;
  setlocale(LC_ALL, "");
  while (fread(&value, sizeof value, 1, stdin) == 1) {
    startTraceBigSim();
    endTraceBigSim("k", value);
  }
  return 0;
}
"""


def many_numbers() -> list[float]:
    """Doubles of every kind."""
    draw = random.Random(4)  # noqa: S311
    plain = [0.1, 1 / 3, 1e-6, 5e-324, 1.7e308, 2**53, 2**53 + 2, 8999999999.999999, 9e9, 1e15]
    anyhow = [struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0] for _ in range(3000)]
    decimal = [round(draw.uniform(-1e5, 1e5), draw.randrange(8)) for _ in range(3000)]
    finite = [value for value in plain + anyhow + decimal if math.isfinite(value)]
    return finite + [-value for value in finite]


def printed_numbers(folder: Path, values: list[float], **more: str) -> list[float]:
    """What a program prints of these numbers, as it reads back."""
    program = build(folder, ("numbers.c", NUMBERS), options=["-O2"])
    packed = struct.pack(f"{len(values)}d", *values)
    ran = subprocess.run(
        [program], input=packed, capture_output=True, check=True, env=environment(**more)
    )
    return [params[0] for params in params_of(sound(ran.stdout))]


@pytest.mark.parametrize("step", by_tier([1, 11], [11], [1]))
def test_numbers_read_back_as_the_same_doubles(step: int, tmp_path: Path) -> None:
    values = many_numbers()[::step]
    assert printed_numbers(tmp_path, values) == values


@pytest.mark.slow
def test_numbers_have_a_point_in_every_locale(tmp_path: Path) -> None:
    with_comma = {"LC_ALL": "", "LC_NUMERIC": comma_locale(tmp_path), "LOCPATH": str(tmp_path)}
    values = many_numbers()
    assert printed_numbers(tmp_path, values, **with_comma) == values
    (tmp_path / "chosen").write_text(format_chosen(0, 0, "k", [0.1]))
    chosen = {**with_comma, "TRACEBIGSIM_CHOSEN": str(tmp_path / "chosen")}
    assert printed_numbers(tmp_path, [0.1, 0.0, 2.5], **chosen) == [0.1]


def comma_locale(folder: Path) -> str:
    """Make a locale whose decimal sign is a comma, from nothing but the C library's localedef."""
    charmap, source = folder / "plain.map", folder / "comma.src"
    codes = "\n".join(f"<U{code:04X}> /x{code:02x}" for code in range(128))
    charmap.write_text(
        "<code_set_name> ANSI_X3.4-1968\n<escape_char> /\n<comment_char> %\n"
        f"CHARMAP\n{codes}\nEND CHARMAP\n"
    )
    source.write_text(
        'comment_char %\nescape_char /\nLC_NUMERIC\ndecimal_point ","\n'
        'thousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n'
    )
    command: list[str | Path] = [tool("localedef"), "-c", "-f", charmap, "-i", source]
    subprocess.run(
        [*command, folder / "comma"], capture_output=True, check=False
    )  # it exits with 1, as it warns
    more = {"LC_ALL": "", "LC_NUMERIC": "comma", "LOCPATH": str(folder)}
    if run([tool("locale"), "decimal_point"], more=more).out.strip() != b",":
        pytest.skip("localedef could not make a locale with a decimal comma here")
    return "comma"


def test_off_evaluates_nothing_and_needs_nothing(tmp_path: Path) -> None:
    body = """int i = 0; startTraceBigSim(); startTraceBigSimFor("k", i++);
              endTraceBigSim("k", i++, 2); endTraceBigSim("k"); flushTraceBigSim(); return i;"""
    fields = "static struct { int n : 4; unsigned long long m : 40; } bits; static int64_t j;"
    body = body.replace("return", 'endTraceBigSim("k", bits.n, bits.m, j, (size_t)i); return')
    for suffix in ("c", "cpp"):
        source = main(body, fields)
        program = build(tmp_path, (f"a.{suffix}", source), options=["-DTRACEBIGSIM_OFF"])
        assert run([program]).out == b""
        symbols = subprocess.run(["nm", program], capture_output=True, check=True).stdout
        assert b"tracebigsim_" not in symbols
    guard = build(tmp_path, ("guard.cpp", GUARD), options=["-DTRACEBIGSIM_OFF"])
    assert run([guard]).out == b""


def test_cycles_of_the_processors_counter(tmp_path: Path) -> None:
    table = run([build(tmp_path, ("a.c", MAIN.format(CALLS)), options=["-DTRACEBIGSIM_CYCLES"])])
    assert set(table.table().time_unit) == {TimeUnit.CYCLES}
    assert params_of(table.table()) == PARAMS


SIMULATOR = r"""
#include <stdio.h>
static unsigned long cycles;
static void begins(void) { fputs("begins\n", stderr); cycles += 1000; }
static void ends(void) { fputs("ends\n", stderr); cycles += 1000; }
#define TRACEBIGSIM_SIMULATOR_BEGIN() begins()
#define TRACEBIGSIM_SIMULATOR_END() ends()
#define TRACEBIGSIM_READ_CYCLES() cycles
#include "tracebigsim.h"
int main(void) {
  startTraceBigSimFor("k", 1); cycles += 64; endTraceBigSim("k", 1);
  startTraceBigSimFor("k", 2); cycles += 128; endTraceBigSim("k", 2);
  startTraceBigSim(); cycles += 7; endTraceBigSim("k", 3);
  return 0;
}
"""


@pytest.mark.parametrize("suffix", ["c", "cpp"])
def test_a_simulators_calls_stand_right_around_the_region(suffix: str, tmp_path: Path) -> None:
    source = (
        SIMULATOR.replace(
            "#include <stdio.h>", "#define _POSIX_C_SOURCE 200809L\n#include <stdio.h>"
        )
        if suffix == "c"
        else SIMULATOR
    )
    program = build(tmp_path, (f"a.{suffix}", source))
    printed = run([program])
    assert printed.table().time.tolist() == [64, 128, 7]
    assert set(printed.table().time_unit) == {TimeUnit.CYCLES}
    assert printed.err.split() == ["begins", "ends"] * 3

    chosen = tmp_path / "chosen"
    chosen.write_text(
        "# of two\n" + format_chosen(3, 19, "k", [2]) + format_chosen(3, 20, "x", [3])
    )
    printed = run([program], more={"TRACEBIGSIM_CHOSEN": str(chosen)})
    assert printed.table().time.tolist() == [128]
    assert printed.err.split() == ["begins", "ends"] * 2, (
        "one for the plain start, which names none"
    )


def test_a_counter_that_goes_backwards_prints_no_line(tmp_path: Path) -> None:
    """As one of 32 bits does, or one that differs between the cores that a thread runs on."""
    program = build(tmp_path, ("a.cpp", SIMULATOR.replace("+= 128", "-= 128")))
    printed = run([program])
    assert printed.table().time.tolist() == [64, 7]
    assert "tracebigsim: k: the time is negative: the counter went backwards\n" in printed.err


def test_a_bracket_that_is_replaced_leaves_the_simulators_mode(tmp_path: Path) -> None:
    begin, _, end = SIMULATOR.partition("int main(void) {\n")
    body = """  startTraceBigSim(); startTraceBigSimFor("k", 2); endTraceBigSim("k", 2);
  startTraceBigSim(); startTraceBigSimFor("x", 2); endTraceBigSim("x", 2);
"""
    program = build(tmp_path, ("a.cpp", f"{begin}int main(void) {{\n{body}{end.split('3);')[1]}"))
    chosen = tmp_path / "chosen"
    chosen.write_text(format_chosen(3, 19, "k", [2]))
    printed = run([program], more={"TRACEBIGSIM_CHOSEN": str(chosen)})
    assert re.findall("begins|ends|dropped", printed.err) == [
        *("begins", "dropped", "ends", "begins", "ends"),
        *("begins", "dropped", "ends"),
    ]


def papi_program(folder: Path, body: str, before: str = "") -> Path:
    """Build a program with counters that tick by 100, 200, ..."""
    (folder / "papi.h").write_text(PAPI)
    sources = [("stub.c", PAPI_STUB), ("a.c", main(body, before))]
    return build(folder, *sources, options=["-DTRACEBIGSIM_PAPI", "-I", str(folder)])


def test_counters_are_the_regions_own(tmp_path: Path) -> None:
    body = "".join('startTraceBigSim(); endTraceBigSim("k", 1);' for _ in range(3))
    program = papi_program(tmp_path, body)
    names = {"TRACEBIGSIM_PAPI_EVENTS": "PAPI_TOT_INS,PAPI_L2_TCM"}
    table = run([program], more=names).table()
    assert table.counters.tolist() == [100, 200] * 3
    assert set(table.time_unit) == {TimeUnit.SECONDS}
    printed = run([program], more={"TRACEBIGSIM_PAPI_EVENTS": "PAPI_TOT_INS,none"})
    assert printed.table().counters.tolist() == [100] * 3
    assert printed.err == "tracebigsim: none: Event does not exist\n"
    printed = run([program], more={"TRACEBIGSIM_PAPI_EVENTS": "none"})
    assert (len(printed.table()), len(printed.table().counters)) == (3, 0)
    printed = run(
        [program], more={"TRACEBIGSIM_PAPI_EVENTS": ",".join("PAPI_" + c for c in "abcdefghi")}
    )
    assert len(printed.table().counters) == 3 * 8
    assert printed.err == "tracebigsim: PAPI_i: Too many events or attributes\n"
    printed = run([program], more={"TRACEBIGSIM_PAPI_EVENTS": "PAPI_" + "x" * 250})
    assert len(printed.table().counters) == 0, "not the one that the first 199 bytes name"
    assert "xxx: Event does not exist\n" in printed.err


def test_a_thread_that_ends_closes_its_counters(tmp_path: Path) -> None:
    """A program with a thread for each task ran out of files."""
    task = """static void *task(void *nothing) {
      startTraceBigSim();
      endTraceBigSim("k");
      return nothing;
    }"""
    body = """for (int i = 0; i < 9; i++) {
      pthread_t thread;
      pthread_create(&thread, NULL, task, NULL);
      pthread_join(thread, NULL);
    }"""
    printed = run([papi_program(tmp_path, body, task)])
    assert printed.err == ""
    assert printed.table().counters.tolist() == [100] * 9


def test_a_forked_child_counts_for_itself(tmp_path: Path) -> None:
    """Its lines had what its parent's counters counted."""
    body = """startTraceBigSim();
    if (fork() == 0) {
      endTraceBigSim("across");
      startTraceBigSim();
      endTraceBigSim("child");
      return 0;
    }
    wait(NULL);
    endTraceBigSim("parent");"""
    text = run([papi_program(tmp_path, body, "#include <sys/wait.h>")]).out.decode()
    counted = re.findall(r"event:{ (\w+) }.*?(?:PAPI:{ (\d+) })? params", text)
    assert counted == [("across", ""), ("child", "100"), ("parent", "100")]


LOOP = main(
    """for (int i = 0; i < count; i++) { startTraceBigSim(); endTraceBigSim("k", i, 0.5); }
       printf("done\\n");""",
    "enum { count = 2000 };",
)


@pytest.mark.slow
@pytest.mark.parametrize("buffer", by_tier(["", "1", "5000", "100000000", "nonsense"], ["5000"]))
def test_lines_of_processes_with_one_output_do_not_tear(buffer: str, tmp_path: Path) -> None:
    program = build(tmp_path, ("a.c", LOOP), options=["-O2"])
    for name in ("by name", "by redirection"):
        out = tmp_path / name
        more = {"TRACEBIGSIM_BUFFER_BYTES": buffer}
        if name == "by name":
            more["TRACEBIGSIM_OUTPUT"] = str(out)
        with out.open("ab") as stream:
            running = [
                subprocess.Popen([program], stdout=stream, env=environment(**more))
                for _ in range(3)
            ]
        assert [process.wait() for process in running] == [0, 0, 0]
        assert len(sound(out.read_bytes())) == 6000


def test_each_process_may_have_a_file_of_its_own(tmp_path: Path) -> None:
    program = build(tmp_path, ("a.c", LOOP))
    named = {"TRACEBIGSIM_OUTPUT": str(tmp_path / "lines.%h.%p")}
    assert [run([program], more=named).out for _ in range(2)] == [b"done\n"] * 2
    files = sorted(tmp_path.glob("lines.*"))
    assert [len(sound(path.read_bytes())) for path in files] == [2000, 2000]
    assert all(os.uname().nodename in path.name for path in files)


def test_an_output_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    program = build(tmp_path, ("a.c", LOOP))
    printed = run([program], more={"TRACEBIGSIM_OUTPUT": str(tmp_path)})
    assert len(printed.table()) == 2000
    problem = "Is a directory; lines go to standard output"
    assert printed.err == f"tracebigsim: {tmp_path}: {problem}\n"
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(
            [program], stdout=full, stderr=subprocess.PIPE, check=False, env=environment()
        )
    assert b"lines are lost: No space left on device" in ran.stderr


def test_lost_lines_are_reported_after_any_number_of_reports(tmp_path: Path) -> None:
    """Brackets that were reported before took up all reports of a process."""
    body = """for (int i = 0; i < 100; i++) endTraceBigSim("k");
              startTraceBigSim(); endTraceBigSim("lost");"""
    program = build(tmp_path, ("a.c", main(body)))
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [program], stdout=full, stderr=subprocess.PIPE, check=False, env=environment()
        )
    reports = ran.stderr.splitlines()
    assert reports[-1] == b"tracebigsim: 1 line is lost: No space left on device"
    assert len(reports) == 21


FAULTS = {
    "write": (
        "ssize_t write(int to, const void *data, size_t n)",
        "return to == 2 ? syscall(SYS_write, to, data, n) : 0;",
        "1 line is lost: Input/output error",
    ),
    "close": (
        "int close(int file)",
        "(void)file; errno = EDQUOT; return -1;",
        "lines may be lost: Disk quota exceeded",
    ),
}


@pytest.mark.parametrize("call", FAULTS)
def test_lines_that_a_network_file_system_loses_are_reported(call: str, tmp_path: Path) -> None:
    """A write of 0 bytes was tried for ever, and what a close reports was not asked for."""
    function, fault, problem = FAULTS[call]
    before = f"#include <sys/syscall.h>\n{function} {{ {fault} }}"
    body = 'startTraceBigSim(); endTraceBigSim("k");'
    program = build(tmp_path, ("a.c", main(body, before)), options=["-D_GNU_SOURCE"])
    more = {"TRACEBIGSIM_OUTPUT": str(tmp_path / "lines")}
    assert run([program], more=more).err == f"tracebigsim: {problem}\n"


def test_a_buffer_of_no_number_of_bytes_is_reported(tmp_path: Path) -> None:
    """64k was a buffer of 64 bytes, and no line fits in one."""
    program = build(tmp_path, ("a.c", LOOP))
    for text in ("64k", "-1", " 8", "9" * 19):
        printed = run([program], more={"TRACEBIGSIM_BUFFER_BYTES": text})
        problem = "TRACEBIGSIM_BUFFER_BYTES is no number of bytes: lines are not buffered"
        assert printed.err == f"tracebigsim: {text}: {problem}\n"
    for text in ("", "0", "9" * 18):
        assert run([program], more={"TRACEBIGSIM_BUFFER_BYTES": text}).err == ""


def test_buffered_lines_are_there_after_a_flush(tmp_path: Path) -> None:
    body = """startTraceBigSim(); endTraceBigSim("kept"); flushTraceBigSim();
              startTraceBigSim(); endTraceBigSim("lost"); _exit(0);"""
    program = build(tmp_path, ("a.c", main(body)))
    assert events_of(run([program]).table()) == ["kept", "lost"]
    buffered = run([program], more={"TRACEBIGSIM_BUFFER_BYTES": "1000"})
    assert events_of(buffered.table()) == ["kept"]


LATE = r"""
void kernel(int n);
struct Last { ~Last() { kernel(2); } };
static Last last;
int main() { BODY return 0; }
"""
KERNEL = """
#include "tracebigsim.h"
void kernel(int n);
void kernel(int n) { tracebigsim::Bracket bracket("k", n); }
"""


@pytest.mark.parametrize(("body", "params"), [("kernel(1);", [[1], [2]]), ("", [[2]])])
def test_lines_of_late_static_destructors_are_written(
    body: str, params: list[list[float]], tmp_path: Path
) -> None:
    """They were put into a buffer that nothing wrote any more."""
    program = build(tmp_path, ("a.cpp", LATE.replace("BODY", body)), ("b.cpp", KERNEL))
    printed = run([program], more={"TRACEBIGSIM_BUFFER_BYTES": "4096"})
    assert (params_of(printed.table()), printed.err) == (params, "")


THREADS = r"""
#include "tracebigsim.h"
#include <thread>
#include <vector>
int main() {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; number++) {
    threads.emplace_back([number] {
      for (int i = 0; i < 500; i++) { startTraceBigSim(); endTraceBigSim("k", number, i); }
    });
  }
  for (std::thread &thread : threads) thread.join();
  return 0;
}
"""


@pytest.mark.parametrize("buffer", by_tier(["", "4000"], ["4000"]))
def test_threads_have_brackets_of_their_own(buffer: str, tmp_path: Path) -> None:
    printed = run(
        [build(tmp_path, ("a.cpp", THREADS), options=["-O2"])],
        more={"TRACEBIGSIM_BUFFER_BYTES": buffer},
    )
    expected = [[float(number), float(i)] for number in range(4) for i in range(500)]
    assert sorted(params_of(printed.table())) == expected
    assert printed.err == ""


ALLOCATIONS = r"""
#include "tracebigsim.h"
void *__libc_malloc(size_t size);
static int count;
void *malloc(size_t size) { count++; return __libc_malloc(size); }
int main(void) {
  int before = 0;
  for (int i = 0; i < 1000; i++) {
    startTraceBigSimFor("k", i, 0.5);
    endTraceBigSim("k", i, 0.5, i / 3.0);
    if (i == 0) before = count;
  }
  return count != before;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("buffer", by_tier(["", "5000"], ["5000"]))
def test_nothing_is_allocated_after_the_first_bracket(buffer: str, tmp_path: Path) -> None:
    program = build(tmp_path, ("a.c", ALLOCATIONS), options=["-O2"])
    named = {"TRACEBIGSIM_BUFFER_BYTES": buffer, "TRACEBIGSIM_OUTPUT": str(tmp_path / "out")}
    run([program], more=named)
    assert len(sound((tmp_path / "out").read_bytes())) == 1000


CHOSEN = main(
    """startTraceBigSim(); endTraceBigSim("plain", 53, 11);
       startTraceBigSim(); endTraceBigSim("plain", 53, 12);
       startTraceBigSim(); endTraceBigSim("plain", 53);
       startTraceBigSimFor("named {x}", 0.1); endTraceBigSim("named {x}", 0.1);
       startTraceBigSimFor("named", 0.1); endTraceBigSim("named", 0.1);
       startTraceBigSimFor("none"); endTraceBigSim("none");"""
)
LIST = (
    "# made by hand\n\n"
    + format_chosen(3, 19, "plain", [53, 11])
    + format_chosen(3, 21, "named {x}", [0.1])
    + format_chosen(0, 1, "none", []).replace("\n", "\r\n")
)


def test_only_chosen_brackets_print_lines(tmp_path: Path) -> None:
    program = build(tmp_path, ("a.c", CHOSEN))
    chosen = tmp_path / "chosen"
    chosen.write_bytes(LIST.encode())
    more = {"TRACEBIGSIM_CHOSEN": str(chosen)}
    printed = run([program], more=more)
    assert (events_of(printed.table()), printed.err) == (["plain", "named {x}", "none"], "")
    wrong = ["3 x TRACEBIGSIM: event:{ named }"]
    wrong += [
        f"1 2 TRACEBIGSIM: event:{{ named }} seqno: {{ 2 }} params:{{ {params} }}"
        for params in ("nan", "1e999", "0x1", "0.1,", "0.1.1", "1-1", "1 " * 21, "1 } more: {")
    ]
    chosen.write_text("\n".join([*wrong, LIST]))
    printed = run([program], more=more)
    assert events_of(printed.table()) == ["plain", "named {x}", "none"]
    for number, line in enumerate(wrong, start=1):
        assert f"{chosen}: line {number} is no chosen SEB, and left out: {line}" in printed.err


def test_a_list_that_is_not_there_chooses_nothing(tmp_path: Path) -> None:
    printed = run([build(tmp_path, ("a.c", CHOSEN))], more={"TRACEBIGSIM_CHOSEN": "/nowhere"})
    assert len(printed.table()) == 0
    assert "/nowhere: the list of chosen SEBs cannot be read" in printed.err


@pytest.mark.slow
def test_a_long_list_is_read_whole(tmp_path: Path) -> None:
    count = 3000
    numbers = random.Random(1).sample(range(100000), count)  # noqa: S311
    (tmp_path / "chosen").write_text(
        "".join(format_chosen(i, i, "k", [number, number / 7]) for i, number in enumerate(numbers))
    )
    body = """for (int i = 0; i < 100000; i++) {
                startTraceBigSimFor("k", i, i / 7.0); endTraceBigSim("k", i, i / 7.0);
              }"""
    program = build(tmp_path, ("a.c", main(body)), options=["-O2"])
    printed = run([program], more={"TRACEBIGSIM_CHOSEN": str(tmp_path / "chosen")})
    assert params_of(printed.table()) == [[number, number / 7] for number in sorted(numbers)]


def test_programs_with_the_old_sources_initproc_link(tmp_path: Path) -> None:
    """A .ci file's `initproc void initBigSimTrace();` makes such a call from another source."""
    other = "void initBigSimTrace();\nint main() { initBigSimTrace(); return 0; }\n"
    for options in ([], ["-DTRACEBIGSIM_OFF"]):
        build(tmp_path, ("a.cpp", CALLS), ("main.cpp", other), options=options)
