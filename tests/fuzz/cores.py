"""Fuzzing of the compiled cores under sanitizers: `python -m fuzz --core --seconds 60`.

A target is a C file in `core/`, which is all that a new one takes: its name is that of the file.
clang's fuzzer makes the inputs; with another compiler the seeds and the inputs that are kept, in
`corpus/core-TARGET/`, are replayed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import get_args

from chakrabuilder import trace

from fuzz.corpus import kept
from fuzz.lines import LINES
from fuzz.mutation import WORDS
from fuzz.seeds import NODES, make_logs
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS, ByteOrder, layout

FOLDER = Path(__file__).parent / "core"
ROOT = Path(__file__).parents[2]
TARGETS = tuple(sorted(path.stem for path in FOLDER.glob("*.c") if path.stem != "replay"))

_LAYOUTS = [(version, order) for version in LOG_VERSIONS for order in get_args(ByteOrder)]
_FLAGS = ("-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all")
_LONGEST_BYTES = 4096
_SECONDS_AN_INPUT = 20


def compiler() -> tuple[list[str], bool] | None:
    """Return the command of a C compiler, and whether it has a fuzzer; None without a compiler."""
    for name, fuzzes in (("clang", True), ("gcc", False), ("clang", False)):
        sanitizers = f"-fsanitize={'fuzzer,' if fuzzes else ''}address,undefined"
        command = [name, *_FLAGS, sanitizers]
        if shutil.which(name) and _links(command, "LLVMFuzzerTestOneInput" if fuzzes else "main"):
            return command, fuzzes
    return None


def _links(command: list[str], function: str) -> bool:
    """Return whether a command makes a program of one function."""
    text = f"int {function}(void) {{ return 0; }}"
    with tempfile.TemporaryDirectory() as work:
        called = [*command, "-x", "c", "-", "-o", f"{work}/program"]
        done = subprocess.run(called, input=text, text=True, capture_output=True, check=False)
    return done.returncode == 0


def build(target: str, work: Path, command: list[str], *, fuzzes: bool) -> Path:
    """Compile a target with both cores into a folder; return the program."""
    (work / "layouts.h").write_text(_layouts_header(), encoding="utf-8")
    cores = [
        path for core in ("rewritelog", "tracebigsim") for path in ROOT.glob(f"{core}/core/*.c")
    ]
    own = [FOLDER / f"{target}.c", *([] if fuzzes else [FOLDER / "replay.c"])]
    program = work / target
    places = [f"-I{folder}" for folder in (ROOT, FOLDER, work)]
    subprocess.run(
        [*command, *places, *map(str, [*own, *sorted(cores)]), "-lm", "-o", str(program)],
        check=True,
    )
    return program


def _layouts_header() -> str:
    """Return C text with the layout of each log version and byte order."""
    rows = [", ".join(map(str, layout(*each).core.item())) for each in _LAYOUTS]
    structs = ",\n".join(f"    {{{row}}}" for row in rows)
    return (
        '#include "rewritelog/core/core.h"\n'
        f"enum {{ LAYOUT_COUNT = {len(rows)} }};\n"
        f"static const layout LAYOUTS[] = {{\n{structs}\n}};\n"
    )


def seeds(target: str) -> list[bytes]:
    """Return good inputs: texts, or blocks as `core/block.h` describes them."""
    if target == "scan":
        return LINES
    if target == "nodes":
        return [trace([], node) for node in NODES] + [trace(NODES[1:], NODES[0])]
    with tempfile.TemporaryDirectory() as work:
        pairs = [_block_seeds(Path(work) / str(number), number) for number in range(len(_LAYOUTS))]
    return [seed for pair in pairs for seed in pair]


def _block_seeds(folder: Path, number: int) -> tuple[bytes, bytes]:
    """Return the timelines of a file, and a timeline with the last SEB only."""
    version, order = _LAYOUTS[number]
    logs = make_logs(folder, version, order, seed=number)
    file = logs.files[0]
    data = file.path.read_bytes()
    borders = [int(border) - file.head_bytes for border in file.borders]
    head = bytes([number, len(borders) - 2])
    for border in borders[1:3]:
        head += border.to_bytes(2, "little")
    alone = bytes([number, 0, 0, 0, 0, 0]) + (1).to_bytes(4, order)
    return head + data[file.head_bytes :], alone + data[int(logs.sebs()["offset"][-1]) :]


def fuzz_cores(names: Iterable[str], seconds: float, seed: int, corpus: Path, jobs: int) -> bool:
    """Fuzz targets for a time in all; return whether all held.

    Replay their seeds and what is kept of them in 0 seconds, or without a fuzzer.
    """
    cc = compiler()
    if cc is None:
        sys.exit("neither clang nor gcc with their sanitizers is there")
    names = list(names)
    jobs = min(jobs, len(names))
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(jobs) as pool:

        def run(name: str) -> bool:
            folder = Path(work) / name
            folder.mkdir()
            program = build(name, folder, cc[0], fuzzes=cc[1])
            inputs = _written(seeds(name), folder)
            if not cc[1] or seconds == 0:
                return _replay(name, program, [*inputs, *kept(f"core-{name}", corpus)])
            return _fuzz(name, program, seconds * jobs / len(names), seed, corpus)

        return all(list(pool.map(run, names)))


def _written(data: list[bytes], folder: Path) -> list[Path]:
    """Write inputs, and the words that the fuzzer puts into them, to files."""
    (folder / "seeds").mkdir()
    paths = [folder / "seeds" / str(number) for number in range(len(data))]
    for path, seed in zip(paths, data, strict=True):
        path.write_bytes(seed)
    words = set(WORDS) - {b""}
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in sorted(words))
    (folder / "words").write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")
    return paths


def _fuzz(name: str, program: Path, seconds: float, seed: int, corpus: Path) -> bool:
    kept_here, new = corpus / f"core-{name}", program.parent / "new"
    for folder in (kept_here, new):
        folder.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": max(1, round(seconds)),
        "seed": seed % 2**32,
        "max_len": _LONGEST_BYTES,
        "timeout": _SECONDS_AN_INPUT,
        "use_value_profile": 1,
        "artifact_prefix": f"{kept_here}/found-",
        "dict": program.parent / "words",
    }
    written = [f"-{option}={value}" for option, value in options.items()]
    folders = [new, program.parent / "seeds", kept_here]
    done = subprocess.run(
        [program, *written, *folders], capture_output=True, text=True, check=False
    )
    if not any(kept_here.iterdir()):
        kept_here.rmdir()
    return _report(name, done, done.stderr.splitlines()[-1:])


def _replay(name: str, program: Path, inputs: list[Path]) -> bool:
    done = subprocess.run([program, *inputs], capture_output=True, text=True, check=False)
    return _report(name, done, [f"{len(inputs)} inputs replayed"])


def _report(name: str, done: subprocess.CompletedProcess[str], outcome: list[str]) -> bool:
    if done.returncode != 0:
        print(done.stderr, flush=True)
        outcome = [f"ended with {done.returncode}"]
    print(f"core {name}: {' '.join(outcome)}", flush=True)
    return done.returncode == 0
