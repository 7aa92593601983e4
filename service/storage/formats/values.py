"""Values of declared types as JSON has them, and back; rows of the database are read likewise.

A dataclass has its fields by name, without those that are None; those in `ROWS` are lists of their fields,
and are read either way.
Of what an older release did not store, an optional field is None, and another one has its default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NewType, TypeVar, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from rules.facts.broker_log import LogSource, Origin
from rules.facts.identity import TopicPartition
from rules.facts.incidents import Incident
from rules.facts.loss_memory import ReportedLoss
from rules.facts.member_memory import Rebalance
from rules.facts.members import Member
from rules.facts.transaction_memory import OutcomeCounts
from rules.facts.unseen_elections import NewTopic, UnseenElection
from rules.facts.writer_memory import Writer
from rules.verdict import Verdict

T = TypeVar("T")
Reader = Callable[[Any], Any]


def _names(kind: Any) -> tuple[str, ...]:
    return tuple(get_type_hints(kind))


# The stored fields in their order. New ones come last; within a row a partition is two items.
ROWS: Final[Mapping[type, Sequence[str]]] = {
    LogSource: ("name", "lines", "unparsed", "last_line_at", "unreadable", "controllers"),
    # The other fields are read anew after a restart, or stored apart.
    ReportedLoss: _names(ReportedLoss)[: _names(ReportedLoss).index("missing")],
    **{
        kind: _names(kind)
        for kind in (
            Incident,
            Member,
            NewTopic,
            Origin,
            OutcomeCounts,
            Rebalance,
            TopicPartition,
            UnseenElection,
            Writer,
        )
    },
}


# A checkpoint is written in every round, and most values are the same objects; a thousand episodes take 120 ms.
_TEXTS: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()


def remembered_text(value: Any) -> str:
    """Return a frozen value as JSON, from the round before if it is the same one."""
    if (text := _TEXTS.get(value)) is None:
        text = _TEXTS[value] = json.dumps(plain(value))
    return text


def plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, str | int) or value is None:
        return value
    if (names := _row_names(type(value))) is not None:
        return list(_items(value, names))
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case tuple() | frozenset():
            items = value if isinstance(value, tuple) else sorted(value, key=str)
            return [plain(item) for item in items]
        case _ if is_dataclass(value):
            by_name = {field.name: getattr(value, field.name) for field in fields(value)}
            return {name: plain(item) for name, item in by_name.items() if item is not None}
        case _:
            raise TypeError(f"a value of type {type(value).__name__} cannot be stored")


def read(kind: type[T], stored: Any) -> T:
    """Return the value of a type that `plain` returned as JSON, or the one in a row of the database.

    Raises:
        LookupError, TypeError, ValueError: the stored value is malformed.
    """
    any_kind: Any = kind
    value: T = reader_of(any_kind)(stored)
    return value


@cache
def reader_of(kind: Any) -> Reader:
    """Return the function that reads values of a type."""
    if isinstance(kind, NewType):
        kind = kind.__supertype__
    origin = get_origin(kind)
    if kind is Any or origin in (Mapping, Sequence):
        return lambda stored: stored
    readers = [reader_of(of) for of in get_args(kind) if of not in (NoneType, Ellipsis)]
    if origin in (Union, UnionType):  # the former where a NewType is optional
        [reader] = readers
        return lambda stored: None if stored is None else reader(stored)
    if origin is dict:
        key, item = readers
        return lambda stored: {key(name): item(value) for name, value in stored.items()}
    if origin is frozenset or Ellipsis in get_args(kind):
        return lambda stored: origin(map(readers[0], stored))
    if origin is tuple:
        return lambda stored: tuple(
            read_item(item) for read_item, item in zip(readers, stored, strict=True)
        )
    is_record = is_dataclass(kind) or hasattr(kind, "_fields")
    return _fields_reader(kind) if is_record else _SCALARS.get(kind, kind)


# Types whose values are not what their constructors take; the database has times as such.
_SCALARS: Final[Mapping[Any, Reader]] = {
    datetime: lambda stored: (
        stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)
    ),
    date: lambda stored: stored,
    Verdict: lambda stored: Verdict[stored.upper()],
}


def _row_names(kind: Any) -> Sequence[str] | None:
    return ROWS.get(kind) or getattr(kind, "_fields", None)


def _items(value: Any, names: Iterable[str]) -> Iterable[Any]:
    for name in names:
        item = getattr(value, name)
        if isinstance(item, TopicPartition):
            yield from (item.topic, item.partition)
        else:
            yield plain(item)


def _fields_reader(kind: Any) -> Reader:
    """Return the reader of a dataclass or a named tuple."""
    hints = get_type_hints(kind)
    readers = {name: reader_of(hint) for name, hint in hints.items()}
    absent = {name: None for name, hint in hints.items() if NoneType in get_args(hint)}

    def read_fields(stored: Any) -> Any:
        values = {name: readers[name](stored[name]) for name in readers if name in stored}
        return kind(**{**absent, **values})

    names = _row_names(kind)
    if names is None:
        return read_fields
    pairs = [place for place, name in enumerate(names) if hints[name] is TopicPartition]

    def read_row(stored: Any) -> Any:
        if isinstance(stored, Mapping):  # of a release in which it was no row
            return read_fields(stored)
        row = list(stored)
        for place in pairs:
            row[place : place + 2] = [row[place : place + 2]]
        if len(row) > len(names):
            raise ValueError(f"a stored {kind.__name__} has more than its fields")
        return read_fields(dict(zip(names, row, strict=False)))

    return read_row
