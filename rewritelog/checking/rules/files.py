"""Rules of the summary, the timeline files and the counts in them, found by those who read them."""

from __future__ import annotations

from rewritelog.checking.rules.rule import Rule, Severity

UNREADABLE = Rule(
    "unreadable",
    Severity.STOP,
    "Every file of the log set exists, is a regular file, and can be read.",
    "A simulator opens the summary and all timeline files that the summary counts; without "
    "one of them, its PEs do not exist.",
)

MACHINE_HEADER = Rule(
    "machine-header",
    Severity.STOP,
    "A binary file begins with a 16-byte machine header: magic, version 0 or 1, short 2, int "
    "4 and double 8 bytes, integers and floats in one byte order.",
    "The header says how everything after it is to be read. No other header was ever written, "
    "so another one means that the file is something else or was overwritten.",
)

BYTE_ORDER = Rule(
    "byte-order",
    Severity.STOP,
    "All files of a log set have the same byte order.",
    "A reader takes the byte order of each file from its header, but one emulation writes all "
    "files in the same order: files of two log sets were mixed.",
)

HEADER_DIFFERS = Rule(
    "header-differs",
    Severity.ODD,
    "The machine headers of a log set are the same.",
    "One program wrote all files of a log set. The sizes that differ have no effect on how "
    "these files are read, but they hint that files of two log sets were mixed.",
)

SUMMARY = Rule(
    "summary",
    Severity.STOP,
    "The summary has 52, 56 or 60 bytes, and the numbers of nodes, worker threads and files "
    "are positive.",
    "Without these numbers the timeline of a PE cannot be located.",
)

PE_COUNT = Rule(
    "pe-count",
    Severity.STOP,
    "The number of PEs is x · y · z · numWth.",
    "A simulator creates that many processors; with any other number, timelines are missing "
    "or belong to the wrong PE. The check continues with the product.",
)

LOG_VERSION = Rule(
    "log-version",
    Severity.STOP,
    "The log version is 0 to 6, and the timelines can be read in it.",
    "The version is in the summary only, and the layout of every SEB depends on it. If the "
    "first timelines cannot be read in it, the other versions are tried, and the check "
    "continues in the one that fits. Versions 4 and 5 have the same layout and cannot be told "
    "apart.",
)

EXTRA_FILE = Rule(
    "extra-file",
    Severity.ODD,
    "There are no more timeline files than the summary says.",
    "The others are not read. They are often left over from an earlier emulation in the same "
    "folder; params may then be left over too.",
)

TIMELINE_COUNT = Rule(
    "timeline-count",
    Severity.STOP,
    "A timeline file has exactly the timelines of the PEs that belong in it.",
    "The PE of a timeline follows from its index alone, so one timeline too many or too few "
    "assigns timelines to the wrong PEs.",
)

OFFSET = Rule(
    "offset",
    Severity.STOP,
    "The timelines follow one another in order, without gaps, inside the file.",
    "A reader jumps to a timeline by its offset. A wrong offset gives a PE other bytes as its "
    "SEBs. In files above 2 GiB the 32-bit offsets wrap around, which is not a finding.",
)

COUNT = Rule(
    "count",
    Severity.STOP,
    "No count is negative, and what it counts fits into the timeline.",
    "A reader allocates memory for a count before it reads what is counted: a simulator took "
    "all 24 GB of a machine for a log cut off after 17 bytes. The timeline cannot be read "
    "beyond an invalid count.",
)

CUT_OFF = Rule(
    "cut-off",
    Severity.STOP,
    "A timeline ends after its last SEB, not within one.",
    "The emulation or a copy of its logs was cut short, or something was overwritten. The "
    "timeline cannot be read to its end.",
)

LEFT_OVER = Rule(
    "left-over",
    Severity.STOP,
    "There are no bytes between a timeline's last SEB and the next timeline or the end of the "
    "file.",
    "A simulator that reads the whole file in sequence takes them for the next timeline; and "
    "bytes that no count covers hint at a wrong count before them.",
)

EVENT_TYPE = Rule(
    "event-type",
    Severity.STOP,
    "A log event is of type 1, 2 or 3.",
    "The log library stops at any other type, since the layout of what follows depends on it. "
    "The timeline cannot be read beyond it.",
)
