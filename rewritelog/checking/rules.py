"""The rules of `check`: what each says and why, beside the function that finds its violations.

Rules 1 to 7 of FORMAT 7 are `recv-before-send`, `message-size` with `event-type`,
`dependency-order`, `exec-time`, `send-outside`, `two-causes` and `floating`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rewritelog.arrays import Flags, Floats
from rewritelog.checking.dependencies import DEPENDENCY_RULES
from rewritelog.checking.findings import (
    SHOWN,
    CheckedBlock,
    Finding,
    Rule,
    Severity,
    Violations,
    names_message,
)
from rewritelog.checking.traces import TRACE_RULES
from rewritelog.commands.logs import RulesCommand
from rewritelog.errors import Location, UsageError
from rewritelog.formats.bgtrace.declaration import LOG_VERSIONS, Record, format_names, is_time
from rewritelog.formats.bgtrace.records import IRREGULAR, ROUNDING, Records
from rewritelog.text import Lines, count_text, wrapped

_OF_FILES = (
    Rule(
        "unreadable",
        Severity.STOP,
        "Every file of the log set exists, is a regular file, and can be read.",
        "A simulator opens the summary and all timeline files that the summary counts; without "
        "one of them, its PEs do not exist.",
    ),
    Rule(
        "machine-header",
        Severity.STOP,
        "A binary file begins with a 16-byte machine header: magic, version 0 or 1, short 2, int "
        "4 and double 8 bytes, integers and floats in one byte order.",
        "The header says how everything after it is to be read. No other header was ever written, "
        "so another one means that the file is something else or was overwritten.",
    ),
    Rule(
        "byte-order",
        Severity.STOP,
        "All files of a log set have the same byte order.",
        "A reader takes the byte order of each file from its header, but one emulation writes all "
        "files in the same order: files of two log sets were mixed.",
    ),
    Rule(
        "header-differs",
        Severity.ODD,
        "The machine headers of a log set are the same.",
        "One program wrote all files of a log set. The sizes that differ have no effect on how "
        "these files are read, but they hint that files of two log sets were mixed.",
    ),
    Rule(
        "summary",
        Severity.STOP,
        "The summary has 52, 56 or 60 bytes, and the numbers of nodes, worker threads and files "
        "are positive.",
        "Without these numbers the timeline of a PE cannot be located.",
    ),
    Rule(
        "pe-count",
        Severity.STOP,
        "The number of PEs is x · y · z · numWth.",
        "A simulator creates that many processors; with any other number, timelines are missing "
        "or belong to the wrong PE. The check continues with the product.",
    ),
    Rule(
        "log-version",
        Severity.STOP,
        f"The log version is {LOG_VERSIONS[0]} to {LOG_VERSIONS[-1]}, and the timelines can be "
        "read in it.",
        "The version is in the summary only, and the layout of every SEB depends on it. Some "
        "timelines are read in all versions, and if another one fits them better, the check "
        "continues in that. Versions 4 and 5 have the same layout and cannot be told apart.",
    ),
    Rule(
        "extra-file",
        Severity.ODD,
        "There are no more timeline files than the summary says.",
        "The others are not read. They are often left over from an earlier emulation in the same "
        "folder; params may then be left over too.",
    ),
    Rule(
        "timeline-count",
        Severity.STOP,
        "A timeline file has exactly the timelines of the PEs that belong in it.",
        "The PE of a timeline follows from its index alone, so one timeline too many or too few "
        "assigns timelines to the wrong PEs.",
    ),
    Rule(
        "offset",
        Severity.STOP,
        "The timelines follow one another in order, without gaps, inside the file.",
        "A reader jumps to a timeline by its offset. A wrong offset gives a PE other bytes as its "
        "SEBs. In files above 2 GiB the 32-bit offsets wrap around, which is not a finding.",
    ),
    Rule(
        "count",
        Severity.STOP,
        "No count is negative, and what it counts fits into the timeline.",
        "A reader allocates memory for a count before it reads what is counted: a simulator took "
        "all 24 GB of a machine for a log cut off after 17 bytes. The timeline cannot be read "
        "beyond an invalid count.",
    ),
    Rule(
        "cut-off",
        Severity.STOP,
        "A timeline ends after its last SEB, not within one.",
        "The emulation or a copy of its logs was cut short, or something was overwritten. The "
        "timeline cannot be read to its end.",
    ),
    Rule(
        "left-over",
        Severity.STOP,
        "There are no bytes between a timeline's last SEB and the next timeline or the end of the "
        "file.",
        "A simulator that reads the whole file in sequence takes them for the next timeline; and "
        "bytes that no count covers hint at a wrong count before them.",
    ),
    Rule(
        "event-type",
        Severity.STOP,
        "A log event is of type 1, 2 or 3.",
        "The log library stops at any other type, since the layout of what follows depends on it. "
        "The timeline cannot be read beyond it.",
    ),
)
"""Rules of the summary, the timeline files and the counts in them, found by their readers."""

_TIMED: dict[str, Record] = {"sebs": "seb", "messages": "message", "events": "event"}
"""The records that have times."""


@Rule(
    "seqno",
    Severity.MISLEAD,
    "The seqno of a SEB is its index in the timeline.",
    "Dependencies and params refer to SEBs by index. Any other seqno means that SEBs are "
    "missing or in another order, or that the bytes do not have the layout of the log "
    "version.",
)
def _seqno(block: CheckedBlock) -> Iterator[Violations]:
    seqno = block.records.sebs["seqno"]
    yield block.violations("sebs", seqno != block.records.index, lambda k: f"seqno {seqno[k]}")


@Rule(
    "not-finite",
    Severity.MISLEAD,
    "Times are finite numbers.",
    "Every time that is computed from a non-finite one is not finite either.",
)
def _not_finite(block: CheckedBlock) -> Iterator[Violations]:
    for kind, record in _TIMED.items():
        records: Records = getattr(block.records, kind)
        columns = {format_names(record)[name]: records[name] for name in _times_of(records)}

        def says(row: int, times: dict[str, Floats] = columns) -> str:
            wrong = {name: time[row] for name, time in times.items() if not np.isfinite(time[row])}
            return ", ".join(f"{name} {value}" for name, value in wrong.items())

        yield block.violations(kind, ~_finite(records), says)


@Rule(
    "exec-time",
    Severity.MISLEAD,
    "execTime is endTime − startTime, to 1e-6 s.",
    "The simulator takes execTime as the SEB's duration, other tools take the difference. An "
    "unclosed SEB (endTime before startTime) is not a finding if it is the last of its timeline "
    "and has an execTime of 0 or less: it is the one in which the program ended.",
)
def _exec_time(block: CheckedBlock) -> Iterator[Violations]:
    sebs = block.records.sebs
    executed, length = sebs["exec_time"], sebs["end_time"] - sebs["start_time"]
    yield block.violations(
        "sebs",
        block.records.exec_differs & _finite(sebs),
        lambda k: f"execTime {executed[k]} s, but endTime − startTime is {length[k]} s",
    )


@Rule(
    "two-causes",
    Severity.MISLEAD,
    "A SEB is started by a message or depends on other SEBs, but not both.",
    "The simulator starts a SEB when its message has arrived or when the SEBs before it are "
    "done; with both it runs too early, or twice.",
)
def _two_causes(block: CheckedBlock) -> Iterator[Violations]:
    yield block.violations(
        "sebs",
        (block.records.sebs["msg_id"] >= 0) & _depends(block),
        lambda k: f"it is started by {_cause(block, k)}, and depends on SEBs as well",
    )


@Rule(
    "floating",
    Severity.MISLEAD,
    "A SEB with neither starting message nor backward dependency has a recvTime.",
    "Nothing says when a floating SEB begins.",
)
def _floating(block: CheckedBlock) -> Iterator[Violations]:
    sebs = block.records.sebs
    yield block.violations(
        "sebs",
        (sebs["msg_id"] < 0) & (sebs["recv_time"] == -1.0) & ~_depends(block),
        lambda _: "neither a starting message nor a backward dependency, and recvTime −1",
    )


@Rule(
    "starting-message",
    Severity.MISLEAD,
    "A SEB names its starting message by PE and number, or both are −1.",
    "A message from a PE that does not exist never arrives, and the SEB never runs.",
)
def _starting_message(block: CheckedBlock) -> Iterator[Violations]:
    source, number = block.records.sebs["src_pe"], block.records.sebs["msg_id"]
    pes = block.summary.total_pes

    def says(k: int) -> str:
        is_pe = 0 <= source[k] < pes
        reason = "messages have numbers from 0 on" if is_pe else f"the PEs are 0 to {pes - 1}"
        return f"it is started by {_cause(block, k)}, but {reason}"

    yield block.violations(
        "sebs",
        ~names_message(block.records, pes) & ((number != -1) | (source != -1)),
        says,
    )


@Rule(
    "not-sent",
    Severity.MISLEAD,
    "The message that starts a SEB is among those that its source PE sent.",
    "A message that no PE sends never arrives, and the SEB and everything that depends on it "
    "never run. Sent messages are kept in a table of limited size, so in large logs a missing "
    "message may go unnoticed, but a sent one is never reported. Nothing is checked where "
    "timelines cannot be read to their end, nor in logs of version 0 with several worker "
    "threads per node, where the number may be that of a node.",
)
def _not_sent(block: CheckedBlock) -> Iterator[Violations]:
    if block.awaits_unsent is None:
        return
    yield block.violations(
        "sebs",
        block.awaits_unsent,
        lambda k: f"it is started by {_cause(block, k)}, which is never sent",
    )


def _finite(records: Records) -> Flags:
    """Return whether all times of each record are finite."""
    finite = np.ones(len(records), dtype=np.bool_)
    for name in _times_of(records):
        finite &= np.isfinite(records[name])
    return finite


def _times_of(records: Records) -> list[str]:
    """Return the names of the fields that are times."""
    return [name for name in records.newest.names or () if is_time(name)]


def _depends(block: CheckedBlock) -> Flags:
    """Return whether each SEB has backward dependencies."""
    return np.asarray(block.records.walked["backward"] > 0)


def _cause(block: CheckedBlock, seb: int) -> str:
    """Return the name of a SEB's starting message, for a finding."""
    sebs = block.records.sebs
    return f"message {sebs['msg_id'][seb]} of PE {sebs['src_pe'][seb]}"


@Rule(
    "recv-before-send",
    Severity.STOP,
    "No message arrives before it is sent.",
    "The log library stops at such a message, by an assertion that default builds include.",
)
def _recv_before_send(block: CheckedBlock) -> Iterator[Violations]:
    sent, received = block.records.messages["send_time"], block.records.messages["recv_time"]
    yield block.violations(
        "messages",
        received < sent,
        lambda k: f"recvTime {received[k]} s is before sendTime {sent[k]} s",
    )


@Rule(
    "message-size",
    Severity.STOP,
    "The size of a message is not negative.",
    "The log library stops at such a message.",
)
def _message_size(block: CheckedBlock) -> Iterator[Violations]:
    size = block.records.messages["size"]
    yield block.violations("messages", size < 0, lambda k: f"negative size, {size[k]} bytes")


@Rule(
    "send-outside",
    Severity.MISLEAD,
    "A message is sent between its SEB's startTime and endTime.",
    "The simulator sends it at its recorded offset from the SEB's start, and so before or "
    "after the SEB runs. In an unclosed SEB it is not a finding.",
)
def _send_outside(block: CheckedBlock) -> Iterator[Violations]:
    sent, sebs = block.records.messages["send_time"], block.records.sebs
    seb = block.records.messages.seb
    start, end = sebs["start_time"][seb], sebs["end_time"][seb]
    yield block.violations(
        "messages",
        (end >= start) & ((sent < start) | (sent > end)),
        lambda k: f"sendTime {sent[k]} s, in a SEB from {start[k]} s to {end[k]} s",
    )


@Rule(
    "message-target",
    Severity.STOP,
    "The node and the worker thread that a message is sent to exist, or dstNode is −1 (every "
    "node), −2 (a multicast) or −100 − N (all but node N).",
    "The simulator cannot deliver the message.",
)
def _message_target(block: CheckedBlock) -> Iterator[Violations]:
    node, worker = block.records.messages["dst_node"], block.records.messages["tid"]
    nodes, workers = block.summary.nodes, block.summary.num_wth
    there = (node >= -1) & (node < nodes) | (node <= -100) & (node > -100 - nodes)
    exists = (node == -2) | there & (worker >= -1) & (worker < workers)

    def says(message: int) -> str:
        machine = f"{count_text(nodes, 'node')} with {count_text(workers, 'worker thread')}"
        return f"dstNode {node[message]}, tID {worker[message]}, on a machine of {machine}"

    yield block.violations("messages", ~exists, says)


@Rule(
    "message-number",
    Severity.ODD,
    "The numbers of the messages that a PE sends are 0 or more, and increase.",
    "A SEB refers to its starting message by this number; a duplicated number is ambiguous.",
)
def _message_number(block: CheckedBlock) -> Iterator[Violations]:
    number = block.records.messages["msg_id"]
    last = np.concatenate([[-1], number])
    begun = block.records.loaded.pieces.firsts > 0
    timelines = block.records.first("messages")[block.records.pieces.first_rows]
    last[timelines] = np.where(begun, block.state.get("message-number", -1), -1)
    block.state["message-number"] = number[-1] if len(number) else last[0]
    yield block.violations(
        "messages",
        number <= np.maximum(last[:-1], -1),
        lambda k: (
            f"its number {number[k]} "
            + ("is negative" if number[k] < 0 else f"does not exceed the last one, {last[k]}")
        ),
    )


@Rule(
    "marks",
    Severity.ODD,
    "Marks come in pairs, in order and inside the SEB.",
    "The simulator ignores them. A rewrite cannot tell which part of the SEB is bracketed, "
    "and dilates all of it.",
)
def _marks(block: CheckedBlock) -> Iterator[Violations]:
    yield block.violations(
        "sebs",
        block.records.brackets.counts == IRREGULAR,
        lambda _: "its marks do not pair up inside the SEB",
        block.records.walked["events_at"],
    )


@Rule(
    "event-outside",
    Severity.ODD,
    "The rTime of a log event lies between 0 and the SEB's duration.",
    "Trace viewers show the log event in another SEB. In an unclosed SEB only a "
    "negative rTime is a finding.",
)
def _event_outside(block: CheckedBlock) -> Iterator[Violations]:
    time, seb = block.records.events["r_time"], block.records.events.seb
    start, end = (block.records.sebs[name][seb] for name in ("start_time", "end_time"))
    slack = ROUNDING * np.maximum(np.abs(start), np.abs(end))
    after = (end >= start) & (time > end - start + slack)
    yield block.violations(
        "events", np.isfinite(time) & ((time < 0.0) | after), lambda k: f"rTime {time[k]} s"
    )


@Rule(
    "param-file",
    Severity.MISLEAD,
    "A param file is a regular file that can be read.",
    "Without it the brackets of its PE have no params, and a rewrite stops there.",
)
def _param_file(block: CheckedBlock) -> Iterator[Violations]:
    if block.params and block.records.loaded.is_first:
        findings = []
        for pe, error in block.params.notes.unreadable:
            path = block.params.source.path(pe)
            problem = str(error).removeprefix(f"{path}: ")
            findings.append(Finding(Location(path, pe=pe), problem))
        yield len(findings), findings


@Rule(
    "param-line",
    Severity.ODD,
    "A line of a param file has an event, a SEB and parameters.",
    "A torn or malformed line is ignored, and its bracket is dilated.",
)
def _param_line(block: CheckedBlock) -> Iterator[Violations]:
    if block.params:
        notes = block.params.notes
        yield notes.malformed, [Finding(Location(), text) for text in notes.malformed_examples]


_PARAM_PE = Rule(
    "param-pe",
    Severity.ODD,
    "The PE of a param file exists in the log.",
    "The file is not used. The params may belong to other logs.",
)


@Rule(
    "param-seb",
    Severity.MISLEAD,
    "The SEB of a param record exists in its PE's timeline.",
    "The record is not used. With params of another emulation, brackets get the parameters of "
    "other work, and a rewrite predicts wrong durations.",
)
def _param_seb(block: CheckedBlock) -> Iterator[Violations]:
    if block.params is None:
        return
    records, loaded = block.params.records, block.records.loaded
    unplaced = np.flatnonzero(records.seb >= loaded.totals[records.piece])
    findings = []
    for row in unplaced[:SHOWN].tolist():
        pe, total = (int(column[records.piece[row]]) for column in (loaded.pes, loaded.totals))
        event = records.events[records.event[row]]
        problem = f"a record of event {event!r}, but the timeline has {count_text(total, 'SEB')}"
        location = Location(block.params.source.path(pe), pe=pe, seb=int(records.seb[row]))
        findings.append(Finding(location, problem))
    yield len(unplaced), findings


@Rule(
    "param-seqno",
    Severity.ODD,
    "The number at the start of a param line equals the seqno in it.",
    "Both are the SEB's index. A rewrite uses the first.",
)
def _param_seqno(block: CheckedBlock) -> Iterator[Violations]:
    if block.params:
        notes = block.params.notes
        findings = [Finding(Location(), text) for text in notes.seqno_examples]
        yield notes.seqno_differs, findings


@Rule(
    "param-records",
    Severity.ODD,
    "A SEB has as many param records as brackets.",
    "A rewrite pairs them in order. A SEB with one record and no marks is taken as bracketed "
    "from end to end; a bracket without a record, or a SEB where the numbers differ "
    "otherwise, is dilated. Nothing is checked if there are no param files.",
)
def _param_records(block: CheckedBlock) -> Iterator[Violations]:
    if block.params is None:
        return
    params = block.params.records
    seb = block.records.pieces.rows(params.piece, params.seb)
    records = np.bincount(seb[seb >= 0], minlength=len(block.records.sebs))
    brackets = block.records.brackets.counts
    yield block.violations(
        "sebs",
        (brackets != IRREGULAR) & (records != brackets),
        lambda k: (
            f"{count_text(int(records[k]), 'param record')} and "
            f"{count_text(int(brackets[k]), 'bracket')}"
        ),
    )


RULES = {
    rule.name: rule
    for rule in (
        *_OF_FILES,
        _seqno,
        _not_finite,
        _exec_time,
        _two_causes,
        _floating,
        _starting_message,
        _not_sent,
        _recv_before_send,
        _message_size,
        _send_outside,
        _message_target,
        _message_number,
        _marks,
        _event_outside,
        *DEPENDENCY_RULES,
        _param_file,
        _param_line,
        _PARAM_PE,
        _param_seb,
        _param_seqno,
        _param_records,
    )
}
"""All rules by name: those of files first, then those of SEBs, then those of params."""


def rule_names() -> list[str]:
    """Return the names of all rules, those of logs first."""
    return list(dict.fromkeys([*RULES, *TRACE_RULES]))


def described(command: RulesCommand) -> str:
    """Return the list of rules, or what one of them says."""
    return Lines(rules_text() if command.rule is None else rule_text(command.rule))


def rule_text(name: str) -> str:
    """Return what a rule says, and why; raise `UsageError` listing all names for an unknown one."""
    named = [rules[name] for rules in (RULES, TRACE_RULES) if name in rules]
    if not named:
        raise UsageError(f"unknown rule {name!r}; the rules are {', '.join(rule_names())}")
    return "\n".join(rule.text() for rule in named)


def rules_text() -> str:
    """Return what each rule says, most severe first: those of logs, then those of traces."""
    width = max(map(len, RULES))
    lines = []
    for rules, head in ((RULES, ""), (TRACE_RULES, "Chakra traces, ")):
        for severity in Severity:
            of_severity = [rule for rule in rules.values() if rule.severity is severity]
            lines += [f"{head}{severity.value}:"] if of_severity else []
            lines += [
                wrapped(f"  {rule.name:{width}}  {rule.statement}", hanging=width + 2)
                for rule in of_severity
            ]
    return "\n".join(lines)
