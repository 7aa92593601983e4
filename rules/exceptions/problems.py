"""Problems of applications: judged errors of their clients that are one and the same, counted, with a few examples.

A problem is what one application's client met again and again: the same error with the same meaning, of the same
client, transactional id, group and topic. It is no verdict and no finding. Producer ids and partitions that its lines
named are kept beside it, because the same client gets another producer id when it starts again.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NewType, TypeVar

from rules.exceptions.judging import Judged
from rules.facts.application_log import ApplicationError, Names
from rules.facts.identity import TopicPartition

ProblemId = NewType("ProblemId", str)
T = TypeVar("T")

EXAMPLES_KEPT: Final = 4  # the first, and the latest
PLACES_KEPT: Final = 20
PRODUCERS_KEPT: Final = 10
DELIVERIES_KEPT: Final = 32  # by which a repeated request is recognised
ID_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedProducer:
    """A producer that a line names."""

    producer_id: int
    producer_epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One occurrence: a line, shortened, without secrets."""

    text: str
    source: str
    received_at: datetime  # aware, UTC, by the clock of Tidemark
    at: datetime | None = None  # aware, UTC, by the clock of the application


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem with all its occurrences; times are aware, UTC."""

    id: ProblemId
    error: str  # Kafka's name of the error that counts
    meaning: str  # the id of what it means
    event: ApplicationError  # the latest occurrence, without secrets
    count: int
    first_seen: datetime  # by the clock of Tidemark
    last_seen: datetime
    first_at: datetime | None = None  # by the clock of the application
    last_at: datetime | None = None
    examples: tuple[Example, ...] = ()
    places: tuple[TopicPartition, ...] = ()  # the latest that its lines named
    producers: tuple[NamedProducer, ...] = ()  # likewise
    # Names were left out, because there are too many problems: it is of many clients.
    is_of_many: bool = False
    deliveries: tuple[str, ...] = ()  # digests of the latest requests that counted it

    @property
    def names(self) -> Names:
        """Return the names that all its occurrences share; other numbers are of the latest one."""
        return Names() if self.is_of_many else self.event.names


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One judged error as it came."""

    judged: Judged  # its event without secrets
    received_at: datetime
    delivery: str | None  # the digest of its request; None: it cannot be told from another one

    @property
    def event(self) -> ApplicationError:
        """Return the error that was judged."""
        return self.judged.event


def id_of(judged: Judged, *, is_of_many: bool = False) -> ProblemId:
    """Return the id of the problem that an error belongs to; with `is_of_many` names do not count."""
    event, names = judged.event, judged.event.names
    parts: list[str | None] = [judged.error, judged.meaning.id, event.outcome]
    if not is_of_many:
        parts += [
            names.application,
            names.client_id,
            names.transactional_id,
            names.group,
            names.topic,
        ]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    return ProblemId(digest[:ID_DIGITS])


def with_occurrence(
    problem: Problem | None, occurrence: Occurrence, *, is_of_many: bool = False
) -> Problem:
    """Return a problem with one more occurrence; None: it is the first one."""
    event, received_at = occurrence.event, occurrence.received_at
    if problem is None:
        judged = occurrence.judged
        problem = Problem(
            id=id_of(judged, is_of_many=is_of_many),
            error=judged.error,
            meaning=judged.meaning.id,
            event=event,
            count=0,
            first_seen=received_at,
            last_seen=received_at,
            is_of_many=is_of_many,
        )
    example = Example(text=event.text, source=event.source, received_at=received_at, at=event.at)
    return replace(
        problem,
        event=event,
        count=problem.count + 1,
        last_seen=max(problem.last_seen, received_at),
        first_at=_first(problem.first_at, event.at),
        last_at=_last(problem.last_at, event.at),
        examples=_with_example(problem.examples, example),
        places=_latest(problem.places, _place(event.names), PLACES_KEPT),
        producers=_latest(problem.producers, _producer(event.names), PRODUCERS_KEPT),
        deliveries=_latest(problem.deliveries, occurrence.delivery, DELIVERIES_KEPT),
    )


def _with_example(examples: tuple[Example, ...], example: Example) -> tuple[Example, ...]:
    """Return the first example and the latest ones."""
    before = examples if len(examples) < EXAMPLES_KEPT else (examples[0], *examples[2:])
    return (*before, example)


def _place(names: Names) -> TopicPartition | None:
    if names.topic is None or names.partition is None:
        return None
    return TopicPartition(names.topic, names.partition)


def _producer(names: Names) -> NamedProducer | None:
    if names.producer_id is None:
        return None
    return NamedProducer(producer_id=names.producer_id, producer_epoch=names.producer_epoch)


def _latest(items: tuple[T, ...], item: T | None, most: int) -> tuple[T, ...]:
    """Return distinct items, those named last at the end."""
    if item is None:
        return items
    return (*(each for each in items if each != item), item)[-most:]


def _first(before: datetime | None, at: datetime | None) -> datetime | None:
    return min((each for each in (before, at) if each is not None), default=None)


def _last(before: datetime | None, at: datetime | None) -> datetime | None:
    return max((each for each in (before, at) if each is not None), default=None)
