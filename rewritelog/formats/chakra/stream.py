"""Files of traces, plain or gzip, read in pieces."""

from __future__ import annotations

import zlib

import numpy as np

from rewritelog.arrays import Bytes
from rewritelog.errors import DamagedLogError, Location
from rewritelog.formats.files import InputFile
from rewritelog.formats.traces import Unit

GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
GZIP_WINDOW = 16 + zlib.MAX_WBITS


class TraceStream:
    """The unpacked bytes of an open file, in order."""

    def __init__(self, file: InputFile, unit: Unit) -> None:
        """Begin at the start of a file; raise `DamagedLogError` if its size has changed."""
        if file.size_bytes != unit.size_bytes:
            sizes = f"from {unit.size_bytes} to {file.size_bytes} bytes"
            problem = f"the file's size changed {sizes} during the run"
            raise DamagedLogError(Location(unit.path), problem)
        self._file, self._unit, self._at = file, unit, 0
        self._unpacker = zlib.decompressobj(GZIP_WINDOW) if unit.is_packed else None
        self._waiting = b""

    def read(self, size_bytes: int) -> Bytes:
        """Return the next bytes, fewer only at the end of the file."""
        if self._unpacker is None:
            return self._raw(size_bytes)
        pieces, left = [], size_bytes
        while left and (piece := self._unpacked(left)):
            pieces.append(np.frombuffer(piece, dtype=np.uint8))
            left -= len(piece)
        return np.concatenate([np.zeros(0, np.uint8), *pieces])

    def _raw(self, size_bytes: int) -> Bytes:
        piece = self._file.read(self._at, min(size_bytes, self._unit.size_bytes - self._at))
        self._at += len(piece)
        return piece

    def _unpacked(self, most: int) -> bytes:
        """Return some unpacked bytes, none at the end; members of a file follow each other."""
        while True:
            if self._unpacker.eof:  # type: ignore[union-attr]
                self._waiting = self._unpacker.unused_data  # type: ignore[union-attr]
                if not self._waiting and self._at == self._unit.size_bytes:
                    return b""
                self._unpacker = zlib.decompressobj(GZIP_WINDOW)
            packed = self._waiting or self._raw(_PIECE_BYTES).tobytes()
            try:
                piece = self._unpacker.decompress(packed, most)  # type: ignore[union-attr]
            except zlib.error as error:
                raise self._damage(f"damaged gzip data ({error})") from error
            self._waiting = self._unpacker.unconsumed_tail  # type: ignore[union-attr]
            if piece:
                return piece
            if not packed and not self._unpacker.eof:  # type: ignore[union-attr]
                raise self._damage("the gzip data end too early")

    def _damage(self, problem: str) -> DamagedLogError:
        return DamagedLogError(Location(self._unit.path, self._at), problem)
