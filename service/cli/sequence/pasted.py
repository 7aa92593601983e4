"""Group pasted lines into events: the rejections of one producer on one partition.

A log may cover days, and a producer may have several errors: rejections further apart than a client's
retries are separate events. Memory is bounded; what exceeds the limits is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from rules.facts.broker_log import (
    EpochRejected,
    LogEvent,
    LogLoaded,
    SequenceRejected,
    UncleanChange,
)
from rules.facts.identity import TopicId

# After delivery.timeout.ms, 120 s by default, a client gives a batch up.
TOGETHER: Final = timedelta(seconds=120)
EVENTS: Final = 1000
REJECTIONS: Final = 200  # of one event
BESIDE: Final = 20  # other lines of one partition and one kind, the last ones
PARTITIONS: Final = 10_000  # with other lines
LATELY: Final = 10  # events of one producer on one partition that a line may belong to

Place: TypeAlias = tuple[str | None, int | None, int | None]  # topic, partition, producer id
Numbers: TypeAlias = tuple[str, int, int | None, int | None]


@dataclass(slots=True, kw_only=True)
class PastedEvent:
    """Rejections of one event, up to `REJECTIONS` of them."""

    rejections: list[SequenceRejected] = field(default_factory=list)
    not_kept: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    numbers: set[Numbers] = field(default_factory=set)

    def takes(self, rejection: SequenceRejected) -> bool:
        """Whether a rejection of the same producer on the same partition belongs here."""
        at = rejection.origin.at
        if at is None or self.first_at is None or self.last_at is None:
            return True
        if _numbers(rejection) in self.numbers:
            return True
        return self.first_at - TOGETHER <= at <= self.last_at + TOGETHER

    def add(self, rejection: SequenceRejected) -> None:
        """Add a rejection, or count it if there are too many."""
        at = rejection.origin.at
        if at is not None:
            self.first_at = at if self.first_at is None else min(self.first_at, at)
            self.last_at = at if self.last_at is None else max(self.last_at, at)
        if len(self.rejections) == REJECTIONS:
            self.not_kept += 1
            return
        self.rejections.append(rejection)
        self.numbers.add(_numbers(rejection))

    @property
    def brokers(self) -> list[int]:
        """Return the brokers that rejected, as far as the lines name them."""
        broker_ids = {rejection.origin.broker_id for rejection in self.rejections}
        return sorted(broker for broker in broker_ids if broker is not None)


class Pasted:
    """Collects the events of lines, in the order in which they are read."""

    def __init__(self) -> None:
        self.events: list[PastedEvent] = []  # in the order of their first lines
        self._of_place: dict[Place, deque[PastedEvent]] = {}
        # By topic, else by its id, and partition; then by kind, so that none crowds out another.
        self._beside: dict[tuple[str, int], dict[type, deque[LogEvent]]] = {}
        self.old_epochs = 0  # lines that reject an older producer epoch
        self.not_kept = 0  # rejections beyond the limits

    def add(self, events: Iterable[LogEvent]) -> None:
        """Take the events of some lines."""
        for event in events:
            if isinstance(event, SequenceRejected):
                self._add_rejection(event)
                continue
            self.old_epochs += isinstance(event, EpochRejected)
            self._keep_beside(event)

    def beside(self, event: PastedEvent) -> list[LogEvent]:
        """Return the last other lines about the partition of an event, without those of a deleted topic."""
        first = event.rejections[0]
        topic_ids = {rejection.topic_id for rejection in event.rejections} - {None}
        return [
            other
            for topic in (
                first.topic,
                *sorted(topic_id for topic_id in topic_ids if topic_id is not None),
            )
            if topic is not None and first.partition is not None
            for kind in self._beside.get((topic, first.partition), {}).values()
            for other in kind
            if not (topic_ids and _is_of_another_topic(other, topic_ids))
        ]

    @property
    def others(self) -> list[LogEvent]:
        """Return all other lines that name a topic, by partition."""
        kinds = [kind for by_kind in self._beside.values() for kind in by_kind.values()]
        return [event for kind in kinds for event in kind if event.topic is not None]

    def _add_rejection(self, rejection: SequenceRejected) -> None:
        place = (rejection.topic, rejection.partition, rejection.producer_id)
        lately = self._of_place.get(place, ())
        event = next((event for event in reversed(lately) if event.takes(rejection)), None)
        if event is None:
            if len(self.events) == EVENTS:
                self.not_kept += 1
                return
            event = PastedEvent()
            self.events.append(event)
            self._of_place.setdefault(place, deque(maxlen=LATELY)).append(event)
        event.add(rejection)

    def _keep_beside(self, event: LogEvent) -> None:
        topic = event.topic or (event.topic_id if isinstance(event, UncleanChange) else None)
        if topic is None or event.partition is None:
            return
        place = (topic, event.partition)
        if place in self._beside or len(self._beside) < PARTITIONS:
            kinds = self._beside.setdefault(place, {})
            kinds.setdefault(type(event), deque(maxlen=BESIDE)).append(event)


def _is_of_another_topic(event: LogEvent, topic_ids: Container[TopicId | None]) -> bool:
    """Whether a line has a topic id, and not that of the rejections."""
    topic_id = event.topic_id if isinstance(event, (LogLoaded, UncleanChange)) else None
    return topic_id is not None and topic_id not in topic_ids


def _numbers(rejection: SequenceRejected) -> Numbers:
    return (
        str(rejection.form),
        rejection.incoming_sequence,
        rejection.current_sequence,
        rejection.producer_epoch,
    )
