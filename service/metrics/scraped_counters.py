"""Series of what clients, brokers and controllers count themselves, as far as their endpoints are fresh.

Their totals are exposed as they are: a process that starts again counts from 0, as Prometheus expects of
a counter. Several endpoints may expose one process, of which the largest total is the latest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from rules import names
from rules.facts.scrapes import ClientReading, Counted, Scrapes
from rules.names import Metric

Labels = tuple[
    str | None, ...
]  # behind `cluster`, as the metric has them; None: without this label
CountedOf = Callable[[ClientReading], Counted | None]
_RECORDS: Final[Mapping[Metric, CountedOf]] = {
    names.RECORD_ERRORS: lambda client: client.errors,
    names.RECORD_RETRIES: lambda client: client.retries,
}


def scraped_counters(scrapes: Scrapes) -> dict[Metric, dict[Labels, int]]:
    """Return the totals of every metric, the few of brokers and controllers first."""
    fresh = scrapes.fresh
    clients = [
        client for client in scrapes.clients if client.endpoint in fresh and not client.is_gone
    ]
    return {
        names.BROKER_REQUEST_ERRORS: _latest(
            ((errors.address, errors.request, errors.error), errors.counted)
            for errors in scrapes.request_errors
            if errors.endpoint in fresh and not errors.is_gone
        ),
        names.UNCLEAN_ELECTIONS: _latest(
            ((elections.address,), elections.counted)
            for elections in scrapes.unclean_elections
            if elections.endpoint in fresh and not elections.is_gone
        ),
        **{
            metric: _latest(_of_clients(clients, counted_of))
            for metric, counted_of in _RECORDS.items()
        },
    }


def _latest(counters: Iterable[tuple[Labels, Counted]]) -> dict[Labels, int]:
    """Return the largest total by labels."""
    totals: dict[Labels, int] = {}
    for labels, counted in counters:
        if counted.total is not None:
            totals[labels] = max(counted.total, totals.get(labels, 0))
    return totals


def _of_clients(
    clients: Iterable[ClientReading], counted_of: CountedOf
) -> Iterator[tuple[Labels, Counted]]:
    """Yield the counters of clients; a client's sum over its topics only where it has none by topic."""
    every = [
        (client, counted)
        for client in clients
        if (counted := counted_of(client)) is not None and counted.total is not None
    ]
    by_topic = {
        (client.client_id, client.address) for client, _ in every if client.topic is not None
    }
    for client, counted in every:
        if client.topic is not None or (client.client_id, client.address) not in by_topic:
            yield (client.client_id, client.address, client.topic), counted
