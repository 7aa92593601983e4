"""Valid readings of metrics with overrides, as `tests/factories.py` has of the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rules.facts.scrapes import (
    ClientReading,
    Counted,
    EndpointKind,
    EndpointState,
    RequestErrors,
    Rise,
    Scrapes,
    UncleanElections,
)
from tests.factories import NOON, at

PAGE = "http://app-1:8081/metrics"


def endpoint_state(name: str = PAGE, **overrides: Any) -> EndpointState:
    """Return a page that has answered every 15 s for ten minutes, the last time at noon."""
    base = EndpointState(
        name=name,
        kind=EndpointKind.PAGE,
        answered_since=at(-600),
        answered_at=NOON,
        is_fresh=True,
        is_up=True,
        took_seconds=0.01,
        samples=4,
    )
    return replace(base, **overrides)


def rise(since: float, until: float, count: int | None = 1) -> Rise:
    """Return a rise between two times, in seconds after noon."""
    return Rise(since=at(since), until=at(until), count=count)


def counted(*rises: Rise, **overrides: Any) -> Counted:
    """Return a counter that was observed at noon and 15 s before, with these rises."""
    last = sum(one.count or 0 for one in rises if one.until == NOON)
    base = Counted(
        total=sum(one.count or 0 for one in rises),
        increase=last,
        since=at(-15),
        rate=last / 15,
        rises=rises,
    )
    return replace(base, **overrides)


def client_reading(client_id: str = "payments", **overrides: Any) -> ClientReading:
    """Return a producer of the topic orders without errors, which has reported for ten minutes."""
    base = ClientReading(
        endpoint=PAGE,
        address="app-1:8081",
        client_id=client_id,
        topic="orders",
        seen_since=at(-600),
        seen_at=NOON,
        is_gone=False,
        errors=counted(),
        retries=counted(),
    )
    return replace(base, **overrides)


def request_errors(**overrides: Any) -> RequestErrors:
    """Return four produce requests that broker 1 rejected, one of them since the scrape before."""
    base = RequestErrors(
        endpoint=PAGE,
        address="broker-1:7071",
        request="Produce",
        error="NOT_LEADER_OR_FOLLOWER",
        is_gone=False,
        counted=counted(rise(-15, 0), total=4),
    )
    return replace(base, **overrides)


def unclean_elections(**overrides: Any) -> UncleanElections:
    """Return the one unclean election of a controller."""
    base = UncleanElections(
        endpoint=PAGE, address="controller-1:7071", is_gone=False, counted=counted(total=1)
    )
    return replace(base, **overrides)


def scrapes(*clients: ClientReading, **overrides: Any) -> Scrapes:
    """Return what one page said at noon."""
    base = Scrapes(is_read=True, endpoints=(endpoint_state(),), clients=clients)
    return replace(base, **overrides)
