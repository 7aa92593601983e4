"""Columns with a validity mask: how facts about thousands of partitions are kept.

An absent value is never a sentinel: `values` holds 0 there and `valid` is False. Arithmetic
between columns is valid only where both sides are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]


def marked(rows: int, positions: Iterable[int]) -> Bools:
    """Return a mask, shape (rows,), that is True at `positions`."""
    mask = np.zeros(rows, np.bool_)
    mask[list(positions)] = True
    return mask


def left_out(rows: int, places: Int64s) -> Bools:
    """Return a mask, shape (rows,), that is False at `places`, of which -1 is none."""
    mask = np.ones(rows, np.bool_)
    mask[places[places >= 0]] = False
    return mask


def find_codes(codes: Int64s, wanted: Int64s, is_wanted: Bools) -> Int64s:
    """Return the position of each marked wanted code among ascending codes, at least one; -1 where none."""
    places = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where(is_wanted & (codes[places] == wanted), places, -1).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One int64 per row, shape (rows,), with a mask that is False where nothing is known."""

    values: Int64s
    valid: Bools

    @classmethod
    def absent(cls, rows: int) -> Column:
        """Return a column of `rows` rows in which nothing is known."""
        return cls(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))

    @classmethod
    def of(cls, items: Iterable[int | None]) -> Column:
        """Build a column from Python values; `None` is absent."""
        listed = list(items)
        values = np.array([0 if item is None else item for item in listed], np.int64)
        return cls(values, np.array([item is not None for item in listed], np.bool_))

    @classmethod
    def known(cls, values: Int64s) -> Column:
        """Build a column in which every row is known."""
        return cls(values, np.ones(len(values), np.bool_))

    def __len__(self) -> int:
        return len(self.values)

    def __sub__(self, other: Column) -> Column:
        valid = self.valid & other.valid
        return Column(np.where(valid, self.values - other.values, 0), valid)

    def __getitem__(self, row: int) -> int | None:
        return int(self.values[row]) if self.valid[row] else None

    def take(self, rows: Int64s) -> Column:
        """Return the values at `rows`, in that order; a negative row number is absent."""
        if not len(self):
            return Column.absent(len(rows))
        inside = rows >= 0
        safe = np.where(inside, rows, 0)
        valid = self.valid[safe] & inside
        return Column(np.where(valid, self.values[safe], 0), valid)

    def joined(self, other: Column) -> Column:
        """Return these rows, then those of `other`."""
        return Column(
            np.concatenate([self.values, other.values]), np.concatenate([self.valid, other.valid])
        )

    def padded(self, rows: int) -> Column:
        """Return `rows` rows, of which nothing is known behind the ones that are here."""
        missing = rows - len(self)
        return self.joined(Column.absent(missing)) if missing else self

    def where(self, mask: Bools) -> Column:
        """Keep the values where `mask` is True; the others become absent."""
        valid = self.valid & mask
        return Column(np.where(valid, self.values, 0), valid)

    def changed(self, change: Callable[[Int64s], Int64s]) -> Column:
        """Return changed values; what is absent stays absent."""
        return Column(np.where(self.valid, change(self.values), 0), self.valid)

    def to_list(self) -> list[int | None]:
        """Return Python values, `None` where absent."""
        pairs = zip(self.values.tolist(), self.valid.tolist(), strict=True)
        return [value if valid else None for value, valid in pairs]


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """A list of integers per row, flat: row i is `values[starts[i]:starts[i + 1]]`.

    `valid` is False where the list itself is unknown, which differs from an empty list.
    """

    starts: Int64s
    values: Int64s
    valid: Bools

    @classmethod
    def of(cls, rows: Sequence[Sequence[int] | None]) -> Ragged:
        """Build from Python sequences; `None` is an unknown list."""
        lengths = np.array([len(row or ()) for row in rows], np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        flat = np.array([item for row in rows if row for item in row], np.int64)
        return cls(starts, flat, np.array([row is not None for row in rows], np.bool_))

    def __len__(self) -> int:
        return len(self.valid)

    def __getitem__(self, row: int) -> tuple[int, ...] | None:
        if not self.valid[row]:
            return None
        return tuple(self.values[self.starts[row] : self.starts[row + 1]].tolist())

    @property
    def lengths(self) -> Int64s:
        """Number of items per row, shape (rows,)."""
        return np.diff(self.starts)

    @property
    def row_of_value(self) -> Int64s:
        """Row to which each flat value belongs, shape (values,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.lengths)

    def take(self, rows: Int64s) -> Ragged:
        """Return the lists at `rows`, in that order; a negative row number is unknown."""
        if not len(self):
            return Ragged.of([None] * len(rows))
        inside = rows >= 0
        safe = np.where(inside, rows, 0)
        lengths = np.where(inside, self.starts[safe + 1] - self.starts[safe], 0)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        place = np.repeat(self.starts[safe] - starts[:-1], lengths) + np.arange(starts[-1])
        return Ragged(starts, self.values[place], self.valid[safe] & inside)

    def holds(self, items: Column) -> Bools:
        """Mark the rows whose list contains the row's item."""
        owner = self.row_of_value
        mask = np.zeros(len(self), np.bool_)
        mask[owner[items.valid[owner] & (self.values == items.values[owner])]] = True
        return mask

    def joined(self, other: Ragged) -> Ragged:
        """Return these rows, then those of `other`."""
        return Ragged(
            np.concatenate([self.starts, other.starts[1:] + self.starts[-1]]),
            np.concatenate([self.values, other.values]),
            np.concatenate([self.valid, other.valid]),
        )

    def to_list(self) -> list[list[int] | None]:
        """Return Python lists, `None` where unknown."""
        flat = self.values.tolist()
        bounds = self.starts.tolist()
        return [
            flat[bounds[row] : bounds[row + 1]] if valid else None
            for row, valid in enumerate(self.valid.tolist())
        ]


T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Base of values whose columns have the same rows; fields of other kinds are of no row."""

    def take(self, rows: Int64s) -> Self:
        """Return the rows at `rows`, in that order; where columns are masked, a negative row is absent."""
        return take_columns(self, rows)

    def joined(self, other: Self) -> Self:
        """Return these rows, then those of `other`; what is of no row is as here."""
        return join_columns(self, other)


def replace_fields(value: T, **news: Any) -> T:
    """Return a dataclass instance with other field values, as `dataclasses.replace` does in twice the time.

    For values of which a thousand may change in one round; mypy does not check the names of fields.

    Raises:
        TypeError: there is no such field.
    """
    names, values_of = _parts(cast("Hashable", type(value)))
    return type(value)(**(dict(zip(names, values_of(value), strict=True)) | news))


@cache
def _parts(kind: Hashable) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(field.name for field in fields(cast("Any", kind)))
    return names, attrgetter(*names)


def take_columns(value: T, rows: Int64s) -> T:
    """Return a dataclass instance with some rows of its columns."""
    return replace_fields(
        value,
        **{
            name: column[rows] if isinstance(column, np.ndarray) else column.take(rows)
            for name, column in _columns_of(value).items()
        },
    )


def join_columns(value: T, other: T) -> T:
    """Return a dataclass instance with the rows of its columns, then those of another one."""
    others = _columns_of(other)
    return replace_fields(
        value,
        **{
            name: np.concatenate([column, others[name]])
            if isinstance(column, np.ndarray)
            else column.joined(others[name])
            for name, column in _columns_of(value).items()
        },
    )


def _columns_of(value: object) -> dict[str, Any]:
    named = ((field.name, getattr(value, field.name)) for field in fields(cast("Any", value)))
    return {
        name: column
        for name, column in named
        if isinstance(column, np.ndarray | Column | Ragged | Table)
    }
