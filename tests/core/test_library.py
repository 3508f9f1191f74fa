"""Calls of the compiled core are checked against its header."""

from pathlib import Path

import numpy as np
import pytest

import tracebigsim.core
from rewritelog.core import core
from tracebigsim.core import Library
from tracebigsim.core import core as scanning
from tracebigsim.lines import _PROBLEMS
from tracebigsim.writing import MAX_LINE_BYTES, MAX_PARAMS

OFFSETS = np.zeros(1, dtype=np.int64)
BYTES = np.arange(8, dtype=np.uint8)


def test_a_function_takes_the_arrays_that_the_header_declares() -> None:
    column = np.zeros(8, dtype=np.uint8)
    core.gather(BYTES, OFFSETS, 0, 8, 8, True, column)
    assert column.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("buffer", "offsets", "column", "message"),
    [
        (BYTES.astype(np.int32), OFFSETS, np.zeros(8, np.uint8), "buf is an array of int32"),
        (BYTES, OFFSETS.astype(np.int32), np.zeros(8, np.uint8), "at is an array of int32"),
        (BYTES[::2], OFFSETS, np.zeros(8, np.uint8), "buf has to be contiguous"),
    ],
)
def test_other_arrays_are_refused(
    buffer: np.ndarray, offsets: np.ndarray, column: np.ndarray, message: str
) -> None:
    with pytest.raises(TypeError, match=f"gather: {message}"):
        core.gather(buffer, offsets, 0, 8, 8, False, column)


def test_an_array_that_is_written_has_to_be_writable() -> None:
    column = np.zeros(8, dtype=np.uint8)
    column.flags.writeable = False
    with pytest.raises(TypeError, match="column has to be contiguous and writable"):
        core.gather(BYTES, OFFSETS, 0, 8, 8, False, column)


def test_the_number_of_arguments_is_that_of_the_header_without_lengths() -> None:
    with pytest.raises(TypeError, match="gather takes 7 arguments, not 1"):
        core.gather(BYTES)


def test_what_the_header_does_not_declare_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"core\.h declares no 'gathers'"):
        core.gathers  # noqa: B018


def test_the_scan_has_the_limits_of_the_writer_and_a_message_for_each_fault() -> None:
    assert (scanning.MAX_PARAMS, scanning.MAX_LINE_BYTES) == (MAX_PARAMS, MAX_LINE_BYTES)
    assert list(_PROBLEMS) == list(range(scanning.FINE + 1, scanning.NO_TIME_NO_SEB + 1))


def test_a_core_that_is_not_built_says_so(tmp_path: Path) -> None:
    (tmp_path / "core.h").write_text("CORE void nothing(void);")
    with pytest.raises(ImportError, match=r"the compiled core is missing.*reinstall"):
        Library(tmp_path)


def test_an_installation_without_its_files_says_so(tmp_path: Path) -> None:
    """A zip file has none that can be read, and the error named only one of them."""
    (tmp_path / "packed.zip").touch()
    with pytest.raises(ImportError, match=r"packed\.zip/core/core\.h.*reinstall"):
        Library(tmp_path / "packed.zip" / "core")


def test_a_core_built_from_another_header_is_refused(tmp_path: Path) -> None:
    """Its functions took other arguments: calls ended the interpreter."""
    built = Path(tracebigsim.core.__file__).parent
    (tmp_path / "libcore.so").symlink_to(built / "libcore.so")
    header = (built / "core.h").read_text()
    (tmp_path / "core.h").write_text(header)
    Library(tmp_path)
    (tmp_path / "core.h").write_text(header + "/* a newer one */")
    with pytest.raises(ImportError, match=r"older than its header: .*build\.py"):
        Library(tmp_path)


def test_arrays_that_are_only_read_may_be_read_only_and_any_may_be_empty() -> None:
    source = np.arange(8, dtype=np.uint8)
    source.flags.writeable = False
    column = np.zeros(8, dtype=np.uint8)
    core.gather(source, OFFSETS, 0, 8, 8, False, column)
    core.gather(source, OFFSETS[:0], 0, 8, 8, False, column[:0])
    assert column.tolist() == source.tolist()
    with pytest.raises(TypeError, match="column has to be contiguous and writable"):
        core.gather(source, OFFSETS[:0], 0, 8, 8, False, source[:0])
