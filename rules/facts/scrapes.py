"""Metrics of brokers and clients, as their own pages or a Prometheus server tell them.

They are hints and never a proof of loss: an idempotent Java producer that meets a real loss moves
its retries alone, and a metric that nobody exposes says nothing. A client's id is its own choice
("producer-1" in every application), so that who it is takes the address it reports at, too.
Source: the clients' producer-metrics and producer-topic-metrics, the brokers' RequestMetrics and
the controller's ControllerStats, in the spellings of the JMX exporter, Micrometer and OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.facts.gap import Gap, GapCause, GapScope

RISES_KEPT: Final = timedelta(minutes=15)  # a client gives up after 2, and a verdict takes a while


class EndpointKind(StrEnum):
    """How metrics are asked for."""

    PAGE = "page"  # the text that a process itself exposes
    PROMETHEUS = "prometheus"  # an instant query to a server that has scraped it


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeFailure:
    """Why something of an endpoint is missing; never a secret."""

    cause: GapCause
    why: str


NOT_QUERIED: Final = ScrapeFailure(cause=GapCause.TIMEOUT, why="it has not been asked for too long")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """How one endpoint is."""

    name: str  # its address without secrets
    kind: EndpointKind
    answered_since: datetime | None  # aware, UTC; without a break longer than an answer stays fresh
    answered_at: datetime | None  # the latest answer; None: there was none yet
    is_fresh: bool  # False: what it said is too old to be used
    is_up: bool  # the latest attempt gave an answer
    took_seconds: float | None  # the latest attempt
    samples: int  # kept of the latest answer
    lag: timedelta = timedelta(0)  # a value may be so old already when it is told
    failures: tuple[ScrapeFailure, ...] = ()  # of the latest attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """A counter went up at some time between two observations."""

    since: datetime  # aware, UTC: the observation before, or some time before that where it may lag
    until: datetime
    count: int | None  # None: told as a rate, which says that and not how much


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A counter over several observations; one that went back began anew, and counts from zero."""

    total: int | None  # as it is told; None: only a rate is told
    increase: int | None  # between the last two observations; None: there was no observation before
    since: datetime | None  # the observation before
    rate: float | None  # per second over that time, or as the client itself tells it
    rises: tuple[Rise, ...] = ()  # of the last `RISES_KEPT`, in time's order


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReading:
    """What a producer says of the records it could not deliver, or had to send again."""

    endpoint: str
    address: str  # host:port of the process, as far as that is told
    client_id: str
    topic: str | None  # None: of all its topics together
    seen_since: datetime  # aware, UTC: it has been in every answer since
    seen_at: datetime
    is_gone: bool  # absent from two complete answers; it is kept for its rises
    errors: Counted | None  # records that failed for good: record-error-total, record-error-rate
    retries: Counted | None  # records that were sent again: record-retry-total, record-retry-rate


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestErrors:
    """How often a broker answered a kind of request with an error; one per partition in an answer."""

    endpoint: str
    address: str
    request: str  # Kafka's name of the API: Produce
    error: str  # Kafka's name: OUT_OF_ORDER_SEQUENCE_NUMBER
    counted: Counted


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElections:
    """How many unclean elections a controller counts: one of the last known leader loses nothing."""

    endpoint: str
    address: str
    counted: Counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scrapes:
    """What all endpoints said, as of a round."""

    is_read: bool  # False: none is set up; nothing is known, which is not "no errors"
    endpoints: tuple[EndpointState, ...] = ()
    clients: tuple[ClientReading, ...] = ()  # also those of endpoints that are not fresh
    request_errors: tuple[RequestErrors, ...] = ()
    unclean_elections: tuple[UncleanElections, ...] = ()
    failures: tuple[ScrapeFailure, ...] = ()  # of the lists that name the endpoints
    lists_known: bool = True  # False: a list could never be read, so that endpoints are missing

    @classmethod
    def unread(cls) -> Scrapes:
        """Return what is known where no endpoint is set up."""
        return cls(is_read=False)

    @property
    def is_complete(self) -> bool:
        """Whether a client that is not here is gone: every endpoint has told its clients once."""
        return self.lists_known and all(
            endpoint.answered_at is not None for endpoint in self.endpoints
        )

    @property
    def fresh(self) -> frozenset[str]:
        """Return the endpoints whose last answer may be used."""
        return frozenset(endpoint.name for endpoint in self.endpoints if endpoint.is_fresh)

    def gaps(self) -> Iterator[Gap]:
        """Give what could not be seen, and why."""
        for failure in self.failures:
            yield _gap("lists of metrics endpoints", failure)
        for endpoint in self.endpoints:
            failures = endpoint.failures or (() if endpoint.is_fresh else (NOT_QUERIED,))
            for failure in failures:
                yield _gap(f"metrics of {endpoint.name}", failure)


def _gap(what: str, failure: ScrapeFailure) -> Gap:
    return Gap(what=what, why=failure.why, cause=failure.cause, scope=GapScope.SCRAPES)


# ------------------------------------------------------------------ who reports, and who failed
@dataclass(frozen=True, slots=True, order=True)
class ProducerName:
    """A producer as its metrics name it; two endpoints may tell of the same one."""

    address: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingProducers:
    """Which producers of a topic told of themselves within a time, and which had records fail."""

    reporting: frozenset[ProducerName]
    raised: frozenset[ProducerName]  # of those: their record-error of this topic went up
    unreported: frozenset[ProducerName]  # theirs went up too, and they do not tell for which topic
    # Every endpoint answered over the whole time, none of which is too long ago: nobody raised unseen.
    is_whole: bool

    @property
    def only_raised(self) -> ProducerName | None:
        """Return the one producer whose records failed; None if it is not exactly one."""
        if len(self.raised) != 1 or self.unreported - self.raised:
            return None
        return next(iter(self.raised))


def reporting_producers(
    scrapes: Scrapes, topic: str, since: datetime, until: datetime
) -> ReportingProducers:
    """Return who reported of a topic between `since` and `until`, both inclusive, and who failed.

    A producer that tells only of all its topics together may be one of this topic or not.
    """
    told = [
        client
        for client in scrapes.clients
        if client.seen_at >= since and client.seen_since <= until
    ]
    mine = [one for one in told if one.topic == topic]
    per_topic = _names(one for one in told if one.topic is not None)
    whole = [one for one in told if one.topic is None]
    return ReportingProducers(
        reporting=_names(mine),
        raised=_names(one for one in mine if _rose(one.errors, since, until)),
        unreported=_names(one for one in whole if _rose(one.errors, since, until)) - per_topic,
        is_whole=scrapes.is_read
        and scrapes.is_complete
        and all(_answered(endpoint, since, until) for endpoint in scrapes.endpoints),
    )


def _names(readings: Iterable[ClientReading]) -> frozenset[ProducerName]:
    return frozenset(ProducerName(reading.address, reading.client_id) for reading in readings)


def _rose(counted: Counted | None, since: datetime, until: datetime) -> bool:
    rises = () if counted is None else counted.rises
    return any(rise.until >= since and rise.since <= until for rise in rises)


def _answered(endpoint: EndpointState, since: datetime, until: datetime) -> bool:
    began, ended = endpoint.answered_since, endpoint.answered_at
    if began is None or ended is None or since < ended - RISES_KEPT:
        return False
    is_cut = any(failure.cause is not GapCause.UNSUPPORTED for failure in endpoint.failures)
    return began <= since and ended - endpoint.lag >= until and not is_cut
