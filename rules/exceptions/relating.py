"""Whether an application's problem is of a producer that brokers know, and by what.

A transactional id and a producer id name a producer. A topic and a time do not: several producers write to a topic, so
what matches by them alone may be of it, is called so, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.exceptions.problems import PRODUCERS_KEPT, NamedProducer, Problem
from rules.facts.application_log import Part
from rules.facts.identity import TopicPartition

# Clocks of applications and of brokers differ, and a client reports an error minutes after its cause.
TOLERANCE: Final = timedelta(minutes=5)


class Match(StrEnum):
    """By what a problem belongs to a producer, the surest first."""

    TRANSACTIONAL_ID = "transactional_id"
    PRODUCER_ID = "producer_id"  # with the same epoch, as far as both are known
    OTHER_EPOCH = "producer_id_other_epoch"  # an earlier or later instance of it
    GROUP = "group"  # of a finding
    MAY_BE = "may_be_of_it"  # topic and time alone


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemNames:
    """What a problem says of its producer, its partitions and its time."""

    part: Part | None = None
    transactional_id: str | None = None
    producers: tuple[NamedProducer, ...] = ()
    topic: str | None = None
    places: frozenset[TopicPartition] = frozenset()
    begin: datetime
    end: datetime

    @classmethod
    def of(cls, problem: Problem) -> ProblemNames:
        """Return those of a problem; by the clock of the application, if it wrote times."""
        names = problem.names
        return cls(
            part=problem.event.part,
            transactional_id=names.transactional_id,
            producers=() if problem.is_of_many else problem.producers,
            topic=names.topic,
            places=frozenset() if problem.is_of_many else frozenset(problem.places),
            begin=problem.first_at or problem.first_seen,
            end=problem.last_at or problem.last_seen,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProducer:
    """A producer as brokers and coordinators know it, and when what is asked about was."""

    producer_id: int | None
    producer_epoch: int | None = None
    transactional_id: str | None = None
    places: frozenset[TopicPartition] = frozenset()
    begin: datetime | None = None  # None: not known
    end: datetime | None = None  # None: it goes on


def match(names: ProblemNames, producer: KnownProducer) -> Match | None:
    """Return by what a problem belongs to a producer; None: it does not, as far as is known."""
    if names.part in (Part.CONSUMER, Part.ADMIN):
        return None
    if None not in (names.transactional_id, producer.transactional_id):
        is_same = names.transactional_id == producer.transactional_id
        return Match.TRANSACTIONAL_ID if is_same else None
    by_id = _by_producer_id(names.producers, producer)
    if by_id is not None:
        return by_id
    is_another = producer.producer_id is not None and 0 < len(names.producers) < PRODUCERS_KEPT
    if is_another or not _is_there(names, producer.places) or not _is_then(names, producer):
        return None
    return Match.MAY_BE


def _by_producer_id(named: Iterable[NamedProducer], producer: KnownProducer) -> Match | None:
    epochs = [each.producer_epoch for each in named if each.producer_id == producer.producer_id]
    if not epochs:
        return None
    is_same = producer.producer_epoch is None or {None, producer.producer_epoch} & {*epochs}
    return Match.PRODUCER_ID if is_same else Match.OTHER_EPOCH


def _is_there(names: ProblemNames, places: frozenset[TopicPartition]) -> bool:
    """Return whether a problem names one of some partitions, or only the topic of one."""
    if names.places:
        return bool(names.places & places)
    return names.topic is not None and any(place.topic == names.topic for place in places)


def _is_then(names: ProblemNames, producer: KnownProducer) -> bool:
    begin, end = producer.begin, producer.end
    return (begin is None or names.end >= begin - TOLERANCE) and (
        end is None or names.begin <= end + TOLERANCE
    )
