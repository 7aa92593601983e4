"""Columns, lists and plain values as named arrays."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import numpy as np
from numpy.typing import NDArray

from rules.facts.column import Column, Int64s, Ragged
from rules.facts.unchanged_since import UnchangedSince

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Arrays = dict[str, NDArray[Any]]
Bases = Mapping[str, Column]  # by field: the column from which a stored one is the difference
NO_BASES: Final[Bases] = MappingProxyType({})


def put_columns(into: Arrays, name: str, value: DataclassInstance, bases: Bases = NO_BASES) -> None:
    """Add all columns and lists of a dataclass by the names of their fields."""
    for field in fields(value):
        match getattr(value, field.name):
            case Column() as column:
                put_column(into, f"{name}.{field.name}", column, bases.get(field.name))
            case Ragged() as lists:
                put_lists(into, f"{name}.{field.name}", lists)


def read_columns(  # noqa: PLR0913 - what `put_columns` was given
    arrays: Arrays,
    name: str,
    kind: type[DataclassInstance],
    rows: int,
    *,
    bases: Bases = NO_BASES,
    optional: Collection[str] = (),
) -> dict[str, Any]:
    """Read the columns and lists of a dataclass; `optional` ones are absent in older checkpoints."""
    columns: dict[str, Any] = {}
    for field, hint in get_type_hints(kind).items():
        stored = f"{name}.{field}"
        if hint is Ragged:
            columns[field] = read_lists(arrays, stored, rows)
        elif hint is Column and field in optional and stored not in arrays:
            columns[field] = Column.absent(rows)
        elif hint is Column:
            columns[field] = read_column(arrays, stored, rows, bases.get(field))
    return columns


def put_column(into: Arrays, name: str, column: Column, base: Column | None = None) -> None:
    """Add a column, as differences from the values of `base`."""
    into[name] = column.values if base is None else column.values - base.values
    into[f"{name}?"] = np.packbits(column.valid)


def read_column(arrays: Arrays, name: str, rows: int, base: Column | None = None) -> Column:
    """Read a column that `put_column` added."""
    values = ints_of(arrays[name], rows)
    valid = np.unpackbits(arrays[f"{name}?"], count=rows).astype(np.bool_)
    return Column(values if base is None else values + base.values, valid)


def put_lists(into: Arrays, name: str, lists: Ragged) -> None:
    """Add lists of integers."""
    into[name], into[f"{name}#"] = lists.values, lists.lengths
    into[f"{name}?"] = np.packbits(lists.valid)


def read_lists(arrays: Arrays, name: str, rows: int) -> Ragged:
    """Read lists that `put_lists` added."""
    lengths = ints_of(arrays[f"{name}#"], rows)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    valid = np.unpackbits(arrays[f"{name}?"], count=rows).astype(np.bool_)
    return Ragged(starts, ints_of(arrays[name], int(starts[-1])), valid)


def ints_of(array: NDArray[Any], rows: int | None = None) -> Int64s:
    """Return an array of integers, after checking its type and length."""
    if array.dtype != np.int64 or array.ndim != 1 or rows not in (None, len(array)):
        raise ValueError("a column of another type or length")
    return array


def text_of(value: object) -> NDArray[np.uint8]:
    """Encode plain values as JSON in an array of bytes."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def join_texts(texts: Mapping[str, str]) -> NDArray[np.uint8]:
    """Encode a mapping likewise, whose values are JSON already."""
    items = (f"{json.dumps(name)}: {text}" for name, text in texts.items())
    return np.frombuffer(f"{{{', '.join(items)}}}".encode(), np.uint8)


def read_text(array: NDArray[Any]) -> Any:
    """Decode values that `text_of` encoded."""
    return json.loads(array.tobytes())


def put_unchanged(
    into: Arrays, name: str, unchanged: UnchangedSince, base: Column | None = None
) -> None:
    """Add values and since when they are unchanged; the values as differences from those of `base`."""
    put_column(into, f"{name}.values", unchanged.values, base)
    put_column(into, f"{name}.since", unchanged.since_us)


def read_unchanged(
    arrays: Arrays, name: str, rows: int, base: Column | None = None
) -> UnchangedSince:
    """Read what `put_unchanged` added."""
    values = read_column(arrays, f"{name}.values", rows, base)
    return UnchangedSince(values, read_column(arrays, f"{name}.since", rows))
