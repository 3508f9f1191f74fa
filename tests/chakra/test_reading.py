"""Chakra traces read and written: bytes, columns, damage."""

import gzip
import subprocess
import zlib
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from building import REPOSITORY, tool
from chakrabuilder import (
    COLL,
    COMP,
    METADATA,
    field,
    group,
    groups,
    node,
    trace,
    unpacked,
    varint,
    write_traces,
)

import rewritelog
from rewritelog.errors import DamagedLogError, RewriteLogError
from rewritelog.formats import chakra as reader
from rewritelog.formats.chakra import ChakraTraces, NodePart, open_chakra
from rewritelog.formats.traces import Unit, UnitWriter

VALUES: dict[str, object] = {
    "double": -0.1, "float": 0.5, "int32": -3, "int64": -(2**40), "uint32": 7, "uint64": 2**53,
    "sint32": 3, "sint64": 5, "fixed32": 8, "fixed64": 2**40, "sfixed32": -9, "sfixed64": -(2**41),
    "bool": True,
}  # fmt: skip


def opened(path: Path) -> ChakraTraces:
    traces = open_chakra(path)
    assert traces is not None
    return traces


def parts_of(path: Path) -> list[NodePart]:
    traces = opened(path)
    return list(traces.read(traces.files[0]))


def written(traces: ChakraTraces, unit: Unit, factor: float = 1.0) -> bytes:
    """The bytes of a unit, with all durations multiplied by a factor."""
    writer = UnitWriter()
    datas = (
        writer.written(part, part["duration_s"] * factor, np.full(len(part), factor != 1))[0]
        for part in traces.read(unit)
    )
    return b"".join(data.tobytes() for data in datas)


def every_attribute() -> dict[str, tuple[str, object]]:
    single = {f"one_{kind}": (kind, value) for kind, value in VALUES.items()}
    several = {f"all_{kind}": (f"{kind} list", [v, v]) for kind, v in VALUES.items()}
    texts = {"pg_name": ("string", "a"), "b": ("bytes", b"\xff"), "l": ("string list", ["x", "y"])}
    return {**single, **several, **texts}


@pytest.mark.parametrize("packed", [False, True])
def test_every_type_of_node_and_attribute_keeps_its_bytes(tmp_path: Path, packed: bool) -> None:
    nodes = [node(k, kind=k, attributes=every_attribute(), start=k, deps=[0, k]) for k in range(9)]
    nodes.append(node(9, extra=field(60, b"unknown") + field(5, 3) + field(99, 7)))
    traces = opened(write_traces(tmp_path / "t", [nodes], packed=packed))
    data = written(traces, traces.files[0])
    assert (gzip.decompress(data) if packed else data) == trace(nodes)
    (part,) = traces.read(traces.files[0])
    assert part["type"].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 4]
    for kind, value in VALUES.items():
        assert part.number(f"one_{kind}").tolist() == [
            *[value] * 9,
            pytest.approx(np.nan, nan_ok=True),
        ]
        assert np.isnan(part.number(f"all_{kind}")).all()
    assert part["group"].tolist() == ["a"] * 9 + [""]
    assert part["waits"].tolist() == [2] * 9 + [1]


BIG_ENDIAN = r"""
#include <stdio.h>
#include <string.h>
#include "rewritelog/core/core.h"

int main(int count, char **names)
{
    uint8_t buf[4096];
    int64_t fault[FAULT_SIZE], bytes = (int64_t)fread(buf, 1, sizeof buf, stdin);
    trace_node node;
    walk_nodes(buf, bytes, 0, false, &node, 1, fault);
    for (int k = 1; k < count; k++) {
        attribute found;
        int64_t end = (int64_t)strlen(names[k]);
        read_attributes(buf, &node, 1, (const uint8_t *)names[k], &end, 1, &found);
        printf("%.17g\n", found.number);
    }
    return 0;
}
"""


def test_attributes_have_their_values_on_a_big_endian_machine(tmp_path: Path) -> None:
    """Those of fixed width were read in the machine's byte order: −0.1 was −1.5e−180."""
    compiler, emulator = tool("s390x-linux-gnu-gcc"), tool("qemu-s390x-static")
    source, program = tmp_path / "main.c", tmp_path / "program"
    source.write_text(BIG_ENDIAN)
    core = REPOSITORY / "rewritelog" / "core" / "nodes.c"
    build: list[str | Path] = [compiler, "-static", "-I", REPOSITORY, source, core, "-o", program]
    subprocess.run(build, check=True)
    printed = subprocess.run(
        [emulator, program, *(f"one_{kind}" for kind in VALUES)],
        input=trace([], node(1, attributes=every_attribute())),
        capture_output=True,
        check=True,
    )
    assert [float(line) for line in printed.stdout.split()] == list(VALUES.values())


def test_odd_protobuf_reads_as_others_read_it(tmp_path: Path) -> None:
    """Fields in any order and twice, longer varints than needed, and fields that nobody knows."""

    def named(name: bytes, *fields: bytes) -> bytes:
        return field(10, b"".join((*fields[:1], field(1, name), *fields[1:])))

    odd = b"".join(
        (
            field(7, 5), field(10, b""), field(3, 2**32 + 4), field(4, 6), field(5, 3),
            named(b"int", field(7, 2**32 - 1)), named(b"uint", field(11, -1)),
            named(b"sint", field(15, 2**32 + 3)), named(b"flag", field(27, 5)),
            named(b"big", field(13, -1)), named(b"text", field(9, 8), field(29, b"a text")),
            named(b"pg_name", field(29, b"a group"), field(9, 8)),
            named(b"kept", field(9, 8), field(60, 1), field(2, b"a doc")),
            named(b"last", field(9, 8), field(29, b"text"), field(9, 7)),
            field(5, varint(4) + varint(2**64 - 1)), field(8, field(2, b"[[1]]")),
            field(2, b"first"), field(7, 9), field(1, 1), field(8, field(1, b"[]")),
            field(2, b"second"), field(1, 2**64 - 1),
        )
    )  # fmt: skip
    traces = opened(write_traces(tmp_path / "t", [[odd]]))
    (part,) = traces.read(traces.files[0])
    expected = {"id": 2**64 - 1, "name": "second", "type": COMP, "duration_us": 9,
                "shapes": "[[1]]", "int": -1, "uint": 2**32 - 1, "sint": -2, "flag": 1, "kept": 8,
                "last": 7, "big": 2.0**64, "group": ""}  # fmt: skip
    assert {name: part[name].tolist()[0] for name in expected} == expected
    assert np.isnan(part.number("text")).all()
    assert part["waited_for"].tolist() == [3, 4, 2**64 - 1, 6]
    assert (part["data_waits"].tolist(), part["waits"].tolist()) == ([3], [4])
    assert written(traces, traces.files[0], 2.0) == trace(
        [odd.replace(field(2, b"first") + field(7, 9), field(2, b"first") + field(7, 18))]
    )


def test_groups_that_nobody_knows_keep_their_bytes(tmp_path: Path) -> None:
    """They were refused. Fields in them are not the node's, whatever their numbers."""
    unknown = group(60, field(7, 99), group(60), field(2, b"x"), b"\x29" + bytes(8), group(1))
    body = node(1, deps=[4], extra=groups(100) + field(10, field(1, b"k") + unknown + field(9, 8)))
    odd = unknown + body + field(8, field(2, b"[[1]]") + unknown) + unknown
    metadata = unknown + METADATA + unknown
    path = tmp_path / "run.0.et"
    path.write_bytes(trace([odd, node(2)], metadata))
    traces = opened(path)
    (part,) = traces.read(traces.files[0])
    expected = {"id": 1, "name": "aten::mm", "duration_us": 10, "shapes": "[[1]]", "k": 8}
    assert {name: part[name].tolist()[0] for name in expected} == expected
    assert part["waited_for"].tolist() == [4]
    assert written(traces, traces.files[0], 20.0) == trace(
        [odd.replace(field(7, 10), field(7, 200)), node(2, duration=200)], metadata
    )


def test_texts_are_told_apart_by_all_of_their_bytes(tmp_path: Path) -> None:
    texts = ["a", "", "a\0", "ab", "a", "a\0b", ""]
    nodes = [node(k, name=text, shapes=text) for k, text in enumerate(texts)]
    (part,) = parts_of(write_traces(tmp_path / "t", [nodes]))
    for column in (part["name"], part["shapes"]):
        assert column.tolist() == texts
        assert column.distinct == ("a", "", "a\0", "ab", "a\0b")
        assert column[np.array([3, 1])].tolist() == ["ab", ""]
        assert column[2] == "a\0"


def test_a_folder_is_no_trace_whatever_its_name(tmp_path: Path) -> None:
    path = write_traces(tmp_path / "t", [[node(1)]])
    (path / "other.0.et").mkdir()
    assert [unit.rank for unit in opened(path).files] == [0]


def test_the_real_trace_keeps_its_bytes_in_parts_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(unpacked("feeder_tests_trace.tar.gz", tmp_path).rglob("*.et"))
    uncut = parts_of(path)
    monkeypatch.setattr(reader, "PART_BYTES", 100_000)
    traces = opened(path)
    assert written(traces, traces.files[0]) == path.read_bytes()
    parts = list(traces.read(traces.files[0]))
    assert len(parts) > 20
    assert sum(map(len, parts)) == len(uncut[0]) == 3664
    assert np.concatenate([part["id"] for part in parts]).tolist() == uncut[0]["id"].tolist()
    assert sum(part["data_waits"].sum() for part in parts) == 181_878
    assert sum(part["waits"].sum() for part in parts) == 181_878 + 3664  # by control
    assert int((uncut[0]["duration_s"] == 0).sum()) == 157


def test_a_changed_duration_changes_its_field_and_the_length_alone(tmp_path: Path) -> None:
    rest = {"is_cpu_op": ("bool", False)}
    old = [node(1, duration=100, attributes=rest), node(2, duration=0), node(3, duration=64)]
    new = [node(1, duration=200, attributes=rest), node(2, duration=0), node(3, duration=128)]
    traces = opened(write_traces(tmp_path / "t", [old]))
    assert written(traces, traces.files[0], 2.0) == trace(new)


def test_a_duration_that_was_missing_is_inserted_in_the_order_of_fields(tmp_path: Path) -> None:
    traces = opened(write_traces(tmp_path / "t", [[node(1, duration=0, shapes="[[3]]")]]))
    (part,) = traces.read(traces.files[0])
    data, _ = UnitWriter().written(part, np.array([3e-4]), np.array([True]))
    assert data.tobytes() == trace([node(1, duration=300, shapes="[[3]]")])


@pytest.mark.parametrize("factor", [0.1, 0.37, 1.7])
def test_sums_of_rounded_durations_are_those_of_exact_ones(tmp_path: Path, factor: float) -> None:
    durations = np.random.default_rng(1).integers(0, 9, 5000)
    nodes = [node(k, duration=int(d)) for k, d in enumerate(durations)]
    traces = opened(write_traces(tmp_path / "t", [nodes]))
    path = tmp_path / "new.0.et"
    path.write_bytes(written(traces, traces.files[0], factor))
    (part,) = parts_of(path)
    new = part["duration_us"].astype(np.int64)
    assert abs(new.sum() - factor * durations.sum()) <= 0.5
    assert np.abs(new - factor * durations).max() < 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "byte 0: the file is empty"),
        (trace([node(1)])[:-3], "node 0: the file ends within a message"),
        (trace([]) + b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "node 0: a message of more than"),
        (trace([]) + b"\xff\xff\xff\xff\x7f", "node 0: a message of more than"),
        (trace([]) + varint(2**63), "node 0: a message of more than"),
        (trace([b"\x38" + b"\xff" * 11]), "node 0: a field is damaged"),
        (trace([b"\x38\xff"]), "node 0: a field is damaged"),
        (trace([b"\x38"]), "node 0: a field is damaged"),
        (bytes(1000), "byte 1, node 0: an empty message"),
        (trace([node(1)]) + bytes(7), "node 1: an empty message"),
        (trace([node(1), b"\x00\x01"]), "node 1: a field is damaged"),
        (trace([varint(2**32 + 8) + b"\x01"]), "a field is damaged"),
        (trace([b"\x0e"]), "a field is damaged"),
        (trace([group(3)]), "the field with the number 3 has another type"),
        (trace([varint(60 << 3 | 4)]), "node 0: a field is damaged"),
        (trace([group(60, field(1, 2))[:-2] + varint(61 << 3 | 4)]), "a field is damaged"),
        (trace([group(60, group(61)[:2])]), "a field is damaged"),
        (trace([group(60, field(1, 2))[:-2]]), "a field is damaged"),
        (trace([group(60, b"\x0a\x09")]), "a field is damaged"),
        (trace([field(10, group(60)[:2]), group(60)]), "a field is damaged"),
        (trace([group(60, b"\x00\x01")]), "a field is damaged"),
        (trace([groups(101)]), "node 0: a field is damaged"),
        (trace([varint(10 << 3 | 2) + b"\x7f"]), "a field is damaged"),
        (trace([varint(60 << 3 | 2) + b"\x01"]), "a field is damaged"),
        (trace([varint(60 << 3 | 2) + varint(2**63)]), "a field is damaged"),
        (trace([varint(60 << 3 | 1) + bytes(7)]), "a field is damaged"),
        (trace([varint(60 << 3 | 5) + bytes(3)]), "a field is damaged"),
        (trace([field(10, field(4, field(1, bytes(12))))]), "the field with the number 1 has"),
        (trace([field(10, field(6, field(1, bytes(6))))]), "the field with the number 1 has"),
        (trace([field(10, field(8, field(1, b"\x80")))]), "the field with the number 1 has"),
        (trace([], node(7)), "the metadata, its first message: the field with the number 1"),
        (b"not a trace at all", "the metadata, its first message"),
        (gzip.compress(trace([b"\x38\xff"]), mtime=0), "message; the byte is one of the unpacked"),
    ],
)  # fmt: skip
def test_damage_is_named_with_file_offset_and_node(
    tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "run.0.et"
    path.write_bytes(data)
    with pytest.raises(DamagedLogError, match=message) as caught:
        parts_of(path)
    assert str(caught.value).startswith(f"{path}, byte ")


def wrong_types() -> list[bytes]:
    """Nodes with one field each that has another type than the schema says."""
    number, text, eight, four = field(1, 5), field(1, b"x"), b"\x09" + bytes(8), b"\x0d" + bytes(4)

    def numbered(value: bytes, *numbers: int) -> list[bytes]:
        return [varint(number << 3 | value[0] & 7) + value[1:] for number in numbers]

    lists = {
        **dict.fromkeys((8, 10, 12, 14, 16, 18, 28), eight),
        **dict.fromkeys((4, 22, 26), four),
        **dict.fromkeys((6, 20, 24), eight),
        **dict.fromkeys((30, 32), number),
    }
    attributes = [
        *numbered(text, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27),
        *numbered(number, 1, 2, 3, 5, 19, 21, 23, 25, 29, 31, *lists),
        *(field(number, value) for number, value in lists.items()),
    ]
    return [
        *numbered(text, 1, 3, 6, 7),
        *numbered(eight, 4, 5),
        *numbered(number, 2, 8, 9, 10),
        *(field(tensors, wrong) for tensors in (8, 9) for wrong in numbered(number, 1, 2, 3)),
        *(field(10, wrong) for wrong in attributes),
    ]


def test_every_field_has_the_type_that_the_schema_says(tmp_path: Path) -> None:
    path = tmp_path / "run.0.et"
    traces = [trace([node(1), wrong]) for wrong in wrong_types()]
    for data in (*traces, trace([], field(1, 5)), trace([], field(2, field(3, 5)))):
        path.write_bytes(data)
        with pytest.raises(DamagedLogError, match=r"field with the number \d+ has another type"):
            parts_of(path)


def test_offsets_of_damage_are_those_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "PART_BYTES", 64)
    nodes = [node(k) for k in range(50)]
    path = tmp_path / "run.0.et"
    path.write_bytes(trace([*nodes, b"\x38\xff"]))
    with pytest.raises(DamagedLogError, match=f"byte {len(trace(nodes)) + 1}, node 50: a field"):
        parts_of(path)


@pytest.mark.parametrize("size", [0.1, 0.5, 0.9])
def test_cut_gzip_data_are_read_up_to_the_cut(tmp_path: Path, size: float) -> None:
    """What was unpacked before the cut was not read."""
    rng = np.random.default_rng(2)
    nodes = [node(k, rng.bytes(8).hex(), int(rng.integers(1000))) for k in range(3000)]
    packed = gzip.compress(trace(nodes), mtime=0)
    path, kept = tmp_path / "run.0.et.gz", packed[: int(size * len(packed))]
    path.write_bytes(kept)
    left = len(zlib.decompressobj(31).decompress(kept))
    whole = bisect_right(range(1, 3001), left, key=lambda count: len(trace(nodes[:count])))
    with pytest.raises(DamagedLogError, match="Compressed file ended before") as error:
        parts_of(path)
    assert str(error.value).startswith(f"{path}, byte {left}: damaged gzip data (")
    assert f") after {whole:,} nodes; the byte is one of the unpacked data" in str(error.value)


@pytest.mark.parametrize("at", [3, 14, -8])
def test_damaged_gzip_data_are_told(tmp_path: Path, at: int) -> None:
    packed = bytearray(gzip.compress(trace([node(1), node(2)]), mtime=0))
    packed[at] ^= 0xFF
    path = tmp_path / "run.0.et.gz"
    path.write_bytes(packed)
    with pytest.raises(DamagedLogError, match=r"run\.0\.et\.gz, byte [0-9]+.*: damaged gzip data"):
        parts_of(path)


def test_gzip_data_may_be_in_several_pieces_with_padding(tmp_path: Path) -> None:
    data = trace(node(k) for k in range(40))
    path = tmp_path / "run.0.et.gz"
    path.write_bytes(gzip.compress(data[:50]) + bytes(99) + gzip.compress(data[50:]) + bytes(3))
    assert sum(map(len, parts_of(path))) == 40


def test_files_are_found_by_folder_file_or_beginning(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [[node(1)], [node(2), node(3, kind=COLL)]])
    for path in (folder, folder / "run"):
        assert [unit.rank for unit in opened(path).files] == [0, 1]
    assert [unit.rank for unit in opened(folder / "run.1.et").files] == [1]
    assert open_chakra(tmp_path / "nothing") is None
    (folder / "._run.0.et").write_bytes(b"what macOS adds to files on drives of other systems")
    assert [unit.rank for unit in opened(folder).files] == [0, 1]
    hidden = write_traces(tmp_path / "h", [[node(1)]])
    (hidden / "run.0.et").rename(hidden / ".run.0.et")
    assert [unit.rank for unit in opened(hidden).files] == [0]
    (folder / "other.0.et").write_bytes(trace([], METADATA))
    with pytest.raises(RewriteLogError, match="several names, other, run"):
        open_chakra(folder)
    (folder / "run.3.et").write_bytes(trace([]))
    assert [unit.rank for unit in opened(folder / "run").files] == [0, 1, 3]


def test_a_folder_of_files_without_ranks_is_told_from_one_without_traces(tmp_path: Path) -> None:
    """A trace without a rank was rewritten to a folder that had no traces, so it was said."""
    (tmp_path / "trace_0.et").write_bytes(trace([node(1)]))
    assert [unit.rank for unit in opened(tmp_path / "trace_0.et").files] == [0]
    with pytest.raises(RewriteLogError, match=r"trace_0\.et is not named NAME\.RANK\.et: give"):
        open_chakra(tmp_path)


def test_a_rank_is_a_number_that_others_can_hold(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [[node(1)]])
    path = folder / f"run.{'9' * 30}.et"
    (folder / "run.0.et").rename(path)
    for place in (folder, path):
        with pytest.raises(RewriteLogError, match=r"a rank above 2,147,483,647"):
            open_chakra(place)


def test_names_of_files_may_have_any_characters(tmp_path: Path) -> None:
    folder = write_traces(tmp_path / "t", [[node(1)]], name="a\nb\x1b[2J")
    assert [unit.rank for unit in opened(folder).files] == [0]


def test_traces_as_json_are_refused_with_the_form_that_is_read(tmp_path: Path) -> None:
    """Neither the folder nor the file was said to be in a form that is not read."""
    path = tmp_path / "run.0.json"
    path.write_text('{"schema": "1.0.2-chakra.0.0.4", "nodes": []}')
    for given in (tmp_path, path):
        with pytest.raises(RewriteLogError, match=r"NAME\.RANK\.et in binary form"):
            rewritelog.info(given)


@pytest.mark.parametrize(
    "content",
    [
        b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}' * 9,
        b"\x08\x08\x01\x12\x02mm\x18\x04",  # a node comes first
    ],
    ids=["JSON", "schema 0.0.1"],
)
def test_a_trace_in_another_form_is_asked_for_its_form(tmp_path: Path, content: bytes) -> None:
    """Traces of an older binary form were asked whether they are in binary form."""
    path = tmp_path / "run.0.et"
    path.write_bytes(content)
    with pytest.raises(
        DamagedLogError, match=r"first message: .* \(is it a trace in binary form, made since Oct"
    ):
        rewritelog.info(path)
