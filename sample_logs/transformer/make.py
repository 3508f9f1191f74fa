"""Makes the Chakra traces of this folder: `python make.py`, which writes the same bytes each time.

A made-up training step of a small transformer: kernels take their operations divided by a rate, and
a start-up time, with 3 % of noise; nothing was measured.
"""

import random
from pathlib import Path

COMP, COLL = 4, 7
GPU, ACCELERATOR = (6e-6, 9e12, 6e11), (4e-6, 40e12, 2e12)
"""The start-up of a kernel in seconds, and operations and bytes a second."""


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | str | bytes) -> bytes:
    """Return a field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


class Trace:
    """The trace of a rank."""

    def __init__(self, machine: tuple[float, float, float], seed: int) -> None:
        self.machine, self.random = machine, random.Random(seed)
        self.nodes = [field(2, field(1, "schema") + field(29, "1.0"))]

    def add(self, name: str, kind: int, seconds: float, deps: list[int], shapes: list[list[int]],
            **attributes: int) -> int:  # fmt: skip
        """Add a node on the device; return its id."""
        number = len(self.nodes)
        body = field(1, number) + field(2, name) + field(3, kind)
        if deps:
            body += field(5, b"".join(map(varint, deps)))
        body += field(7, round(1e6 * seconds * self.random.gauss(1, 0.03)))
        body += field(8, field(2, str(shapes)))
        body += field(10, field(1, "is_cpu_op") + field(27, 0))
        for key, value in {"stream": 7, **attributes}.items():
            body += field(10, field(1, key) + field(9, value))
        self.nodes.append(body)
        return number

    def matmul(self, m: int, k: int, n: int, deps: list[int]) -> int:
        """Add a product of matrices."""
        start_s, rate, _ = self.machine
        return self.add("aten::mm", COMP, start_s + 2 * m * k * n / rate, deps, [[m, k], [k, n]])

    def elementwise(self, name: str, rows: int, columns: int, deps: list[int]) -> int:
        """Add an operation on each element."""
        start_s, _, bandwidth = self.machine
        seconds = start_s + 8 * rows * columns / bandwidth
        return self.add(name, COMP, seconds, deps, [[rows, columns]])

    def layer(self, tokens: int, width: int, before: list[int]) -> int:
        """Add a layer; return its last node."""
        last = self.elementwise("aten::layer_norm", tokens, width, before)
        last = self.matmul(tokens, width, 3 * width, [last])
        last = self.elementwise("aten::softmax", tokens, tokens, [last])
        last = self.matmul(tokens, width, width, [last])
        last = self.matmul(tokens, width, 4 * width, [last])
        last = self.elementwise("aten::gelu", tokens, 4 * width, [last])
        return self.matmul(tokens, 4 * width, width, [last])

    def write(self, path: Path) -> None:
        """Write the file."""
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(varint(len(node)) + node for node in self.nodes))


def training(machine: tuple[float, float, float], seed: int) -> Trace:
    """Return a step of training: four layers there and back, and sums of gradients."""
    trace, last = Trace(machine, seed), list[int]()
    for _ in range(4):
        last = [trace.layer(1024, 1024, last)]
    for _ in range(4):
        last = [trace.layer(1024, 1024, last)]
        size = 12 * 1024 * 1024 * 4
        shapes = [[12 * 1024 * 1024]]
        trace.add("ncclAllReduce", COLL, 2e-3, last, shapes, comm_type=0, comm_size=size)
    return trace


def profile(machine: tuple[float, float, float], seed: int) -> Trace:
    """Return single layers of several sizes, one after the other."""
    trace, last = Trace(machine, seed), list[int]()
    for tokens in (256, 512, 1024, 2048):
        for width in (256, 512, 768, 1536):
            last = [trace.layer(tokens, width, last)]
    return trace


if __name__ == "__main__":
    here = Path(__file__).parent
    for rank in range(2):
        training(GPU, rank).write(here / "training" / f"step.{rank}.et")
        training(ACCELERATOR, 10 + rank).write(here / "accelerator" / f"step.{rank}.et")
    profile(ACCELERATOR, 20).write(here / "profile" / "layers.0.et")
