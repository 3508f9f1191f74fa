"""The rules of `check`: the severity of a violation, and the reason for each rule.

Rules 1 to 7 of FORMAT 7 are `recv-before-send`, `message-size` with `event-type`,
`dependency-order`, `exec-time`, `send-outside`, `two-causes` and `floating`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rewritelog.checking.kernels.violations import Violation
from rewritelog.errors import UsageError


class Severity(Enum):
    """The consequence of a violation."""

    STOP = "would stop the simulator"
    MISLEAD = "would mislead the simulator"
    ODD = "odd"


@dataclass(frozen=True)
class Rule:
    """A rule of the format, or of the programs that read it."""

    name: str
    severity: Severity
    says: str
    """The statement of the rule."""
    protects: str
    """The reason for the rule: what depends on it."""

    def text(self) -> str:
        """Return the rule as text."""
        return f"{self.name} ({self.severity.value}): {self.says}\n{self.protects}"


_ALL = (
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
        "The log version is 0 to 6, and the timelines can be read in it.",
        "The version is in the summary only, and the layout of every SEB depends on it. If the "
        "first timelines cannot be read in it, the other versions are tried, and the check "
        "continues in the one that fits. Versions 4 and 5 have the same layout and cannot be told "
        "apart.",
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
    Rule(
        "seqno",
        Severity.MISLEAD,
        "The seqno of a SEB is its index in the timeline.",
        "Dependencies and params refer to SEBs by index. Any other seqno means that SEBs are "
        "missing or in another order, or that the bytes do not have the layout of the log "
        "version.",
    ),
    Rule(
        "not-finite",
        Severity.MISLEAD,
        "Times are finite numbers.",
        "Every time that is computed from a non-finite one is not finite either.",
    ),
    Rule(
        "exec-time",
        Severity.MISLEAD,
        "execTime is endTime − startTime, to 1e-6 s.",
        "The simulator takes execTime as the SEB's duration, other tools take the difference. An "
        "unclosed SEB (endTime before startTime) is not a finding: it is the one in which the "
        "program ended.",
    ),
    Rule(
        "two-causes",
        Severity.MISLEAD,
        "A SEB is started by a message or depends on other SEBs, but not both.",
        "The simulator starts a SEB when its message has arrived or when the SEBs before it are "
        "done; with both it runs too early, or twice.",
    ),
    Rule(
        "floating",
        Severity.MISLEAD,
        "A SEB with neither starting message nor backward dependency has a recvTime.",
        "Nothing says when a floating SEB begins.",
    ),
    Rule(
        "starting-message",
        Severity.MISLEAD,
        "A SEB names its starting message by PE and number, or both are −1.",
        "A message from a PE that does not exist never arrives, and the SEB never runs.",
    ),
    Rule(
        "not-sent",
        Severity.MISLEAD,
        "The message that starts a SEB is among those that its source PE sent.",
        "A message that no PE sends never arrives, and the SEB and everything that depends on it "
        "never run. Sent messages are kept in a table of limited size, so in large logs a missing "
        "message may go unnoticed, but a sent one is never reported. Nothing is checked where "
        "timelines cannot be read to their end, nor in logs of version 0 with several worker "
        "threads per node, where the number may be that of a node.",
    ),
    Rule(
        "recv-before-send",
        Severity.STOP,
        "No message arrives before it is sent.",
        "The log library stops at such a message, by an assertion that default builds include.",
    ),
    Rule(
        "message-size",
        Severity.STOP,
        "The size of a message is not negative.",
        "The log library stops at such a message.",
    ),
    Rule(
        "send-outside",
        Severity.MISLEAD,
        "A message is sent between its SEB's startTime and endTime.",
        "The simulator sends it at its recorded offset from the SEB's start, and so before or "
        "after the SEB runs. In an unclosed SEB it is not a finding.",
    ),
    Rule(
        "message-target",
        Severity.STOP,
        "The node and the worker thread that a message is sent to exist, or dstNode is −1 (every "
        "node), −2 (a multicast) or −100 − N (all but node N).",
        "The simulator cannot deliver the message.",
    ),
    Rule(
        "message-number",
        Severity.ODD,
        "The numbers of the messages that a PE sends increase.",
        "A SEB refers to its starting message by this number; a duplicated number is ambiguous.",
    ),
    Rule(
        "marks",
        Severity.ODD,
        "Marks come in pairs, in order and inside the SEB.",
        "The simulator ignores them. A rewrite cannot tell which part of the SEB is bracketed, "
        "and dilates all of it.",
    ),
    Rule(
        "event-outside",
        Severity.ODD,
        "The rTime of a log event lies between 0 and the SEB's duration.",
        "Trace viewers show the log event in another SEB. In an unclosed SEB it is not a finding.",
    ),
    Rule(
        "dependency-order",
        Severity.STOP,
        "A backward dependency is the index of an earlier SEB of the timeline, and a forward one "
        "that of a later SEB.",
        "A SEB that waits for a later one, for itself or for one that does not exist never runs.",
    ),
    Rule(
        "dependencies-disagree",
        Severity.STOP,
        "SEB j is a forward dependency of SEB i exactly as often as i is a backward dependency of "
        "j.",
        "The simulator counts what a SEB waits for by one list and releases it by the other; "
        "where they differ, it runs too early or never. In timelines of more than a million SEBs "
        "the location is given to within a few SEBs.",
    ),
    Rule(
        "dependency-cycle",
        Severity.STOP,
        "No SEB depends on itself through others.",
        "None of the SEBs in the cycle ever runs. Cycles are looked for where `dependency-order` "
        "is violated, since there can be none elsewhere, and in timelines that fit into one "
        "block.",
    ),
    Rule(
        "param-file",
        Severity.MISLEAD,
        "A param file is a regular file that can be read.",
        "Without it the brackets of its PE have no params, and a rewrite stops there.",
    ),
    Rule(
        "param-line",
        Severity.ODD,
        "A line of a param file has an event, a SEB and parameters.",
        "A torn or malformed line is ignored, and its bracket is dilated.",
    ),
    Rule(
        "param-pe",
        Severity.ODD,
        "The PE of a param file exists in the log.",
        "The file is not used. The params may belong to other logs.",
    ),
    Rule(
        "param-seb",
        Severity.MISLEAD,
        "The SEB of a param record exists in its PE's timeline.",
        "The record is not used. With params of another emulation, brackets get the parameters of "
        "other work, and a rewrite predicts wrong durations.",
    ),
    Rule(
        "param-seqno",
        Severity.ODD,
        "The number at the start of a param line equals the seqno in it.",
        "Both are the SEB's index. A rewrite uses the first.",
    ),
    Rule(
        "param-records",
        Severity.ODD,
        "A SEB has as many param records as brackets.",
        "A rewrite pairs them in order. A SEB with one record and no marks is taken as bracketed "
        "from end to end; a bracket without a record, or a SEB where the numbers differ "
        "otherwise, is dilated. Nothing is checked if there are no param files.",
    ),
)

RULES = {rule.name: rule for rule in _ALL}
"""All rules by name: those of files first, then those of SEBs, then those of params."""

RULE_OF = {violation: violation.name.lower().replace("_", "-") for violation in Violation}
"""The rule of each violation that a kernel counts."""


def rule_of_name(name: str) -> Rule:
    """Return a rule by name; raise `UsageError` listing all names for an unknown one."""
    if name not in RULES:
        raise UsageError(f"unknown rule {name!r}; the rules are {', '.join(RULES)}")
    return RULES[name]


def rules_text() -> str:
    """Return one line for each rule, most severe first."""
    width = max(map(len, RULES))
    lines = []
    for severity in Severity:
        lines.append(f"{severity.value}:")
        lines += [
            f"  {rule.name:{width}}  {rule.says}"
            for rule in RULES.values()
            if rule.severity is severity
        ]
    return "\n".join(lines)
