"""Saves rows so that one which the database rejects for good does not hold up the others.

A text that the encoding of the database lacks, a number out of range, or a value beyond the limit of an index
is rejected however often it is sent. Such a row is left out and reported. An error that another try may
mend, or that is no row's (a missing right or column), is raised, and nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, NamedTuple, TypeVar

from sqlalchemy import Connection

from rules.errors import StoreError
from service.storage.database.translate import translate_errors

# Statements that are tried one by one, about half a second; parts that are left then are not halved any more.
MOST_TRIES: Final = 500
T = TypeVar("T")


class RowKind(StrEnum):
    """What a rejected row would have been; also the values of a metric's label."""

    FINDING = "finding"
    ALERT = "alert"
    ALERT_STEP = "alert_step"
    ALERT_GROUP = "alert_group"
    NOTIFICATION = "notification"
    CLOSING = "closing"
    ATTEMPT = "attempt"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """A row that the database rejects for good, as it is reported."""

    kind: RowKind
    name: str  # of what it is about, for people
    why: str  # one line


class Rejection(NamedTuple, Generic[T]):
    """A row that the database rejects for good, and why."""

    row: T
    why: str

    def report(self, kind: RowKind, name: str) -> RejectedRow:
        """Return it as it is reported."""
        return RejectedRow(kind=kind, name=name, why=self.why)


def save_each(
    connection: Connection, rows: Sequence[T], save: Callable[[Sequence[T]], object], doing: str
) -> list[Rejection[T]]:
    """Save rows in their order, and return those that the database rejects for good.

    They are saved at once if it takes them. A part that it rejects is halved, so that one bad row of
    10,000 costs about 14 further statements.

    Args:
        connection: in a transaction, of which each part is a savepoint.
        rows: the rows, of which `save` may get any part.
        save: saves a part.
        doing: what cannot be done then, as errors begin.

    Raises:
        StoreError: the error is not of a row.
    """
    rejections: list[Rejection[T]] = []
    parts, tries = [rows] if rows else [], 0
    while parts:
        part, tries = parts.pop(), tries + 1
        why = _why_rejected(connection, part, save, doing)
        if why is None:
            continue
        if len(part) > 1 and tries < MOST_TRIES:
            half = len(part) // 2
            parts += [part[half:], part[:half]]
        else:
            rejections += [Rejection(row, why) for row in part]
    return rejections


def _why_rejected(
    connection: Connection, rows: Sequence[T], save: Callable[[Sequence[T]], object], doing: str
) -> str | None:
    """Save rows within a savepoint; return why the database rejects them for good, None if it took them."""
    try:
        with translate_errors(doing), connection.begin_nested():
            save(rows)
    except StoreError as exc:
        if not exc.is_of_values:
            raise
        return str(exc)
    except (TypeError, ValueError) as exc:  # what cannot be encoded must not end the round
        return f"{doing}: {exc!r}"
    return None
