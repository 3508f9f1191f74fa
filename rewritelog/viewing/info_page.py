"""The page of a log set: its summary, who sends how much to whom, and in which sizes.

That of traces shows which nodes take the time.
"""

from __future__ import annotations

import numpy as np

from rewritelog.arrays import Ints
from rewritelog.inspection.info import LogInfo, TraceInfo
from rewritelog.inspection.survey import Traffic
from rewritelog.text import bytes_text, count_text, printable, shorten, time_text
from rewritelog.viewing.page import PageTable, Section, page_text
from rewritelog.viewing.plots import COLOURS, new_plot

MOST_PAIRS = 40
"""The table of a matrix has at most this many pairs, those with the most."""

MOST_NAMES = 40
"""The nodes of at most this many names are drawn, those that take the most time."""


def info_page(info: LogInfo) -> str:
    """Return the HTML page of a log set."""
    traffic = info.traffic
    verdict = (
        f"{count_text(info.summary.total_pes, 'PE')}, {count_text(info.sebs, 'SEB')} and "
        f"{count_text(info.messages, 'message')} in {bytes_text(info.size_bytes)}."
    )
    sections = []
    if traffic.messages.any():
        sections += [
            _matrix("Messages between PEs", traffic, traffic.messages, "messages"),
            _matrix("Bytes between PEs", traffic, traffic.sent_bytes, "bytes"),
        ]
    if traffic.sizes.any():
        sections.append(_sizes(traffic))
    sections.append(Section("Summary", text=info.text()))
    return page_text(f"Logs of {info.folder}", [verdict], sections, info.warnings)


def traces_page(info: TraceInfo) -> str:
    """Return the HTML page of traces."""
    ranked = sorted(info.sums.by("names"), key=lambda row: -row[2])
    named = {shorten(f"{name} ({kind})", 60): seconds for (kind, name), _, seconds in ranked}
    labels = list(named)[:MOST_NAMES]
    height = 120 + 24 * len(labels)
    plot = new_plot("total duration", "node", height=height, seconds="x", y_range=labels[::-1])
    plot.hbar(labels, right=[named[label] for label in labels], height=0.8, color=COLOURS[0])
    plot.x_range.start = 0
    rows = [
        (shorten(name, 60), kind, f"{events:,}", time_text(seconds))
        for (kind, name), events, seconds in ranked[:MOST_NAMES]
    ]
    table = PageTable("Durations by name", ("node", "type", "nodes", "together"), rows)
    verdict = (
        f"{info.traces.title}, {count_text(len(info.traces.units), 'rank')}, "
        f"{count_text(info.nodes, 'node')}, together {time_text(info.seconds)}."
    )
    sections = [
        Section("Durations by name", plot=plot if labels else None, table=table),
        Section("Summary", text=info.text()),
    ]
    title = f"Traces of {printable(str(info.traces.path))}"
    return page_text(title, [verdict], sections, info.warnings)


def _matrix(heading: str, traffic: Traffic, counts: Ints, unit: str) -> Section:
    """Return the section of a communication matrix: senders are rows, receivers columns."""
    from bokeh.models import HoverTool, LogColorMapper  # noqa: PLC0415 - an extra
    from bokeh.models.annotations import ColorBar  # noqa: PLC0415

    pes = len(counts) * traffic.group
    first, last = -0.5, pes - 0.5  # the number of a PE is in the middle of its row or column
    plot = new_plot("to PE", "from PE", height=520, x_range=(first, last), y_range=(last, first))
    least, most = counts[counts > 0].min(initial=1), counts.max()
    mapper = LogColorMapper(
        palette="Cividis256",
        low=int(least),
        high=int(max(most, least + 1)),
        nan_color="#FFFFFF",
    )
    mapper.palette = mapper.palette[::-1]
    image = np.where(counts > 0, counts, np.nan)
    cells = plot.image([image], x=first, y=first, dw=pes, dh=pes, color_mapper=mapper)
    plot.add_layout(ColorBar(color_mapper=mapper, title=unit), "right")
    tooltips = [("to PE", "$x{0}"), ("from PE", "$y{0}"), (unit, "@image{0,0}")]
    plot.add_tools(HoverTool(tooltips=tooltips, renderers=[cells]))
    ranked = np.argsort(-counts, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = zip(*np.unravel_index(ranked, counts.shape), strict=True)
    rows = [
        (_pes(sender, traffic.group), _pes(receiver, traffic.group), f"{count:,}")
        for sender, receiver in pairs
        if (count := counts[sender, receiver])
    ]
    sentences = []
    if traffic.group > 1:
        sentences.append(f"{traffic.group} neighbouring PEs share a row and a column.")
    if traffic.multicasts:
        sentences.append(
            f"{traffic.multicasts:,} messages to lists of PEs, which the log does not hold, are "
            "not included."
        )
    table = PageTable(f"The pairs with the most {unit}", ("from", "to", unit), rows)
    return Section(heading, sentences, plot, table, in_grid=True)


def _pes(row: int, group: int) -> str:
    return f"PE {row}" if group == 1 else f"PE {row * group}–{(row + 1) * group - 1}"


def _sizes(traffic: Traffic) -> Section:
    """Return the section of the histogram of message sizes."""
    classes = traffic.size_classes()
    labels = [bytes_text(least) if least else "0 bytes" for least, _, _ in classes]
    plot = new_plot("size of the message, at least", "messages", height=320, x_range=labels)
    plot.vbar(x=labels, top=[count for _, _, count in classes], width=0.9, color=COLOURS[0])
    plot.y_range.start = 0
    rows = [(f"{least:,}", f"{most:,}", f"{count:,}") for least, most, count in classes]
    table = PageTable("Messages by size in bytes", ("from", "to", "messages"), rows)
    return Section("Sizes of messages", plot=plot, table=table)
