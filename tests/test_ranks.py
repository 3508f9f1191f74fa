"""Commands with the engine `mpi`: ranks report and write what threads do."""

import json
import shutil
import subprocess
import sysconfig
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import pytest
from faulty import HANGS_S
from logbuilder import message, seb, write_logs

SCRIPTS = Path(sysconfig.get_path("scripts"))
MPIEXEC = shutil.which("mpiexec", path=str(SCRIPTS)) or shutil.which("mpiexec")

pytestmark = [
    pytest.mark.long,  # ranks wait for each other at full speed
    pytest.mark.skipif(
        find_spec("mpi4py") is None or MPIEXEC is None, reason="mpi4py or mpiexec is not installed"
    ),
]


LOGS = [
    [
        seb(0, 1, messages=[message(0.5, msg_id=k) for k in range(20)]),
        *(seb(k, k + 1, src_pe=(pe + 1) % 6, msg_id=k) for k in range(1, 20)),
    ]
    for pe in range(6)
]
"""Each SEB is started by a message from another file, which another rank may have read."""


def run(*words: object) -> str:
    """Return what a command prints."""
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, timeout=HANGS_S
    )
    return done.stdout


@pytest.mark.parametrize("command", ["check", "info"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_report_what_threads_do(ranks: int, command: str, tmp_path: Path) -> None:
    timelines = deepcopy(LOGS)
    timelines[2][7] |= {"msg_id": 99}
    logs = write_logs(tmp_path / "in", timelines, files=3)
    words = [SCRIPTS / "rewritelog", command, logs, "--json"]
    threads, mpi = (
        json.loads(run(*call))
        for call in (words, [MPIEXEC, "-n", ranks, *words, "--engine", "mpi"])
    )
    assert mpi == threads
    if command == "check":
        assert [(finding["rule"], finding["count"]) for finding in mpi["findings"]] == [
            ("not-sent", 1)
        ]


WRITING = {
    "timeline": ["--output", "{}/picture.svg", "--messages"],
    "convert": ["{}/logs", "--log-version", "3", "--byte-order", "big"],
    "replay": ["--write", "{}/logs", "--dilation", "2"],
    **{f"export {to}": ["{}/out", "--to", to] for to in ("chrome", "csv", "goal", "simgrid")},
}
"""Commands that write files, and their words after the logs; `{}` is a folder."""


@pytest.mark.parametrize("command", WRITING)
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_write_what_threads_do(ranks: int, command: str, tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "in", LOGS, files=3)
    written = []
    for name, first in (("threads", []), ("mpi", [MPIEXEC, "-n", ranks])):
        out = tmp_path / name
        out.mkdir()
        words = [logs, *(word.format(out) for word in WRITING[command])]
        run(*first, SCRIPTS / "rewritelog", command.split(maxsplit=1)[0], *words, "--engine", name)
        files = sorted(path for path in out.rglob("*") if path.is_file())
        written.append([(path.relative_to(out), path.read_bytes()) for path in files])
    assert written[0] == written[1] != []
