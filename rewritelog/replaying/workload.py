"""The input of replays: all SEBs and messages of a log set as arrays, with their links."""

from __future__ import annotations

from dataclasses import dataclass

from rewritelog.replaying.kernels.interface import Numbers, Program, RegionColumns
from rewritelog.text import count_text


@dataclass(frozen=True)
class LinkFaults:
    """Irregularities in the links between SEBs and their starting messages."""

    not_sent: Numbers
    """The SEBs whose starting message no SEB sends."""
    not_sent_ids: Numbers
    """PE and number of these messages, shape (SEBs, 2)."""
    misaddressed: int = 0
    """The number of SEBs started by a message that is not addressed to their PE."""
    misaddressed_example: tuple[int, int] | None = None
    """PE and SEB of the first of them."""
    repeated_numbers: int = 0
    """The number of messages with a number that their PE had used before; the first one counts."""
    negative_transit: int = 0
    """The number of messages with a transit time that is negative or NaN, which counts as 0."""

    def warnings(self, *, recorded: bool) -> list[str]:
        """Return the warnings, for a network with `recorded` transit times or another one."""
        said = []
        if self.misaddressed and self.misaddressed_example is not None:
            pe, seb = self.misaddressed_example
            said.append(
                f"{count_text(self.misaddressed, 'SEB')} started by a message that is not "
                f"addressed to their PE (the first is SEB {seb} of PE {pe})"
            )
        if self.repeated_numbers:
            said.append(
                f"{count_text(self.repeated_numbers, 'message')} with the number of an earlier one "
                "of the same PE; the first message of each number is used"
            )
        if self.negative_transit and recorded:
            said.append(
                f"{count_text(self.negative_transit, 'message')} with an invalid transit time "
                "(received before sent), delivered immediately by --network log"
            )
        return said


@dataclass(frozen=True)
class Workload:
    """A log set that has been loaded for any number of replays."""

    program: Program
    names: tuple[str, ...]
    """The distinct names of SEBs."""
    events: tuple[str, ...]
    """The events of the middle regions."""
    regions: RegionColumns
    """The middle regions, in the order of the SEBs."""
    pes: int
    workers: int
    """The number of worker threads per node."""
    recorded_s: float
    """The latest end of a SEB in the log."""
    faults: LinkFaults

    @property
    def sebs(self) -> int:
        """The number of SEBs."""
        return len(self.program.sebs.pe)

    @property
    def messages(self) -> int:
        """The number of messages."""
        return len(self.program.messages.transit_s)

    def index_of(self, seb: int) -> tuple[int, int]:
        """Return the PE of a SEB, and the SEB's index in the timeline."""
        pe = int(self.program.sebs.pe[seb])
        return pe, seb - int(self.program.sebs.first_of_pe[pe])

    def name_of(self, seb: int) -> str:
        """Return the name of a SEB."""
        return self.names[int(self.program.sebs.name[seb])]
