"""The page of logs or traces: what takes the time, who sends how much to whom, and the summary."""

from __future__ import annotations

from typing import Any

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.inspection.info import LogInfo, TraceInfo
from rewritelog.inspection.survey import Traffic
from rewritelog.text import (
    LABEL_WIDTH,
    NO_NAME,
    TextTable,
    bytes_text,
    count_text,
    printable,
    shorten_all,
    time_text,
)
from rewritelog.viewing.page import Section, page_text
from rewritelog.viewing.plots import COLOURS, new_plot

MOST_ROWS = 40
"""A table and a plot have at most this many pairs of PEs, or names: the largest."""


def info_page(info: LogInfo | TraceInfo) -> str:
    """Return the HTML page of a log set or of traces."""
    sections = [_names(info)]
    if isinstance(info, TraceInfo):
        title = f"Traces of {printable(str(info.traces.path))}"
        ranks, nodes = count_text(len(info.traces.files), "rank"), count_text(info.nodes, "node")
        verdict = f"{info.traces.title}, {ranks}, {nodes}, together {time_text(info.seconds)}."
    else:
        title, traffic = f"Logs of {printable(info.folder)}", info.traffic
        verdict = (
            f"{count_text(info.summary.total_pes, 'PE')}, {count_text(info.sebs, 'SEB')} and "
            f"{count_text(info.messages, 'message')} in {bytes_text(info.size_bytes)}."
        )
        if traffic.messages.any():
            sections += [
                _matrix("Messages between PEs", info, traffic.messages, "messages"),
                _matrix("Bytes between PEs", info, traffic.sent_bytes, "bytes"),
            ]
        if traffic.sizes.any():
            sections.append(_sizes(traffic))
    sections.append(Section("Summary", text=info.text()))
    return page_text(title, [verdict], sections)


def _names(info: LogInfo | TraceInfo) -> Section:
    """Return the section of the names that take most time."""
    times, plot = info.times(), None
    ranked, sentences = times[:MOST_ROWS], list[str]()
    if len(times) > len(ranked):
        sentences.append(f"The {len(ranked)} of {len(times):,} names that take the most time.")
    short = shorten_all([name or NO_NAME for name, *_ in ranked], LABEL_WIDTH)
    rows = [
        (name + kind, f"{count:,}", time_text(seconds))
        for name, (_, kind, count, seconds) in zip(short, ranked, strict=True)
    ]
    if rows:
        plot = new_plot("total duration", info.item, seconds="x", rows=[row[0] for row in rows])
        seconds = [row[3] for row in ranked]
        plot.hbar(np.arange(len(rows)) + 0.5, right=seconds, height=0.8, color=COLOURS[0])
        plot.x_range.start = 0
    heads = (info.item, f"{info.item}s", "together")
    table = TextTable(heads, rows, caption="Durations by name")
    return Section("Durations by name", sentences, plot, table)


def _matrix_plot(counts: Ints, pes: int, unit: str) -> Any:
    """Return the plot of a communication matrix: senders are rows, receivers columns."""
    from bokeh.models import HoverTool, LogColorMapper  # noqa: PLC0415 - an extra
    from bokeh.models.annotations import ColorBar  # noqa: PLC0415
    from bokeh.palettes import Cividis256  # noqa: PLC0415

    first, last = -0.5, pes - 0.5  # the number of a PE is in the middle of its row or column
    plot = new_plot(
        "to PE", "from PE", height=440, x_range=(first, last), y_range=(last, first), whole="xy"
    )
    most = int(counts.max())
    least = int(counts[counts > 0].min(initial=max(1, most)))
    mapper = LogColorMapper(
        palette=Cividis256[::-1], low=least, high=max(most, least + 1), nan_color="#FFF"
    )
    image = np.where(counts > 0, counts, np.nan)
    cells = plot.image([image], x=first, y=first, dw=pes, dh=pes, color_mapper=mapper)
    plot.add_layout(ColorBar(color_mapper=mapper, title=unit), "right")
    tooltips = [("to PE", "$x{0}"), ("from PE", "$y{0}"), (unit, "@image{0,0}")]
    plot.add_tools(HoverTool(tooltips=tooltips, renderers=[cells]))
    return plot


def _matrix(heading: str, info: LogInfo, counts: Ints, unit: str) -> Section:
    """Return the section of a communication matrix, with the pairs of PEs that have the most."""
    group, total = info.traffic.group, info.summary.total_pes
    pes = len(counts) * group
    ranked = np.argsort(-counts, axis=None, kind="stable")[:MOST_ROWS]
    ends = ((pe, min(pe + group, total) - 1) for pe in range(0, pes, group))
    names = [f"PE {pe}" if pe == last else f"PE {pe}–{last}" for pe, last in ends]
    rows = [
        (names[sender], names[receiver], f"{counts[sender, receiver]:,}")
        for sender, receiver in zip(*np.unravel_index(ranked, counts.shape), strict=True)
        if counts[sender, receiver]
    ]
    sentences = []
    if info.traffic.messages.sum() > info.messages - info.traffic.multicasts:
        sentences.append("A message to several PEs, as a broadcast, counts for each of them.")
    if group > 1:
        sentences.append(f"{group} neighbouring PEs share a row and a column.")
    if info.traffic.multicasts:
        sentences.append(
            f"Without {count_text(info.traffic.multicasts, 'message')} to lists of PEs, "
            "which the log does not hold."
        )
    table = TextTable(("from", "to", unit), rows, caption=f"The pairs with the most {unit}")
    return Section(heading, sentences, _matrix_plot(counts, pes, unit), table, in_grid=True)


def _sizes(traffic: Traffic) -> Section:
    """Return the section of the histogram of message sizes."""
    classes = traffic.size_classes()
    labels = [bytes_text(least) if least else "0 bytes" for least, _, _ in classes]
    plot = new_plot("size of the message, at least", "messages", height=240, x_range=labels)
    plot.vbar(x=labels, top=[count for _, _, count in classes], width=0.9, color=COLOURS[0])
    plot.y_range.start = 0
    rows = [(f"{least:,}", f"{most:,}", f"{count:,}") for least, most, count in classes]
    table = TextTable(("from", "to", "messages"), rows, caption="Messages by size in bytes")
    return Section("Sizes of messages", plot=plot, table=table)
