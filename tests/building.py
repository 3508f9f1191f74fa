"""Programs compiled and run, for the tests of what they print."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import tracebigsim
from tracebigsim.lines import LineTable, scan

REPOSITORY = Path(__file__).resolve().parents[1]
PROGRAMS = REPOSITORY / "sample_logs" / "programs"
EMULATOR = Path(__file__).resolve().parent / "instrumentation" / "emulator"

WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-DTRACEBIGSIM_WARNINGS"]
LANGUAGES = {
    ".c": ("gcc", ["-std=c99"]),
    ".cpp": ("g++", ["-std=c++11"]),
    ".f90": ("gfortran", ["-std=f2008"]),
}


PAPI = """
#define PAPI_VER_CURRENT 7
#define PAPI_OK 0
#define PAPI_NULL (-1)
#define PAPI_NOT_INITED 0
#define PAPI_ENOEVNT (-7)
#define PAPI_ECOUNT (-23)
#ifdef __cplusplus
extern "C" {
#endif
int PAPI_is_initialized(void);
int PAPI_library_init(int version);
int PAPI_thread_init(unsigned long (*number)(void));
int PAPI_create_eventset(int *set);
int PAPI_add_named_event(int set, const char *name);
int PAPI_start(int set);
int PAPI_stop(int set, long long *values);
int PAPI_read(int set, long long *values);
int PAPI_cleanup_eventset(int set);
int PAPI_destroy_eventset(int *set);
int PAPI_unregister_thread(void);
char *PAPI_strerror(int status);
#ifdef __cplusplus
}
#endif
"""
"""What a program of PAPI calls, declared."""
PAPI_STUB = """
#include "papi.h"
#include <string.h>
#include <unistd.h>
static int process, counters, sets;
static long long ticks;
int PAPI_is_initialized(void) { return process != 0; }
int PAPI_library_init(int version) {
  if (process != getpid()) counters = 0;
  process = getpid();
  return version;
}
int PAPI_thread_init(unsigned long (*number)(void)) { return number() == 0; }
int PAPI_create_eventset(int *set) { *set = 5; return ++sets > 4 ? PAPI_ECOUNT : PAPI_OK; }
int PAPI_add_named_event(int set, const char *name) {
  if (set != 5 || strncmp(name, "PAPI_", 5) != 0) return PAPI_ENOEVNT;
  counters++;
  return PAPI_OK;
}
int PAPI_start(int set) { return set == 5 ? PAPI_OK : -1; }
int PAPI_stop(int set, long long *values) { return PAPI_read(set, values); }
int PAPI_cleanup_eventset(int set) { counters = 0; return set == 5 ? PAPI_OK : -1; }
int PAPI_destroy_eventset(int *set) { *set = PAPI_NULL; sets--; return PAPI_OK; }
int PAPI_unregister_thread(void) { return PAPI_OK; }
int PAPI_read(int set, long long *values) {
  for (int i = 0; i < counters; i++) values[i] = (i + 1) * ticks;
  ticks += 100;
  return set == 5 && process == getpid() ? PAPI_OK : -1; /* a child has no counters of its own */
}
char *PAPI_strerror(int status) {
  return (char *)(status == PAPI_ECOUNT ? "Too many events or attributes" : "Event does not exist");
}
"""
"""A library with counters that tick by 100, 200, ... each time they are read."""


def environment(**more: str) -> dict[str, str]:
    """An environment in which a subprocess finds the same package, and no setting of ours."""
    kept = {name: value for name, value in os.environ.items() if "TRACEBIGSIM" not in name}
    return {**kept, "PYTHONPATH": str(Path(tracebigsim.__file__).resolve().parents[1]), **more}


def forks(program: str) -> None:
    """Run a program and fork it at its end; the process and its child then do its `work()`.

    A child that waits for a lock of a thread that is not in it is ended after ten minutes.
    """
    ending = """
child = os.fork()
signal.alarm(600)
work()
if child:
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""
    words = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        f"import os, signal, threading, time\n{program}{ending}",
    ]
    subprocess.run(words, check=True, timeout=600, env=environment())


@dataclass(frozen=True)
class Printed:
    """What a program printed, which ended well."""

    out: bytes
    err: str

    def table(self) -> LineTable:
        """The records on standard output, all of them sound."""
        return sound(self.out)


def sound(text: bytes) -> LineTable:
    """The records of a text that holds no fault."""
    table = scan(text)
    assert table.faults == ()
    return table


def params_of(table: LineTable) -> list[list[float]]:
    """The parameters of each record."""
    bounds = table.param_start
    return [table.params[bounds[i] : bounds[i + 1]].tolist() for i in range(len(table))]


def events_of(table: LineTable) -> list[str]:
    """The event of each record."""
    return [table.events[event] for event in table.event]


def run(
    command: Sequence[str | Path], cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> Printed:
    """Run a program that ends well."""
    ran = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        check=False,
        cwd=cwd,
        env=environment(**(more or {})),
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return Printed(ran.stdout, ran.stderr.decode())


def tracebigsim_command(*words: str | Path) -> list[str | Path]:
    """The command line of `tracebigsim`."""
    return [sys.executable, "-m", "tracebigsim", *words]


def tool(name: str) -> str:
    """Where a compiler or the like is; without it the test is skipped."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def compiled(source: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Compile a source into an object beside its name in a folder, with all warnings as errors."""
    program, standard = LANGUAGES[source.suffix]
    if not any(option.startswith("-std=") for option in options):
        options = (*standard, *options)
    command = [tool(program), *WARNINGS, "-pthread", "-I", tracebigsim.include_dir()]
    target = folder / f"{source.stem}_{source.suffix[1:]}.o"
    return subprocess.run(
        [*command, *options, "-c", str(source), "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def written(folder: Path, name: str, text: str) -> Path:
    """Write a source."""
    (folder / name).write_text(text)
    return folder / name


def build(folder: Path, *sources: tuple[str, str] | Path, options: Sequence[str] = ()) -> Path:
    """Make a program in a folder of sources: texts by their file names, or paths."""
    objects = []
    suffixes = set()
    for source in sources:
        path = source if isinstance(source, Path) else written(folder, *source)
        built = compiled(path, folder, *options)
        assert built.returncode == 0, built.stderr
        objects.append(str(folder / f"{path.stem}_{path.suffix[1:]}.o"))
        suffixes.add(path.suffix[1:])
    linker = tool("g++" if "cpp" in suffixes else "gfortran" if "f90" in suffixes else "gcc")
    libraries = ["-lgfortran"] if {"cpp", "f90"} <= suffixes else []
    program = folder / "program"
    linked = [linker, "-pthread", *objects, "-lm", *libraries, "-o", str(program)]
    subprocess.run(linked, check=True, capture_output=True)
    return program
