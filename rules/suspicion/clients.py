"""What producers' own metrics add to a suspicion, and the suspicions that begin with them.

Records are sent again after every failover, so that a rise alone means nothing. It counts beside a
broker's counter, and where a leader change was not clean: an idempotent Java producer that meets a real
loss raises only its retries, and its application sees no error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from rules.facts.episodes import ChangeKind, LeaderChange
from rules.facts.last_observation import microseconds
from rules.facts.scrapes import ClientReading, Counted
from rules.facts.suspicions import ClientRise, Suspicion, SuspicionOutcome, SuspicionSource
from rules.facts.times import EPOCH, MICROSECOND
from rules.view import View

MAX_CLIENTS: Final = 20
BEFORE_CHANGE: Final = timedelta(seconds=60)  # of the last observation: metrics may be older
AFTER_CHANGE: Final = timedelta(seconds=120)  # clients retry for so long by default
RECORD_ERROR: Final = "record-error"
RECORD_RETRY: Final = "record-retry"
ID_BYTES: Final = 6


def list_client_rises(view: View, suspicion: Suspicion) -> tuple[ClientRise, ...]:
    """Return the clients of which records failed or were sent again then, those that failed most first."""
    since, until = _time(suspicion.since_us), _time(suspicion.until_us)
    return _rises(view.snapshot.scrapes.clients, suspicion.topic, since, until)


def list_client_suspicions(
    view: View, open_: Iterable[Suspicion], ended: Iterable[Suspicion]
) -> Iterator[Suspicion]:
    """Yield a new suspicion for each topic with a change that was not clean, and a client that met it."""
    changes = view.memory.sequences.changes
    if not changes or not view.snapshot.scrapes.clients:
        return
    ids = {suspicion.id for suspicion in (*open_, *ended)}
    now_us = microseconds(view.now)
    by_topic: dict[str, list[LeaderChange]] = {}
    for name, of_partition in changes.items():
        by_topic.setdefault(name.topic, []).extend(of_partition)
    for topic, of_topic in by_topic.items():
        latest = max(of_topic, key=lambda change: change.seen_us)
        if now_us > latest.seen_us + AFTER_CHANGE // MICROSECOND:
            continue
        suspicion = _suspicion(view, topic, latest)
        if suspicion is not None and suspicion.id not in ids:
            yield suspicion


def _suspicion(view: View, topic: str, change: LeaderChange) -> Suspicion | None:
    since_us = (change.last_observation_us or change.seen_us) - BEFORE_CHANGE // MICROSECOND
    until_us = change.seen_us + AFTER_CHANGE // MICROSECOND
    rises = _rises(view.snapshot.scrapes.clients, topic, _time(since_us), _time(until_us))
    mine = [rise for rise in rises if rise.topic == topic]
    failed = sum(rise.errors for rise in mine)
    repeated = sum(rise.retries for rise in mine)
    # Where it is not known whether a change was clean, retries are what every failover causes.
    if not failed and (not repeated or change.kind is ChangeKind.NOT_KNOWN):
        return None
    identity = f"{view.snapshot.cluster_id}|{topic}|{change.seen_us}|client"
    now_us = microseconds(view.now)
    return Suspicion(
        id=blake2b(identity.encode(), digest_size=ID_BYTES).hexdigest(),
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
        clients=rises,
    )


def _rises(
    clients: Iterable[ClientReading], topic: str | None, since: datetime, until: datetime
) -> tuple[ClientRise, ...]:
    rises = [
        ClientRise(
            client_id=client.client_id,
            address=client.address,
            topic=client.topic,
            errors=_count(client.errors, since, until),
            retries=_count(client.retries, since, until),
        )
        for client in clients
        if topic is None or client.topic in (None, topic)
    ]
    rises = [rise for rise in rises if rise.errors or rise.retries]
    rises.sort(key=lambda rise: (rise.topic is None, -rise.errors, -rise.retries, rise.client_id))
    return tuple(rises[:MAX_CLIENTS])


def _count(counted: Counted | None, since: datetime, until: datetime) -> int:
    rises = () if counted is None else counted.rises
    return sum(rise.count or 0 for rise in rises if rise.until >= since and rise.since <= until)


def _time(timestamp_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=timestamp_us)
