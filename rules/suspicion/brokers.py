"""Finds the broker that a page of metrics belongs to: brokers do not expose their id there.

A configured id comes first, then a label, then the host: that of the page or of a label, as a broker
advertises it, or its first part, which is the pod's name in Kubernetes. Several brokers on one host
are all possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rules.facts.identity import Broker
from rules.facts.scrapes import RequestErrors, Scrapes


def brokers_of(
    reading: RequestErrors, scrapes: Scrapes, brokers: Sequence[Broker]
) -> tuple[int, ...]:
    """Return the ids of the brokers of which a counter may be, ascending; none: it is no broker's."""
    names = (reading.address, *reading.hosts)
    configured = {scrapes.broker_ids[name] for name in names if name in scrapes.broker_ids}
    if configured:
        return tuple(sorted(configured))
    ids = {int(broker.broker_id) for broker in brokers}
    if reading.broker_id in ids and reading.broker_id is not None:
        return (reading.broker_id,)
    hosts = {_host(name) for name in names}
    same = [broker for broker in brokers if broker.host.lower() in hosts]
    if not same:
        short = {_first_part(host) for host in hosts} - {None}
        same = [broker for broker in brokers if _first_part(broker.host.lower()) in short]
    return _ids(same)


def _ids(brokers: Iterable[Broker]) -> tuple[int, ...]:
    return tuple(sorted(int(broker.broker_id) for broker in brokers))


def _host(name: str) -> str:
    """Return the host of host:port, `[address]:port` or a bare name, in lower case."""
    if name.startswith("["):
        return name[1:].partition("]")[0].lower()
    host, _, port = name.rpartition(":")
    is_port = bool(host) and ":" not in host and port.isdecimal()
    return (host if is_port else name).lower()


def _first_part(host: str) -> str | None:
    """Return the first part of a name; None for an address, whose parts mean nothing."""
    part = host.partition(".")[0]
    is_address = ":" in host or part.isdecimal()
    return None if is_address or not part else part
