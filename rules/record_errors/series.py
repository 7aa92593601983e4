"""Which clients have series of their own in history, per topic, and their rates of failed records and retries.

Clients choose their ids, maybe a new one in every process. So a client gets series of its own only from its first
failed record or retry on, keeps its place for a day after it was last seen, and those without a place are one
series of the topic, `REST`: the cost of history is bounded, and every rate is in it once.

Of a client id several processes are added up, as their addresses change with every start.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rules.facts.scrapes import ClientReading, Counted, Scrapes
from rules.facts.times import SECOND_US

MAX_PER_TOPIC: Final = 20  # clients with series of their own
MAX_PER_CLUSTER: Final = 500  # clients of topics: 1,000 series, of the 100,000s of a large cluster
KEPT_US: Final = 24 * 3600 * SECOND_US  # so that random ids add at most so many series a day
REST: Final = (
    "(rest)"  # in place of a client id: all clients of a topic without series of their own
)


class ClientTopic(NamedTuple):
    """A client id and a topic that it writes to."""

    topic: str
    client_id: str


class ClientRates(NamedTuple):
    """Records per second; NaN: not known."""

    errors: float  # failed for good
    retries: float  # sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlaces:
    """The clients that have series of their own, and the topics with a rest."""

    seen_us: Mapping[ClientTopic, int] = field(default_factory=dict)  # when each was last reported
    rest_topics: frozenset[str] = frozenset()  # since the start of the process

    @property
    def series(self) -> tuple[ClientTopic, ...]:
        """Return all clients with series, in order, the rests among them."""
        rests = (ClientTopic(topic, REST) for topic in self.rest_topics)
        return tuple(sorted((*self.seen_us, *rests)))

    def after(self, scrapes: Scrapes, now_us: int) -> ClientPlaces:
        """Return the places after a round: who has one keeps it, and the largest counts come next."""
        reported: dict[ClientTopic, int] = {}  # with their counts
        for client, reading in _by_client(scrapes):
            counts = (_count(counted) for counted in (reading.errors, reading.retries))
            reported[client] = reported.get(client, 0) + sum(counts)
        seen = {
            client: now_us if client in reported else seen_us
            for client, seen_us in self.seen_us.items()
            if client in reported or now_us - seen_us <= KEPT_US
        }
        per_topic = Counter(client.topic for client in seen)
        rests = set(self.rest_topics)
        for client in _new(reported, seen, is_full=len(seen) >= MAX_PER_CLUSTER):
            has_space = per_topic[client.topic] < MAX_PER_TOPIC and len(seen) < MAX_PER_CLUSTER
            if has_space and client.client_id != REST:
                seen[client] = now_us
                per_topic[client.topic] += 1
            else:
                rests.add(client.topic)
        return ClientPlaces(seen_us=seen, rest_topics=frozenset(rests))


def client_rates(scrapes: Scrapes, places: ClientPlaces) -> Mapping[ClientTopic, ClientRates]:
    """Return the rates of all clients with series, in the order of `places.series`.

    A process that several endpoints report counts once. A rate is unknown where no process has a fresh answer.
    """
    processes: dict[ClientTopic, dict[tuple[str, str], ClientRates]] = {}
    fresh, series = scrapes.fresh, places.series
    if not series:
        return {}
    for client, reading in _by_client(scrapes):
        if reading.endpoint not in fresh:
            continue
        own = client if client in places.seen_us else ClientTopic(client.topic, REST)
        rates = ClientRates(_rate(reading.errors), _rate(reading.retries))
        mine = processes.setdefault(own, {})
        name = reading.address, reading.client_id
        mine[name] = _largest(mine[name], rates) if name in mine else rates
    return {client: _sum(processes.get(client, {}).values()) for client in series}


def _by_client(scrapes: Scrapes) -> Iterator[tuple[ClientTopic, ClientReading]]:
    """Yield the readings by topic of clients that are there; one that took the name of the rest is of it."""
    for reading in scrapes.clients:
        if reading.topic is not None and not reading.is_gone:
            yield ClientTopic(reading.topic, reading.client_id or REST), reading


def _new(
    reported: Mapping[ClientTopic, int], seen: Mapping[ClientTopic, int], *, is_full: bool
) -> Iterable[ClientTopic]:
    """Return the clients that ever failed or retried and have no place yet, the largest counts first."""
    candidates = [client for client, count in reported.items() if count > 0 and client not in seen]
    if is_full:  # none gets a place, in whatever order
        return candidates
    return sorted(candidates, key=lambda client: (-reported[client], client))


def _count(counted: Counted | None) -> int:
    """Return how many records a counter has counted; one that is exposed as a rate counts one if it ever rose."""
    if counted is None:
        return 0
    return counted.total or int(bool(counted.rises) or (counted.rate or 0) > 0)


def _largest(first: ClientRates, second: ClientRates) -> ClientRates:
    return ClientRates(_larger(first.errors, second.errors), _larger(first.retries, second.retries))


def _larger(first: float, second: float) -> float:
    if math.isnan(first) or math.isnan(second):
        return second if math.isnan(first) else first
    return max(first, second)


def _rate(counted: Counted | None) -> float:
    return math.nan if counted is None or counted.rate is None else counted.rate


def _sum(rates: Iterable[ClientRates]) -> ClientRates:
    """Return the sums of what is known."""
    each = list(rates)
    return ClientRates(
        _total([process.errors for process in each]), _total([process.retries for process in each])
    )


def _total(rates: list[float]) -> float:
    known = [rate for rate in rates if not math.isnan(rate)]
    return sum(known) if known else math.nan
