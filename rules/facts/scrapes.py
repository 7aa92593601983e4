"""Metrics of brokers and clients, from their own endpoints or from a Prometheus server.

They are hints and never a proof of loss: an idempotent Java producer that meets a real loss raises
only its retries, and a metric that is not exposed says nothing. A client chooses its id itself
("producer-1" in every application), so that it is identified by its address, too.
Source: the clients' producer-metrics and producer-topic-metrics, the brokers' RequestMetrics and
the controller's ControllerStats, in the spellings of the JMX exporter, Micrometer and OpenTelemetry.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from rules.facts.gap import Gap, GapCause, GapScope

# A client gives up after 2 minutes; a verdict takes longer.
RISES_KEPT: Final = timedelta(minutes=15)


class EndpointKind(StrEnum):
    """How metrics are requested."""

    PAGE = "page"  # the text that a process itself exposes
    PROMETHEUS = "prometheus"  # an instant query to a server that has scraped it


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeFailure:
    """Why something of an endpoint is missing; never a secret."""

    cause: GapCause
    why: str


NOT_QUERIED: Final = ScrapeFailure(cause=GapCause.TIMEOUT, why="it was not queried for too long")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointState:
    """The state of one endpoint."""

    name: str  # its address without secrets
    kind: EndpointKind
    answered_since: datetime | None  # aware, UTC; without a break longer than an answer stays fresh
    answered_at: datetime | None  # the latest answer; None: there was none yet
    is_fresh: bool  # False: its latest answer is too old to be used
    is_up: bool  # the latest attempt gave an answer
    took_seconds: float | None  # the latest attempt
    samples: int  # kept of the latest answer
    lag: timedelta = timedelta(0)  # how old a value may be when it is returned
    failures: tuple[ScrapeFailure, ...] = ()  # of the latest attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """A counter rose at some time between two observations."""

    since: datetime  # aware, UTC: the observation before, or earlier by the lag of the endpoint
    until: datetime
    count: int | None  # None: exposed as a rate, from which the amount is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A counter over several observations; one that decreased was reset, and counts from zero."""

    total: int | None  # as exposed; None: only a rate is exposed
    increase: int | None  # between the last two observations; None: there was no observation before
    since: datetime | None  # the observation before
    rate: float | None  # per second over that time, or as the client itself exposes it
    rises: tuple[Rise, ...] = ()  # of the last `RISES_KEPT`, ordered by time


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientReading:
    """A producer's metrics of the records it could not deliver, or had to send again."""

    endpoint: str
    address: str  # host:port of the process, as far as it is known
    client_id: str
    topic: str | None  # None: of all its topics together
    seen_since: datetime  # aware, UTC: it has been in every answer since
    seen_at: datetime
    is_gone: bool  # absent from two complete answers; it is kept for its rises
    errors: Counted | None  # records that failed for good: record-error-total, record-error-rate
    retries: Counted | None  # records that were sent again: record-retry-total, record-retry-rate


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestErrors:
    """How often a broker answered a request type with an error; counted once per partition in an answer."""

    endpoint: str
    address: str
    request: str  # Kafka's name of the API: Produce
    error: str  # Kafka's name: OUT_OF_ORDER_SEQUENCE_NUMBER
    is_gone: bool  # absent from two complete answers; it is kept for its rises
    counted: Counted
    broker_id: int | None = None  # as a label has it; None: no label does
    hosts: tuple[str, ...] = ()  # what labels call the process or its machine, beside the address


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanElections:
    """How many unclean elections a controller counts; electing the last known leader loses nothing."""

    endpoint: str
    address: str
    is_gone: bool  # as above
    counted: Counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scrapes:
    """The latest answers of all endpoints, as of a round."""

    is_read: bool  # False: none is configured; nothing is known, which is not "no errors"
    endpoints: tuple[EndpointState, ...] = ()
    clients: tuple[ClientReading, ...] = ()  # also those of endpoints that are not fresh
    request_errors: tuple[RequestErrors, ...] = ()
    unclean_elections: tuple[UncleanElections, ...] = ()
    failures: tuple[ScrapeFailure, ...] = ()  # of the lists that name the endpoints
    lists_known: bool = True  # False: a list could never be read, so that endpoints are missing
    # The configured broker of an address, or of what a label calls a process.
    broker_ids: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def unread(cls) -> Scrapes:
        """Return the value for a cluster without configured endpoints."""
        return cls(is_read=False)

    @property
    def is_complete(self) -> bool:
        """Whether a client that is not here is gone: every endpoint has answered at least once."""
        return self.lists_known and all(
            endpoint.answered_at is not None for endpoint in self.endpoints
        )

    @property
    def fresh(self) -> frozenset[str]:
        """Return the names of the endpoints whose last answer may be used."""
        return frozenset(endpoint.name for endpoint in self.endpoints if endpoint.is_fresh)

    def gaps(self) -> Iterator[Gap]:
        """Yield what could not be read, and why."""
        for failure in self.failures:
            yield _gap("lists of metrics endpoints", failure)
        for endpoint in self.endpoints:
            failures = endpoint.failures or (() if endpoint.is_fresh else (NOT_QUERIED,))
            for failure in failures:
                yield _gap(f"metrics of {endpoint.name}", failure)


def _gap(what: str, failure: ScrapeFailure) -> Gap:
    return Gap(what=what, why=failure.why, cause=failure.cause, scope=GapScope.SCRAPES)


@dataclass(frozen=True, slots=True, order=True)
class ProducerName:
    """A producer as its metrics name it; two endpoints may expose the same one."""

    address: str
    client_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportingProducers:
    """Which producers of a topic exposed metrics within a time range, and which had records fail."""

    reporting: frozenset[ProducerName]
    raised: frozenset[ProducerName]  # of those: their record-error of this topic rose
    unreported: frozenset[ProducerName]  # theirs rose too, without a topic label
    # Every endpoint answered over the whole time range, which is recent enough: no rise was missed.
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
    """Return the producers that reported for a topic from `since` to `until`, inclusive, and who failed.

    A producer that exposes only a sum over its topics may or may not write to this topic.
    """
    readings = [
        client
        for client in scrapes.clients
        if client.seen_at >= since and client.seen_since <= until
    ]
    mine = [reading for reading in readings if reading.topic == topic]
    per_topic = _names(reading for reading in readings if reading.topic is not None)
    whole = [reading for reading in readings if reading.topic is None]
    return ReportingProducers(
        reporting=_names(mine),
        raised=_names(reading for reading in mine if _rose(reading.errors, since, until)),
        unreported=_names(reading for reading in whole if _rose(reading.errors, since, until))
        - per_topic,
        is_whole=whole_until(scrapes, since, until) == until,
    )


def whole_until(scrapes: Scrapes, since: datetime, until: datetime) -> datetime | None:
    """Return up to when, at most `until`, every endpoint has answered without a break from `since` on.

    None: not even at first, or so long ago that rises of then are forgotten.
    """
    if not (scrapes.is_read and scrapes.is_complete):
        return None
    ends = [_answered_until(endpoint, since) for endpoint in scrapes.endpoints]
    known = [end for end in ends if end is not None]
    return None if len(known) < len(ends) else min([until, *known])


def _names(readings: Iterable[ClientReading]) -> frozenset[ProducerName]:
    return frozenset(ProducerName(reading.address, reading.client_id) for reading in readings)


def rises_within(counted: Counted | None, since: datetime, until: datetime) -> Sequence[Rise]:
    """Return the rises that may have been between two times, inclusive, as far as they are kept."""
    rises = () if counted is None else counted.rises  # ordered by time
    first = bisect_left(rises, since, key=lambda rise: rise.until)
    end = bisect_right(rises, until, key=lambda rise: rise.since)
    return rises[first:end]


def rising_by_topic(clients: Iterable[ClientReading]) -> dict[str | None, list[ClientReading]]:
    """Return the clients with any rise, by topic; None: sums of clients that report no topics.

    Made once in a round: after a failover many events and suspicions search among them.
    """
    readings = list(clients)
    per_topic = _names(reading for reading in readings if reading.topic is not None)
    by_topic: dict[str | None, list[ClientReading]] = {}
    for reading in readings:
        name = ProducerName(reading.address, reading.client_id)
        has_rises = any(
            each is not None and each.rises for each in (reading.errors, reading.retries)
        )
        if has_rises and (reading.topic is not None or name not in per_topic):
            by_topic.setdefault(reading.topic, []).append(reading)
    return by_topic


def _rose(counted: Counted | None, since: datetime, until: datetime) -> bool:
    return bool(rises_within(counted, since, until))


def _answered_until(endpoint: EndpointState, since: datetime) -> datetime | None:
    began, ended = endpoint.answered_since, endpoint.answered_at
    if began is None or ended is None or since < ended - RISES_KEPT:
        return None
    is_cut = any(failure.cause is not GapCause.UNSUPPORTED for failure in endpoint.failures)
    return ended - endpoint.lag if began <= since and not is_cut else None
