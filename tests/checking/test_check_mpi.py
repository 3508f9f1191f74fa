"""`check` and `info` with the engine `mpi`: ranks report what threads do."""

import json
import shutil
import subprocess
import sysconfig
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


@pytest.mark.parametrize("command", ["check", "info"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_report_what_threads_do(ranks: int, command: str, tmp_path: Path) -> None:
    """Each SEB is started by a message from another file, which another rank may have read."""
    timelines = [
        [
            seb(0, 1, messages=[message(0.5, msg_id=k) for k in range(20)]),
            *(seb(k, k + 1, src_pe=(pe + 1) % 6, msg_id=k) for k in range(1, 20)),
        ]
        for pe in range(6)
    ]
    timelines[2][7] |= {"msg_id": 99}
    logs = write_logs(tmp_path / "in", timelines, files=3)
    words = [SCRIPTS / "rewritelog", command, logs, "--json"]
    ranked = [MPIEXEC, "-n", ranks, *words, "--engine", "mpi"]
    reports = [
        subprocess.run(
            list(map(str, one)), capture_output=True, text=True, check=False, timeout=HANGS_S
        )
        for one in (words, ranked)
    ]
    threads, mpi = (json.loads(one.stdout) for one in reports)
    assert mpi == threads
    if command == "check":
        assert [(one["rule"], one["count"]) for one in mpi["findings"]] == [("not-sent", 1)]
