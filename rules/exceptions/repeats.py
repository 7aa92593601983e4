"""The same error again and again as one event with a count, so that a log of any size needs little memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from rules.facts.application_log import ApplicationError, Names

TOGETHER: Final = timedelta(minutes=10)
MOST_EVENTS: Final = 2_000  # that differ


@dataclass(slots=True)
class _Entry:
    event: ApplicationError
    count: int
    last_at: datetime | None


class Repeats:
    """Collects events: those that say the same about the same, one soon after the other, once."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._latest: dict[object, _Entry] = {}
        self.not_kept = 0  # events beyond the limit

    def add(self, events: Iterable[ApplicationError]) -> None:
        """Take events in their order."""
        for event in events:
            key = _key(event)
            entry = self._latest.get(key)
            if entry is not None and _is_soon(entry.last_at, event.at):
                entry.count += 1
                entry.last_at = event.at or entry.last_at
            elif len(self._entries) < MOST_EVENTS:
                self._latest[key] = _Entry(event, 1, event.at)
                self._entries.append(self._latest[key])
            else:
                self.not_kept += 1

    @property
    def events(self) -> list[ApplicationError]:
        """Return the events in the order of their first lines."""
        return [
            replace(entry.event, count=entry.count, last_at=entry.last_at)
            for entry in self._entries
        ]


def _key(event: ApplicationError) -> object:
    names: Names = event.names
    return (
        event.source,
        event.outcome,
        event.operation,
        tuple((thrown.error, thrown.operation) for thrown in event.chain) or event.text,
        (names.application, names.handle or names.client_id, names.transactional_id, names.group),
        (names.topic, names.partition, names.producer_id, names.thread),
    )


def _is_soon(before: datetime | None, at: datetime | None) -> bool:
    return before is None or at is None or abs(at - before) <= TOGETHER
