"""Series of what clients, brokers and controllers count themselves, as far as their endpoints are fresh.

Their totals are exposed as they are: a process that starts again counts from 0, as Prometheus expects of
a counter. Several endpoints may expose one process, of which the largest total is the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rules import names
from rules.facts.scrapes import ClientReading, Counted, Scrapes
from rules.names import Metric

CountedOf = Callable[[ClientReading], Counted | None]
_RECORDS: Final[Mapping[Metric, CountedOf]] = {
    names.RECORD_ERRORS: lambda client: client.errors,
    names.RECORD_RETRIES: lambda client: client.retries,
}


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """One series: the values of the labels after `cluster`, in the order of its metric, and the topic."""

    metric: Metric
    labels: tuple[str | None, ...]  # None: the series is without this label
    topic: str | None = None


def scraped_counters(scrapes: Scrapes) -> dict[CounterSeries, int]:
    """Return the total of every series, the few of brokers and controllers first, by their labels."""
    totals: dict[CounterSeries, int] = {}
    for series, counted in (*_of_brokers(scrapes), *_of_clients(scrapes)):
        if counted.total is not None:
            totals[series] = max(counted.total, totals.get(series, 0))
    return totals


def _of_brokers(scrapes: Scrapes) -> Iterator[tuple[CounterSeries, Counted]]:
    fresh = scrapes.fresh
    for errors in scrapes.request_errors:
        if errors.endpoint in fresh and not errors.is_gone:
            labels = (errors.address, errors.request, errors.error)
            yield CounterSeries(names.BROKER_REQUEST_ERRORS, labels), errors.counted
    for elections in scrapes.unclean_elections:
        if elections.endpoint in fresh and not elections.is_gone:
            yield CounterSeries(names.UNCLEAN_ELECTIONS, (elections.address,)), elections.counted


def _of_clients(scrapes: Scrapes) -> Iterator[tuple[CounterSeries, Counted]]:
    """Yield the counters of records; a client's sum over topics only where it has none by topic."""
    fresh = scrapes.fresh
    clients = [
        client for client in scrapes.clients if client.endpoint in fresh and not client.is_gone
    ]
    for metric, counted_of in _RECORDS.items():
        by_topic = _counted_by_topic(clients, counted_of)
        for client in clients:
            counted = counted_of(client)
            is_sum = client.topic is None and (client.address, client.client_id) in by_topic
            if counted is not None and not is_sum:
                labels = (client.client_id, client.address, client.topic)
                yield CounterSeries(metric, labels, client.topic), counted


def _counted_by_topic(
    clients: Iterable[ClientReading], counted_of: CountedOf
) -> set[tuple[str, str]]:
    """Return address and client id of the clients with totals by topic."""
    return {
        (client.address, client.client_id)
        for client in clients
        if client.topic is not None
        and (counted := counted_of(client)) is not None
        and counted.total is not None
    }
