"""Traces for SimGrid: what they say, and what `smpirun -replay` makes of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chosen import by_tier
from faulty import HANGS_S
from logbuilder import message, seb, write_logs
from replays import replay

import rewritelog
from rewritelog import open_logs
from rewritelog.commands.durations import RewriteOptions
from rewritelog.commands.runs import ReplayOptions
from rewritelog.errors import RewriteLogError
from rewritelog.replaying.network import Network
from rewritelog.rewriting.run import rewrite

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    {hosts}
    {links}
    {routes}
  </zone>
</platform>
"""
EAGER = str(2**31 - 1)


def trace(out: Path, pe: int) -> list[list[str]]:
    lines = [line.split() for line in (out / f"rank-{pe}.txt").read_text().splitlines()]
    assert {line[0] for line in lines} == {str(pe)}
    return [line[1:] for line in lines]


def test_every_rank_computes_sends_and_receives_what_its_pe_did(
    log_set: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    rewritelog.export(log_set, out, "simgrid")
    logs = open_logs(log_set)
    assert (out / "traces.txt").read_text().split() == [f"rank-{pe}.txt" for pe in logs.pes]
    sent: Counter[tuple[str, ...]] = Counter()
    received: Counter[tuple[str, ...]] = Counter()
    for pe in logs.pes:
        lines = trace(out, pe)
        assert (lines[0], lines[-1]) == (["init"], ["finalize"])
        sebs = logs.sebs([pe])
        closed = sebs["end_time"] >= sebs["start_time"]
        computed = sum(float(line[1]) for line in lines if line[0] == "compute")
        assert computed == pytest.approx(sebs["exec_time"][closed].sum() * 1e9, rel=1e-9)
        sent.update((str(pe), *line[1:]) for line in lines if line[0] == "isend")
        received.update((line[1], str(pe), *line[2:]) for line in lines if line[0] == "recv")
    assert sent == received


def test_a_time_past_what_simgrid_holds_names_its_seb(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", [[seb(0, 1)], [seb(0, 1), seb(1, 1e300)]])
    with pytest.raises(
        RewriteLogError, match=r"PE 1, SEB 1: 1e\+300 s cannot be exported: SimGrid"
    ):
        rewritelog.export(logs, tmp_path / "out", "simgrid")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["cells", "cells-2workers", "ampi-halo"])
def test_in_replayed_order_a_pe_does_the_same_in_the_order_of_the_replay(
    name: str, sample_logs: Path, tmp_path: Path
) -> None:
    network = Network(latency=1e-6, bandwidth=1e9)
    rewritelog.export(sample_logs / name, tmp_path / "recorded", "simgrid")
    rewritelog.export(
        sample_logs / name, tmp_path / "out", "simgrid", replayed=True, network=network
    )
    changed = 0
    for pe in open_logs(sample_logs / name).pes:
        replayed, recorded = (trace(tmp_path / folder, pe) for folder in ("out", "recorded"))
        assert sorted(replayed) == sorted(recorded)
        changed += replayed != recorded
    assert changed


@pytest.mark.parametrize("name", ["cells", "cells-2workers", "ampi-halo"])
def test_in_replayed_order_simgrid_takes_as_long_as_the_replay(
    name: str, sample_logs: Path, tmp_path: Path
) -> None:
    network = Network(latency=1e-6, bandwidth=1e9, node_latency=1e-6)
    rewritelog.export(
        sample_logs / name, tmp_path / "out", "simgrid", replayed=True, network=network
    )
    replayed = replay(sample_logs / name, network, ReplayOptions(gains=0)).predicted_s
    simulated_s = simulate(tmp_path / "out", len(open_logs(sample_logs / name).pes), 1e-6, 1e9)
    assert simulated_s == pytest.approx(replayed, rel=0.01)


def simulate(out: Path, pes: int, latency_s: float, bandwidth: float) -> float:
    """Run exported traces on hosts of which each two have a link of their own."""
    smpirun = shutil.which("smpirun")
    if smpirun is None:
        pytest.skip("smpirun of SimGrid is not installed")
    names = [f"node-{k}" for k in range(pes)]
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k:]]
    link = f'bandwidth="{bandwidth}Bps" latency="{latency_s}s"'
    text = PLATFORM.format(
        hosts="".join(f'<host id="{name}" speed="1Gf" core="2"/>' for name in names),
        links="".join(f'<link id="{a}_{b}" {link} sharing_policy="FATPIPE"/>' for a, b in pairs),
        routes="".join(
            f'<route src="{a}" dst="{b}"><link_ctn id="{a}_{b}"/></route>' for a, b in pairs
        ),
    )
    (out / "platform.xml").write_text(text)
    options = {
        "network/model": "CM02",
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
        "smpi/async-small-thresh": EAGER,
        "smpi/send-is-detached-thresh": EAGER,
    }
    done = subprocess.run(
        [smpirun, "-np", str(pes), "-platform", "platform.xml", "-hostfile", "hostfile.txt",
         *(f"--cfg={name}:{value}" for name, value in options.items()), "-replay", "traces.txt"],
        cwd=out, capture_output=True, text=True, check=False, timeout=HANGS_S,
    )  # fmt: skip
    match = re.search(r"Simulation time ([\d.]+)", done.stdout + done.stderr)
    assert match is not None, done.stderr[-2000:]
    return float(match[1])


def ping_pong(folder: Path) -> Path:
    """Two PEs that send each other a megabyte after 1 s of each SEB's 2 s."""
    lines: list[list[dict[str, Any]]] = [[], []]
    for step in range(6):
        cause = {"src_pe": 1 - step % 2, "msg_id": step - 1} if step else {}
        sent = message(10.0 * step + 1, msg_id=step, dst_node=1 - step % 2, size=10**6)
        lines[step % 2].append(seb(10.0 * step, 10.0 * step + 2, messages=[sent], **cause))
    return write_logs(folder, lines)


def test_simgrid_and_replay_agree_with_paper_on_a_ping_pong(tmp_path: Path) -> None:
    logs = ping_pong(tmp_path / "logs")
    rewritelog.export(logs, tmp_path / "out", "simgrid")
    network = Network(latency=0.25, bandwidth=1e6)
    on_paper = 5 * (1 + 0.25 + 1) + 2
    assert replay(logs, network).predicted_s == on_paper
    assert simulate(tmp_path / "out", 2, 0.25, 1e6) == pytest.approx(on_paper, rel=1e-5)


def test_a_dilated_ping_pong_takes_longer_by_its_computation_alone(tmp_path: Path) -> None:
    logs = ping_pong(tmp_path / "logs")
    rewrite(logs, tmp_path / "slow", RewriteOptions(dilation=3))
    rewritelog.export(tmp_path / "slow", tmp_path / "out", "simgrid")
    simulated_s = simulate(tmp_path / "out", 2, 0.25, 1e6)
    assert simulated_s == pytest.approx(5 * (3 + 0.25 + 1) + 6, rel=1e-5)


@pytest.mark.parametrize("name", by_tier(["ampi-halo", "cells"], ["cells"], ["ampi-halo"]))
@pytest.mark.parametrize("dilation", [1.0, 1000.0])
def test_samples_run_no_shorter_than_their_busiest_pe(
    name: str, dilation: float, sample_logs: Path, tmp_path: Path
) -> None:
    """SimGrid keeps the recorded order, which replay need not: that may only cost time."""
    logs = sample_logs / name
    if dilation != 1.0:
        rewrite(logs, tmp_path / "slow", RewriteOptions(dilation=dilation))
        logs = tmp_path / "slow"
    rewritelog.export(logs, tmp_path / "out", "simgrid")
    opened = open_logs(logs)
    busiest = max(float(opened.sebs([pe])["exec_time"].clip(0).sum()) for pe in opened.pes)
    simulated_s = simulate(tmp_path / "out", len(opened.pes), 1e-6, 1e9)
    assert simulated_s >= busiest * (1 - 1e-3)
    network = Network(latency=1e-6, bandwidth=1e9)
    replayed = replay(logs, network, ReplayOptions(gains=0)).predicted_s
    assert replayed * 0.9 <= simulated_s <= replayed * 3
    assert np.isfinite(simulated_s)
