"""The param records of a block, and the param files that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rewritelog.checking.findings import Finding
from rewritelog.errors import Location, RewriteLogError
from rewritelog.formats.bgtrace.blocks import LoadedBlock
from rewritelog.formats.bgtrace.params import ParamFolder, ParamNotes, ParamRecords, read_params


@dataclass(frozen=True)
class BlockParams:
    """The params of a block, without those of files that cannot be read."""

    source: ParamFolder
    records: ParamRecords
    notes: ParamNotes
    unreadable: list[Finding] = field(default_factory=list)


def params_of(source: ParamFolder, loaded: LoadedBlock) -> BlockParams:
    """Read the params of a block, without the files that cannot be read."""
    try:
        return BlockParams(source, *read_params(source, loaded, strict=False))
    except RewriteLogError:
        readable, unreadable = set(), []
        for pe in sorted(source.pes.intersection(loaded.pes.tolist())):
            try:
                read_params(replace(source, pes=frozenset([pe])), loaded, strict=False)
                readable.add(pe)
            except RewriteLogError as error:
                path = source.path(pe)
                problem = str(error).removeprefix(f"{path}: ")
                unreadable.append(Finding(Location(path, pe=pe), problem))
        rest = replace(source, pes=frozenset(readable))
        return BlockParams(source, *read_params(rest, loaded, strict=False), unreadable)
