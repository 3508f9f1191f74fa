"""Compiles the C cores of tracebigsim and rewritelog, each to one shared library.

Hatchling runs this when it builds the package. `python tracebigsim/core/build.py` compiles them
again in a checkout, beside their headers. The environment variables `CC`, `CPPFLAGS`, `CFLAGS` and
`LDFLAGS` name the compiler and flags. The libraries do not use Python, so one wheel of a platform
serves all Pythons.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin import interface
except ImportError:  # run as a program
    _Hook: Any = object
else:
    _Hook = interface.BuildHookInterface

ROOT = Path(__file__).resolve().parents[2]
CORES = ("tracebigsim/core", "rewritelog/core")
LIBRARY = "libcore.so"

_FLAGS = (
    "-std=c11 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fPIC -shared "
    "-fvisibility=hidden -Wall -Wextra"
)
"""No flag reorders or contracts floating-point operations, so that results have the same bits.

Warnings are errors only in the project's tests, since newer compilers warn of more."""

_ZIG = "-m ziglang cc -mcpu=baseline"
"""Zig brings a C compiler; by default it would compile for the very processor it runs on."""


def compiler() -> list[str] | None:
    """Return the command of the C compiler: `CC`, `cc`, `gcc`, `clang` or zig; None without one."""
    if named := os.environ.get("CC"):
        return shlex.split(named)
    for name in ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return [path]
    return [sys.executable, *_ZIG.split()] if importlib.util.find_spec("ziglang") else None


def compile_core(folder: Path, library: Path, flags: Sequence[str] = ()) -> None:
    """Compile the C files of a folder to a library; raise `SystemExit` if that fails."""
    command = compiler()
    if command is None:
        raise SystemExit("no C compiler: install gcc or clang, or pip install ziglang")
    draft = library.with_suffix(f".{os.getpid()}")
    sources = sorted(path.name for path in folder.glob("*.c"))
    before, compiling, linking = (
        shlex.split(os.environ.get(name, "")) for name in ("CPPFLAGS", "CFLAGS", "LDFLAGS")
    )
    header = f"-DHEADER_CRC32={zlib.crc32((folder / 'core.h').read_bytes())}"
    called = [*command, *_FLAGS.split(), *before, *compiling, *flags, header]
    called += ["-o", str(draft), *sources, *linking, "-lm"]
    try:
        done = subprocess.run(called, cwd=folder, check=False)  # noqa: S603
    except OSError as error:
        raise SystemExit(f"the C compiler cannot be run: {error}: set CC to another one") from None
    if done.returncode != 0:
        raise SystemExit(f"{folder}: the compiled core could not be built: {shlex.join(called)}")
    draft.replace(library)


class CoreBuildHook(_Hook):  # type: ignore[misc]
    """Adds the libraries to wheels and to editable installs."""

    def dependencies(self) -> list[str]:
        """Return what the build needs from PyPI: a C compiler where the machine has none."""
        return [] if compiler() else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the cores, and tag the wheel for this platform and every Python 3.

        They are compiled beside their headers, where programs in a checkout find them, but wheels
        of read-only sources, or for another machine, leave the sources as they are.
        """
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        built = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, built)
        for core in CORES:
            folder, library = Path(self.root) / core, built / core.replace("/", "-")
            is_own = os.access(folder, os.W_OK) and "_PYTHON_HOST_PLATFORM" not in os.environ
            if version == "editable" or is_own:
                library = folder / LIBRARY
            compile_core(folder, library)
            if version != "editable":
                build_data["force_include"][str(library)] = f"{core}/{LIBRARY}"


if __name__ == "__main__":
    for _core in CORES:
        _library = ROOT / _core / LIBRARY
        compile_core(ROOT / _core, _library, sys.argv[1:])
        sys.stdout.write(f"{_library}\n")
