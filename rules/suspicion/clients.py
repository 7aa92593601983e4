"""What producers' own metrics add to a suspicion, and the suspicions that begin with them.

Records are sent again after every failover, so that a rise alone means nothing. It counts beside a
broker's counter, and where a leader change was not clean: an idempotent Java producer that meets a real
loss raises only its retries, and its application sees no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from rules.facts.episodes import ChangeKind, LeaderChange
from rules.facts.identity import short_id
from rules.facts.last_observation import microseconds
from rules.facts.scrapes import ClientReading, Counted, rises_within, rising_by_topic
from rules.facts.suspicions import ClientRise, Suspicion, SuspicionOutcome, SuspicionSource
from rules.facts.times import EPOCH, MICROSECOND, SECOND_US
from rules.view import View

MAX_CLIENTS: Final = 20
BEFORE_CHANGE: Final = timedelta(seconds=60)  # of the last observation: metrics may be older
AFTER_CHANGE: Final = timedelta(seconds=120)  # clients retry for so long by default
RECORD_ERROR: Final = "record-error"
RECORD_RETRY: Final = "record-retry"


@dataclass(frozen=True, slots=True, eq=False)
class RisingClients:
    """The clients of a round that had any rise, by topic; None: those that report no topics."""

    by_topic: Mapping[str | None, Sequence[ClientReading]]
    # Of those that report no topics, by time: topics whose leaders failed together share theirs.
    _sums: dict[tuple[datetime, datetime], list[ClientRise]] = field(default_factory=dict)

    @classmethod
    def of(cls, clients: Iterable[ClientReading]) -> RisingClients:
        """Select them."""
        return cls(rising_by_topic(clients))

    def of_topic(self, topic: str, since: datetime, until: datetime) -> list[ClientRise]:
        """Return those that report rises of a topic within a time."""
        return _rises(self.by_topic.get(topic, ()), since, until)

    def that_may_be_of(
        self, topic: str | None, since: datetime, until: datetime
    ) -> tuple[ClientRise, ...]:
        """Return those that may have written to a topic, or to any (None), that failed most first."""
        topics = set(self.by_topic) - {None} if topic is None else {topic}
        rises = [rise for name in topics for rise in self.of_topic(name or "", since, until)]
        return tuple(sorted([*rises, *self._of_sums(since, until)], key=_order)[:MAX_CLIENTS])

    def _of_sums(self, since: datetime, until: datetime) -> list[ClientRise]:
        if (since, until) not in self._sums:
            rises = _rises(self.by_topic.get(None, ()), since, until)
            self._sums[since, until] = sorted(rises, key=_order)[:MAX_CLIENTS]
        return self._sums[since, until]


def list_client_rises(rising: RisingClients, suspicion: Suspicion) -> tuple[ClientRise, ...]:
    """Return the clients of which records failed or were sent again then, those that failed most first."""
    since, until = _time(suspicion.since_us), _time(suspicion.until_us)
    return rising.that_may_be_of(suspicion.topic, since, until)


def list_client_suspicions(
    view: View, rising: RisingClients, open_: Iterable[Suspicion], ended: Iterable[Suspicion]
) -> Iterator[Suspicion]:
    """Yield a new suspicion for each topic with a change that was not clean, and a client that met it."""
    changes = view.memory.sequences.changes
    if not changes or not rising.by_topic:
        return
    ids = {suspicion.id for suspicion in (*open_, *ended)}
    now_us = microseconds(view.now)
    by_topic: dict[str, list[LeaderChange]] = {}
    for name, of_partition in changes.items():
        if name.topic in rising.by_topic:
            by_topic.setdefault(name.topic, []).extend(of_partition)
    for topic, of_topic in by_topic.items():
        latest = max(of_topic, key=lambda change: change.seen_us)
        if now_us > latest.seen_us + AFTER_CHANGE // MICROSECOND:
            continue
        suspicion = _suspicion(view, rising, topic, latest)
        if suspicion is not None and suspicion.id not in ids:
            yield suspicion


def _suspicion(
    view: View, rising: RisingClients, topic: str, change: LeaderChange
) -> Suspicion | None:
    since_us = (change.last_observation_us or change.seen_us) - BEFORE_CHANGE // MICROSECOND
    until_us = change.seen_us + AFTER_CHANGE // MICROSECOND
    since, until = _time(since_us), _time(until_us)
    mine = rising.of_topic(topic, since, until)
    failed = sum(rise.errors for rise in mine)
    repeated = sum(rise.retries for rise in mine)
    # Where it is not known whether a change was clean, retries are what every failover causes.
    if not failed and (not repeated or change.kind is ChangeKind.NOT_KNOWN):
        return None
    now_us = microseconds(view.now)
    return Suspicion(
        id=short_id(view.snapshot.cluster_id, topic, change.seen_us, "client"),
        source=SuspicionSource.CLIENT,
        error=RECORD_ERROR if failed else RECORD_RETRY,
        address=topic,
        brokers=(),
        topic=topic,
        since_us=since_us,
        until_us=now_us,
        count=failed or repeated,
        opened_us=now_us,
        outcome=SuspicionOutcome.NOT_OBSERVED,
        clients=rising.that_may_be_of(topic, since, until),
    )


def _rises(clients: Iterable[ClientReading], since: datetime, until: datetime) -> list[ClientRise]:
    rises = (
        ClientRise(
            client_id=client.client_id,
            address=client.address,
            topic=client.topic,
            errors=_count(client.errors, since, until),
            retries=_count(client.retries, since, until),
        )
        for client in clients
    )
    return [rise for rise in rises if rise.errors or rise.retries]


def _count(counted: Counted | None, since: datetime, until: datetime) -> int:
    return sum(rise.count or 0 for rise in rises_within(counted, since, until))


def _order(rise: ClientRise) -> tuple[bool, int, int, str]:
    return rise.topic is None, -rise.errors, -rise.retries, rise.client_id


def _time(timestamp_us: int) -> datetime:
    """Return a time to the second: so those that began and ended together have the same."""
    return EPOCH + timedelta(seconds=timestamp_us // SECOND_US)
