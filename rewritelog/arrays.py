"""Array types, numbering and pairing of values, exact sums, hashes, and data frames."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from rewritelog.errors import RewriteLogError, UsageError, UsageTypeError
from rewritelog.stopping import in_steps
from rewritelog.text import count_text

if TYPE_CHECKING:
    import pandas as pd

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]
"""Hashes and other 64-bit words."""

Table: TypeAlias = NDArray[Any]
"""A structured array: a row for each record, a named field for each column."""

Columns: TypeAlias = Literal["params", "counters"]
"""What the columns of a table are: the parameters or the counters (`PAPI`) of timing lines."""


def check_columns(columns: object) -> None:
    """Raise `UsageError` unless the value is one of `Columns`."""
    if not isinstance(columns, str) or columns not in ("params", "counters"):
        raise UsageError(f"columns must be 'params' or 'counters', not {columns!r}")


Key = TypeVar("Key", bound=Hashable)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the increment of splitmix64."""

MOST_SECONDS = 1e100
"""The longest time of a call, as in `tracebigsim`: its square, and sums of many, are finite."""

MOST_SORTED = 64
"""Up to this many values are sorted in less time than they are partitioned."""


def median(values: Floats) -> float:
    """Return the median, where NaN counts as largest; `numpy.median` takes ten times as long."""
    middle = len(values) // 2
    if len(values) <= MOST_SORTED:
        ascending = values.copy()
        ascending.sort()
    else:
        ascending = np.partition(values, (middle - 1, middle))
    if len(values) % 2:
        return float(ascending[middle])
    return (float(ascending[middle - 1]) + float(ascending[middle])) / 2


def column_range(rows: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and the highest value of each column; both are NaN if it contains NaN.

    There must be a row. Column by column takes a fraction of the time of `rows.min(axis=0)`.
    """
    lowest = np.array([column.min() for column in rows.T])
    return lowest, np.array([column.max() for column in rows.T])


def rows_by_key(keys: NDArray[np.signedinteger[Any]], chosen: Flags) -> list[Ints]:
    """Return the indices of the chosen rows, grouped by key; groups are in order of first rows."""
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return []
    rows = rows[np.argsort(keys[rows], kind="stable")]
    groups = np.split(rows, np.flatnonzero(np.diff(keys[rows])) + 1)
    return sorted(groups, key=lambda group: int(group[0]))


def spans(firsts: Any, counts: Any) -> Ints:
    """Return, in one array, `counts[k]` consecutive indices from `firsts[k]` on for each k."""
    indices = np.repeat(firsts - (np.cumsum(counts) - counts), counts).astype(np.int64)
    indices += np.arange(len(indices))
    return indices


def numbered(values: Iterable[Key]) -> tuple[tuple[Key, ...], Ints]:
    """Return the distinct values in order of first appearance, and each value's index in them."""
    known: dict[Key, int] = {}
    numbers = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)
    return tuple(known), numbers


def joined_texts(parts: Iterable[tuple[Sequence[Key], Ints]]) -> tuple[tuple[Key, ...], Ints]:
    """Return the distinct texts of several parts, and the index in them of each row's text."""
    known: dict[Key, int] = {}
    numbers = [np.zeros(0, dtype=np.int64)]
    for texts, number in parts:
        renumbered = [known.setdefault(text, len(known)) for text in texts]
        numbers.append(np.array(renumbered, dtype=np.int64)[number])
    return tuple(known), np.concatenate(numbers)


class Texts(Struct, frozen=True):
    """A column of texts, which holds each distinct text once."""

    distinct: tuple[str, ...]
    """Distinct texts; in a part of a file, some may be in no row."""
    number: Ints
    """The index in `distinct` of each row's text."""

    @classmethod
    def joined(cls, parts: Iterable[Texts]) -> Texts:
        """Return the rows of several columns, one after the other."""
        return cls(*joined_texts((part.distinct, part.number) for part in parts))

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, rows: Any) -> Any:
        """Return the text of a row, or some rows as a column."""
        number = self.number[rows]
        if not np.ndim(number):
            return self.distinct[number]
        is_used = np.bincount(number, minlength=1 + len(self.distinct)) > 0
        distinct = tuple(self.distinct[which] for which in np.flatnonzero(is_used).tolist())
        return Texts(distinct, (np.cumsum(is_used) - 1)[number])

    def tolist(self) -> list[str]:
        """Return the text of each row."""
        return [self.distinct[number] for number in self.number.tolist()]


def pair_keys(high: Ints, low: Ints) -> Ints:
    """Return a key for each pair of 32-bit integers; keys sort by `high`, then by `low`."""
    return (high.astype(np.int64) << 32) + low


def occurrences_before(numbers: Ints) -> Ints:
    """Return for each number how often it occurs earlier in the array."""
    order = np.argsort(numbers, kind="stable")
    ordered, occurrences = numbers[order], np.empty_like(order)
    occurrences[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
    return occurrences


def paired(a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """Return the indices in `a` and `b` of equal numbers, the n-th in `a` with the n-th in `b`."""
    step = 1 + max(len(a), len(b))
    keys = a * step + occurrences_before(a), b * step + occurrences_before(b)
    _, of_a, of_b = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return of_a, of_b


def to_table(table: ArrayLike, columns: int | None, what: str = "X") -> Floats:
    """Return an array, lists or a DataFrame as a table of floats, shape (rows, columns).

    If the columns of a DataFrame are named exactly p1, p2, …, they are taken in that order. Raise
    `UsageError` for other numbers of columns or dimensions: one might be a row or a column.
    """
    names = column_names(table, what) if hasattr(table, "columns") else []
    if names:
        ordered = [f"p{number}" for number in range(1, len(names) + 1)]
        if set(names) == set(ordered):
            table = table[ordered]  # type: ignore[call-overload,index]
    numbers = to_floats(table, what)
    if numbers.ndim != 2:
        raise UsageError(
            f"{what} must have two dimensions, a row for each sample and a column for each "
            f"parameter, as in [[8, 1], [16, 1]]; it has {numbers.ndim}"
        )
    if columns is not None and numbers.shape[1] != columns:
        raise UsageError(
            f"{what} must have {count_text(columns, 'column')}, not {numbers.shape[1]}"
        )
    return numbers


def column_names(table: Any, what: str) -> list[Any]:
    """Return the names of the columns of a DataFrame, of pandas or another library.

    Raise `UsageTypeError` for a pyarrow table, whose `columns` are the values, and for a lazy
    polars frame, which is not computed yet.
    """
    names = list(table.columns) if hasattr(table, "__len__") else None
    if names is None or not all(isinstance(name, Hashable) for name in names):
        raise UsageTypeError(f"{what} cannot be a {type(table).__name__}: make it a DataFrame")
    return names


def to_column(values: ArrayLike, rows: int, what: str = "y") -> Floats:
    """Return values as floats of shape (rows,); raise `UsageError` for another shape."""
    column = to_floats(values, what)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (rows,):
        raise UsageError(f"{what} must have {rows} values, but has shape {column.shape}")
    return column


def to_seconds(values: ArrayLike, rows: int, what: str = "y") -> Floats:
    """Return seconds as floats of shape (rows,); raise `UsageError` for one that no call takes."""
    seconds = to_column(values, rows, what)
    odd = seconds[(seconds < 0) | ((seconds > MOST_SECONDS) & (seconds < math.inf))]
    if len(odd):
        raise UsageError(f"{what} must hold seconds, from 0 to {MOST_SECONDS}, not {odd[0]:g}")
    return seconds


def to_floats(values: ArrayLike, what: str) -> Floats:
    """Return values as an array of floats, NaN for masked ones.

    Raise `UsageTypeError` if any is not a number, and for a sparse matrix.
    """
    if hasattr(values, "toarray"):
        raise UsageTypeError(f"{what} is sparse, which is not supported: make it dense")
    try:
        if isinstance(values, np.ma.MaskedArray) and values.dtype.kind not in "UScmM":
            values = np.ma.filled(values.astype(np.float64), np.nan)
        raw = np.asarray(values)
        known = values if raw.dtype.kind == "O" else raw  # pandas knows what its NA is
        floats = raw if raw.dtype.kind in "cmM" else np.asarray(known, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageTypeError(f"{what} must hold numbers: {error}") from error
    if raw.dtype.kind in "UScmM":
        kind = {"U": "str", "S": "bytes"}.get(raw.dtype.kind, raw.dtype.name)
        raise UsageTypeError(f"{what} must hold numbers, not {kind}")
    kinds = set(map(type, raw.flat)) if raw.dtype.kind == "O" else ()
    if any(issubclass(kind, str | bytes) for kind in kinds):
        raise UsageTypeError(f"{what} must hold numbers, not texts of numbers")
    return floats


class ExactSum(Struct, frozen=True):
    """A sum of non-negative floats without rounding, independent of their order.

    The parts are an expansion as in J. Shewchuk, "Adaptive precision floating-point arithmetic and
    fast robust geometric predicates" (1997). A sum too large for a float is infinite.
    """

    parts: tuple[float, ...] = ()

    def plus(self, values: Iterable[float]) -> ExactSum:
        """Return the sum with more values added."""
        items = [*self.parts, *values]
        parts = []
        try:
            while (rest := math.fsum(items)) != 0.0:
                if not math.isfinite(rest):
                    return _TOO_LARGE
                parts.append(rest)
                items.append(-rest)
        except OverflowError:
            return _TOO_LARGE
        return ExactSum(tuple(parts))

    def __add__(self, other: ExactSum) -> ExactSum:
        return self.plus(other.parts)

    def __float__(self) -> float:
        return math.fsum(self.parts)


ZERO_SUM = ExactSum()
_TOO_LARGE = ExactSum((math.inf,))


def rounded_sum(values: Iterable[float]) -> float:
    """Return a sum of non-negative numbers, rounded once; infinite if it is too large."""
    return float(ZERO_SUM.plus(values))


NamedColumns = dict[str, Any]
"""Arrays or lists of equal length, by column name."""

_SECONDS = {"start", "end"}

_CACHED_ROWS = 1 << 12
"""All fields of this many rows are copied before those of the next, while the cache has them."""


class Rows(np.ndarray[Any, np.dtype[Any]]):
    """A structured array that can become a data frame; its fields are plain arrays."""

    def __getitem__(self, key: Any) -> Any:
        """Return some rows, or one field of all rows as a plain array."""
        rows = super().__getitem__(key)
        if isinstance(rows, Rows) and rows.dtype.names is None:
            return rows.view(np.ndarray)
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame, with the columns of `rewritelog export`.

        Raise `RewriteLogError` if pandas is not installed.
        """
        return to_frame(self)


def new_frame(columns: NamedColumns) -> pd.DataFrame:
    """Return columns as a data frame; raise `RewriteLogError` if pandas is not installed."""
    try:
        import pandas as pd  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise RewriteLogError("data frames need pandas: pip install pandas") from error
    return pd.DataFrame(columns)


def to_frame(table: Table) -> Any:
    """Return a table of `LogSet` as a pandas DataFrame, with the columns of `rewritelog export`.

    Names become `str`, array fields one column for each element, such as `obj_id_0` to `obj_id_3`;
    units are in the names of the columns. Raise `UsageTypeError` for anything but such a table, and
    `RewriteLogError` if pandas is not installed.

    >>> logs = rewritelog.open_logs("sample_logs/cells")
    >>> list(rewritelog.to_frame(logs.log_events([0])).columns)
    ['pe', 'seb', 'log_event', 'offset_bytes', 'type', 'r_time_s', 'index', 'text']
    """
    if getattr(getattr(table, "dtype", None), "names", None) is None:
        raise UsageTypeError(f"expected a table of a log set, not {type(table).__name__}")
    return new_frame(columns_of(np.ravel(np.asarray(table))))


def with_text(rows: Table) -> Rows:
    """Return the rows with `str` in place of bytes, each up to its first NUL."""
    kinds: list[Any] = []
    texts: dict[str, Any] = {}
    steps = list(in_steps(len(rows), _CACHED_ROWS))
    for name in rows.dtype.names or ():
        kind = rows.dtype[name]
        if kind.kind == "S":
            names, which = numbered(
                name_bytes for step in steps for name_bytes in rows[name][step].tolist()
            )
            texts[name] = np.array(list(map(_text, names)), dtype=np.str_)[which]
            kind = texts[name].dtype
        elif kind.kind == "O":
            texts[name] = [_text(name_bytes) for name_bytes in rows[name].tolist()]
        kinds.append((name, kind))
    table = np.empty(len(rows), dtype=kinds)
    for step in steps:
        for name, _ in kinds:
            table[name][step] = texts.get(name, rows[name])[step]
    return table.view(Rows)


def columns_of(rows: Table) -> NamedColumns:
    """Return the columns of structured rows: one for each array element, bytes as text."""
    columns: NamedColumns = {}
    for name in rows.dtype.names or ():
        kind, values = rows.dtype[name], rows[name]
        if kind.subdtype is not None:
            columns |= {f"{name}_{k}": values[:, k] for k in range(kind.shape[0])}
        elif kind.kind in "SOU":
            columns[name] = [_text(value) for value in values.tolist()]
        else:
            columns[_with_unit(name, kind)] = values
    return columns


def _with_unit(name: str, kind: np.dtype[Any]) -> str:
    if name.endswith("_time") or name in _SECONDS:
        return f"{name}_s"
    if name == "offset" or (name == "size" and kind.kind == "i"):
        return f"{name}_bytes"
    return name


def _text(value: bytes | str | None) -> str | None:
    """Return bytes as text up to their first NUL, and text as it is."""
    if isinstance(value, bytes):
        return value.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")
    return value


def mix(keys: Keys) -> Keys:
    """Return the keys with their bits mixed: a bijection that is the same on every machine.

    It is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014, with the constants of Vigna's splitmix64), modulo 2^64.
    """
    mixed: Keys = keys ^ (keys >> np.uint64(30))
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def sequence(count: int, start: int = 0) -> Keys:
    """Return the first `count` numbers of the splitmix64 sequence with this seed, all different."""
    return mix(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN + np.uint64(start))


def random_keys(label: str, count: int, seed: int) -> Keys:
    """Return a pseudo-random number for each of `count` rows, all different.

    They are the splitmix64 sequence that starts at a digest of seed and label, the same on every
    machine. The rows with the smallest numbers are a random sample without replacement.
    """
    digest = hashlib.blake2b(f"{seed} {label}".encode(errors="surrogatepass"), digest_size=8)
    return sequence(count, int.from_bytes(digest.digest(), "little"))


def random_ranks(label: str, count: int, seed: int) -> Ints:
    """Return the rank of each of `count` rows in a random order, the same on every machine.

    It depends on nothing but seed, label and count.
    """
    ranks = np.empty(count, dtype=np.int64)
    ranks[np.argsort(random_keys(label, count, seed), kind="stable")] = np.arange(count)
    return ranks
