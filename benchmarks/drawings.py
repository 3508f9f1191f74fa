"""Draws the diagrams of README.md and docs/architecture.md: `python -m benchmarks.drawings`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, PAPER = "#24292f", "#ffffff"
BLUE, GREEN, ORANGE, GREY = "#dbe9f9", "#dff2e1", "#fdebd3", "#eceff2"


@dataclass(frozen=True)
class Box:
    """A box with a title and lines below it, by its upper left corner."""

    x: int
    y: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...] = ()
    fill: str = GREY
    code: bool = False

    def svg(self) -> str:
        """Return the box."""
        middle, top = self.x + self.width / 2, self.y + self.height / 2
        first = top - 8 * len(self.lines) + 5
        frame = (
            f"<rect x='{self.x}' y='{self.y}' width='{self.width}' height='{self.height}' rx='6' "
            f"fill='{self.fill}' stroke='{INK}'/>"
        )
        parts = [frame, text(middle, first, self.title, weight="bold", code=self.code)]
        parts += [
            text(middle, first + 16 * row, line, size=12) for row, line in enumerate(self.lines, 1)
        ]
        return "\n".join(parts)


def text(
    x: float,
    y: float,
    said: str,
    *,
    size: int = 14,
    weight: str = "normal",
    code: bool = False,
    anchor: str = "middle",
) -> str:
    """Return one line of text."""
    font = "font-family='Menlo, Consolas, monospace'" if code else FONT
    return (
        f"<text x='{x:g}' y='{y:g}' {font} font-size='{size}' font-weight='{weight}' "
        f"fill='{INK}' text-anchor='{anchor}'>{escape(said)}</text>"
    )


def arrow(*points: tuple[int, int], said: str = "", at: tuple[int, int] = (0, 0)) -> str:
    """Return an arrow through points, with a text."""
    path = " ".join(f"{x},{y}" for x, y in points)
    line = (
        f"<polyline points='{path}' fill='none' stroke='{INK}' stroke-width='1.5' "
        "marker-end='url(#head)'/>"
    )
    return line + ("\n" + text(*at, said, size=12) if said else "")


def drawing(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return a whole drawing."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img'>\n<title>{escape(title)}</title>\n"
        "<defs><marker id='head' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' "
        f"markerHeight='8' orient='auto'><path d='M0 0 L8 4 L0 8 z' fill='{INK}'/></marker></defs>"
        f"\n<rect width='{width}' height='{height}' fill='{PAPER}'/>"
    )
    return "\n".join([head, *parts, "</svg>", ""])


def overview() -> str:
    """Return the picture of README.md: emulator, rewritelog, simulator."""
    parts = [
        Box(
            10,
            30,
            190,
            92,
            "emulator",
            ("runs the program", "for the large machine,", "on a small one"),
            BLUE,
        ).svg(),
        Box(
            315,
            30,
            190,
            92,
            "rewritelog",
            ("gives every SEB", "the duration that it", "has on the target"),
            ORANGE,
        ).svg(),
        Box(
            620,
            30,
            190,
            92,
            "simulator",
            ("replays the SEBs and", "messages over the", "target's network"),
            BLUE,
        ).svg(),
        Box(
            210,
            170,
            190,
            76,
            "kernels on the target",
            ("a timed run, or a few calls", "in a cycle simulator"),
            GREEN,
        ).svg(),
        Box(420, 170, 190, 76, "dilation", ("for everything that", "was not timed"), GREEN).svg(),
        arrow((200, 76), (313, 76), said="logs, params", at=(256, 68)),
        text(256, 94, "host's durations", size=12),
        arrow((505, 76), (618, 76), said="rewritten logs", at=(561, 68)),
        text(561, 94, "target's durations", size=12),
        arrow((810, 76), (850, 76)),
        text(884, 72, "predicted"),
        text(884, 90, "run time"),
        arrow((305, 170), (370, 124), said="timing lines", at=(292, 148)),
        arrow((515, 170), (450, 124), said="--dilation", at=(530, 148)),
    ]
    title = "Logs go from the emulator through rewritelog to the simulator."
    return drawing(930, 262, title, parts)


def architecture() -> str:
    """Return the drawing of docs/architecture.md: the two ways through the package."""
    parts = [
        text(10, 24, "from a timing line to a coefficient", weight="bold", anchor="start"),
        Box(10, 40, 120, 60, "timing lines", ("text, .gz, …",), GREY).svg(),
        Box(190, 40, 160, 60, "tracebigsim", ("scan: lines → table",), GREEN, code=True).svg(),
        Box(410, 40, 160, 60, "timings", ("samples by event",), GREEN, code=True).svg(),
        Box(
            630,
            40,
            240,
            60,
            "models",
            ("clean, build, cross-validate,", "select, solve, calibrate, diagnose"),
            GREEN,
            code=True,
        ).svg(),
        arrow((130, 70), (188, 70)),
        arrow((350, 70), (408, 70)),
        arrow((570, 70), (628, 70)),
        text(10, 164, "from a log folder to a rewritten one", weight="bold", anchor="start"),
        Box(10, 180, 120, 60, "log folder", ("bgTrace*, param.*",), GREY).svg(),
        Box(
            190, 180, 160, 60, "logs", ("heads → blocks", "params of a block"), BLUE, code=True
        ).svg(),
        Box(410, 180, 160, 60, "kernels", ("walk SEBs, find", "brackets"), BLUE, code=True).svg(),
        Box(
            630,
            180,
            240,
            60,
            "rewriting",
            ("durations from the fit or dilation;", "times moved, bytes patched, sums"),
            ORANGE,
            code=True,
        ).svg(),
        Box(
            630,
            300,
            240,
            60,
            "output",
            ("a draft beside OUT, flushed,", "renamed when complete"),
            BLUE,
            code=True,
        ).svg(),
        Box(
            410, 300, 160, 60, "OUT", ("the same bytes but times", "+ rewritelog.json"), GREY
        ).svg(),
        Box(190, 300, 160, 60, "report", ("text, JSON, warnings",), GREY).svg(),
        arrow((130, 210), (188, 210)),
        arrow((350, 210), (408, 210)),
        arrow((570, 210), (628, 210)),
        arrow((750, 100), (750, 178), said="fitted functions: parameters → seconds", at=(618, 144)),
        arrow((750, 240), (750, 298), said="one block at a time", at=(690, 274)),
        arrow((630, 330), (572, 330)),
        arrow(
            (630, 226),
            (600, 226),
            (600, 274),
            (270, 274),
            (270, 298),
            said="counts and sums",
            at=(435, 268),
        ),
    ]
    title = "Timing lines become fits in models; logs are read in blocks, rewritten and written."
    return drawing(880, 374, title, parts)


def main() -> None:
    """Write the drawings."""
    (FIGURES / "overview.svg").write_text(overview())
    (FIGURES / "architecture.svg").write_text(architecture())


if __name__ == "__main__":
    main()
