"""Which clients report failed records and retries, each once, and which endpoints leave that list incomplete.

It judges nothing: a client that is not listed reports no such metric, or its endpoint does not answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rules.facts.gap import GapCause
from rules.facts.scrapes import ClientReading, Counted, EndpointState, ScrapeFailure, Scrapes


class ReadingState(StrEnum):
    """Whether the numbers of a client are those of now."""

    CURRENT = "current"
    STALE = (
        "stale"  # the latest answer of its endpoint is too old: what happened since is not known
    )
    GONE = "gone"  # absent from two complete answers; its last rises are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedClient:
    """A client in one process, for one topic, or for all of them where it does not report them apart."""

    reading: ClientReading
    state: ReadingState
    other_endpoints: tuple[str, ...]  # that report the same process

    @property
    def order(self) -> tuple[str, str, str]:
        """Return the key of the list; a client's sum over its topics comes before all topics."""
        return self.reading.topic or "", self.reading.client_id, self.reading.address

    @property
    def last_rise_at(self) -> datetime | None:
        """Return when errors or retries were last seen to have risen; None: not within `RISES_KEPT`."""
        ends = (_last_rise_at(counted) for counted in (self.reading.errors, self.reading.retries))
        return max((end for end in ends if end is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordErrorList:
    """All clients in the order of their keys, and what may be missing beside them."""

    is_read: bool  # False: no endpoint is configured, so that nothing is known
    clients: tuple[ListedClient, ...]
    endpoint_count: int
    incomplete_endpoints: tuple[EndpointState, ...]  # not fresh, or with a part missing
    without_metrics: tuple[
        str, ...
    ]  # they answer, with none of the metrics: nothing is known of them
    list_failures: tuple[ScrapeFailure, ...]  # of the lists that name endpoints
    lists_known: bool

    @property
    def is_complete(self) -> bool:
        """Whether every endpoint that is known of has answered as a whole, and recently."""
        return (
            self.is_read
            and self.lists_known
            and not self.list_failures
            and not self.incomplete_endpoints
        )


def list_record_errors(scrapes: Scrapes) -> RecordErrorList:
    """Return the clients of a round; one that several endpoints report is listed once."""
    return RecordErrorList(
        is_read=scrapes.is_read,
        clients=tuple(sorted(_clients(scrapes), key=lambda client: client.order)),
        endpoint_count=len(scrapes.endpoints),
        incomplete_endpoints=tuple(filter(_is_incomplete, scrapes.endpoints)),
        without_metrics=tuple(
            endpoint.name for endpoint in scrapes.endpoints if _lacks_metrics(endpoint)
        ),
        list_failures=scrapes.failures,
        lists_known=scrapes.lists_known,
    )


def _clients(scrapes: Scrapes) -> Iterable[ListedClient]:
    """Yield each client with the reading that is the most recent one."""
    fresh = scrapes.fresh
    by_key: dict[tuple[str, str, str | None], list[ClientReading]] = {}
    for reading in scrapes.clients:
        by_key.setdefault((reading.address, reading.client_id, reading.topic), []).append(reading)
    for readings in by_key.values():
        latest = max(readings, key=lambda reading: _recency(reading, fresh))
        others = {reading.endpoint for reading in readings} - {latest.endpoint}
        yield ListedClient(
            reading=latest, state=_state(latest, fresh), other_endpoints=tuple(sorted(others))
        )


def _recency(reading: ClientReading, fresh: frozenset[str]) -> tuple[bool, bool, int, datetime]:
    """Return what the most recent reading has most of; the largest totals are the latest ones."""
    totals = (counted.total or 0 for counted in (reading.errors, reading.retries) if counted)
    return reading.endpoint in fresh, not reading.is_gone, sum(totals), reading.seen_at


def _state(reading: ClientReading, fresh: frozenset[str]) -> ReadingState:
    if reading.endpoint not in fresh:
        return ReadingState.STALE
    return ReadingState.GONE if reading.is_gone else ReadingState.CURRENT


def _lacks_metrics(endpoint: EndpointState) -> bool:
    causes = {failure.cause for failure in endpoint.failures}
    return endpoint.is_fresh and causes == {GapCause.UNSUPPORTED}


def _is_incomplete(endpoint: EndpointState) -> bool:
    return not endpoint.is_fresh or (bool(endpoint.failures) and not _lacks_metrics(endpoint))


def _last_rise_at(counted: Counted | None) -> datetime | None:
    return counted.rises[-1].until if counted is not None and counted.rises else None
