"""Chakra traces as other programs read and make them: those of MLCommons, where they are there."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chakrabuilder import unpacked

import rewritelog
from rewritelog.formats.traces import Traces

TOOLS = ("chakra_generator", "chakra_jsonizer", "chakra_converter")
"""The programs of the package mlc-chakra, which takes half a GB: found on PATH, or skipped."""


def opened(path: Path) -> Traces:
    traces = rewritelog.open_traces(path)
    assert isinstance(traces, Traces)
    return traces


@pytest.fixture
def tools() -> None:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"mlc-chakra is not installed: no {', '.join(missing)}")


def as_json(path: Path) -> list[dict[str, Any]]:
    """The messages of a file, as Chakra's own reader has them."""
    out = path.with_suffix(".json")
    words: list[str | Path] = [
        "chakra_jsonizer",
        "--input_filename",
        path,
        "--output_filename",
        out,
    ]
    subprocess.run(words, check=True, capture_output=True)
    decoder, text, messages = json.JSONDecoder(), out.read_text(), []
    while text:
        message, end = decoder.raw_decode(text)
        messages.append(message)
        text = text[end:].lstrip()
    return messages


def test_the_real_trace_reads_as_its_json_form_says(tmp_path: Path) -> None:
    traces = opened(unpacked("feeder_tests_trace.tar.gz", tmp_path) / "tests/data")
    document = unpacked("json_trace.tar.gz", tmp_path) / "jsonData/chakra.0.json"
    nodes = json.loads(document.read_text())["workload_graph"]
    (part,) = traces.read(traces.files[0])
    counts, ids = part["waits"], part["waited_for"]
    deps = np.split(ids, np.cumsum(counts)[:-1])
    renamed = [text.replace("id", "Id").replace("name", "Name") for text in part["name"]]
    assert part["id"].tolist() == [node["Id"] for node in nodes]
    assert renamed == [node["Name"] for node in nodes]
    assert part["type"].tolist() == [node["NodeType"] for node in nodes]
    assert part["on_host"].tolist() == [node["is_cpu_op"] for node in nodes]
    of_data = part["data_waits"].tolist()
    for own, count, node in zip(deps, of_data, nodes, strict=True):
        assert sorted(own[:count].tolist()) == sorted(node.get("data_deps", []))
    assert (1e6 * part["duration_s"]).round().tolist() == [node.get("runtime", 0) for node in nodes]


@pytest.mark.slow
@pytest.mark.usefixtures("tools")
def test_generated_traces_change_in_their_durations_alone(tmp_path: Path) -> None:
    generated = tmp_path / "made"
    generated.mkdir()
    subprocess.run(
        ["chakra_generator", "--num_npus", "2", "--default_runtime", "5"],
        cwd=generated,
        check=True,
        capture_output=True,
    )
    names = sorted({path.name.partition(".")[0] for path in generated.glob("*.et")})
    assert len(names) >= 14
    for name in names:
        for factor in (1, 2):
            rewritelog.rewrite(
                opened(generated / name), tmp_path / f"{name}-{factor}", dilation=factor
            )
        for path in generated.glob(f"{name}.*.et"):
            same, doubled = (tmp_path / f"{name}-{factor}" / path.name for factor in (1, 2))
            assert same.read_bytes() == path.read_bytes()
            before, after = as_json(path), as_json(doubled)
            for node in before:
                if node.get("type") == "COMP_NODE" and "durationMicros" in node:
                    node["durationMicros"] = str(2 * int(node["durationMicros"]))
            assert after == before


@pytest.mark.slow
@pytest.mark.usefixtures("tools")
def test_what_the_converter_makes_of_pytorch_keeps_its_bytes(tmp_path: Path) -> None:
    host = unpacked("1.0.2-chakra.0.0.4.tgz", tmp_path) / "1.0.2-chakra.0.0.4.json"
    converted = tmp_path / "made"
    converted.mkdir()
    files: list[str | Path] = ["--input", host, "--output", converted / "host.0.et"]
    subprocess.run(["chakra_converter", "PyTorch", *files], check=True, capture_output=True)
    nodes = len(as_json(converted / "host.0.et")) - 1
    assert rewritelog.info(converted).to_json()["nodes"] == nodes > 200
    rewritelog.rewrite(converted, tmp_path / "out", dilation=1)
    assert (tmp_path / "out/host.0.et").read_bytes() == (converted / "host.0.et").read_bytes()
