"""Puts the series of an endpoint together into facts: one reading per client and topic.

Several series may count the same: in two spellings, scraped by two jobs, or before and after a label
changed. They are never added up, so that nothing is counted twice: of the newest the one that rose most
is taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from collectors.scrapes.counting import RiseAt, SeriesHistory, wall
from collectors.scrapes.endpoints import Endpoint
from collectors.scrapes.selection import Quantity, Series, broker_id_of, hosts_of
from rules.facts.scrapes import ClientReading, Counted, RequestErrors, Rise, UncleanElections

CLIENT_QUANTITIES: Final = (Quantity.RECORD_ERRORS, Quantity.RECORD_RETRIES)

Histories = Mapping[Series, SeriesHistory]
Pairs = list[tuple[Series, SeriesHistory]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The facts of one endpoint."""

    clients: tuple[ClientReading, ...] = ()
    request_errors: tuple[RequestErrors, ...] = ()
    unclean_elections: tuple[UncleanElections, ...] = ()

    def moved(self, by: timedelta) -> Readings:
        """Return the same facts after the wall clock was set; it takes as long as building them."""
        return Readings(
            clients=tuple(_move_client(client, by) for client in self.clients),
            request_errors=tuple(
                replace(error, counted=_move(error.counted, by)) for error in self.request_errors
            ),
            unclean_elections=tuple(
                replace(election, counted=_move(election.counted, by))
                for election in self.unclean_elections
            ),
        )


def readings_of(endpoint: Endpoint, histories: Histories, ahead_us: int) -> Readings:
    """Return the facts, in the order of their names; `ahead_us` leads to the wall clock."""
    clients: dict[tuple[str, str, str], Pairs] = {}
    requests: dict[tuple[str, str, str], Pairs] = {}
    elections: dict[str, Pairs] = {}
    for series, history in histories.items():
        address, pair = series.place or endpoint.address, (series, history)
        if series.quantity in CLIENT_QUANTITIES:
            key = (address, series.client_id or "", series.topic or "")
            clients.setdefault(key, []).append(pair)
        elif series.quantity is Quantity.REQUEST_ERRORS:
            key = (address, series.request or "", series.error or "")
            requests.setdefault(key, []).append(pair)
        else:
            elections.setdefault(address, []).append(pair)
    return Readings(
        clients=tuple(
            _client(endpoint.name, key, pairs, ahead_us) for key, pairs in sorted(clients.items())
        ),
        request_errors=tuple(
            RequestErrors(
                endpoint=endpoint.name,
                address=address,
                request=request,
                error=error,
                is_gone=_is_gone(pairs),
                counted=_count(pairs, ahead_us),
                broker_id=_broker_id(pairs),
                hosts=tuple(
                    dict.fromkeys(host for series, _ in pairs for host in hosts_of(series))
                ),
            )
            for (address, request, error), pairs in sorted(requests.items())
        ),
        unclean_elections=tuple(
            UncleanElections(
                endpoint=endpoint.name,
                address=address,
                is_gone=_is_gone(pairs),
                counted=_count(pairs, ahead_us),
            )
            for address, pairs in sorted(elections.items())
        ),
    )


def _client(endpoint: str, key: tuple[str, str, str], pairs: Pairs, ahead_us: int) -> ClientReading:
    address, client_id, topic = key
    errors = [pair for pair in pairs if pair[0].quantity is Quantity.RECORD_ERRORS]
    retries = [pair for pair in pairs if pair[0].quantity is Quantity.RECORD_RETRIES]
    every = [history for _, history in pairs]
    return ClientReading(
        endpoint=endpoint,
        address=address,
        client_id=client_id,
        topic=topic or None,
        seen_since=wall(min(history.first_us for history in every) + ahead_us),
        seen_at=wall(max(history.seen.ended_us for history in every) + ahead_us),
        is_gone=_is_gone(pairs),
        errors=_count(errors, ahead_us) if errors else None,
        retries=_count(retries, ahead_us) if retries else None,
    )


def _broker_id(pairs: Pairs) -> int | None:
    """Return the broker's id, None where no label has it, or labels disagree."""
    ids = {broker for series, _ in pairs if (broker := broker_id_of(series)) is not None}
    return ids.pop() if len(ids) == 1 else None


def _is_gone(pairs: Pairs) -> bool:
    return all(history.is_gone for _, history in pairs)


def _count(pairs: Pairs, ahead_us: int) -> Counted:
    """Return the count of several series of one quantity; a total is preferred to a rate."""
    totals = [history for series, history in pairs if not series.is_rate]
    rates = [history for series, history in pairs if series.is_rate]
    rises = _rises(totals or rates, ahead_us)
    client_rate = max((history.value for history in rates), default=None)
    if not totals:
        return Counted(total=None, increase=None, since=None, rate=client_rate, rises=rises)
    best = max(
        totals, key=lambda history: (history.seen.ended_us, history.increase or 0, history.value)
    )
    return Counted(
        total=round(best.value),
        increase=best.increase,
        since=None if best.since_us is None else wall(best.since_us + ahead_us),
        rate=client_rate if best.rate is None else best.rate,
        rises=rises,
    )


def _rises(series: list[SeriesHistory], ahead_us: int) -> tuple[Rise, ...]:
    """Return all rises in order of time; of several at the same time the largest."""
    if len(series) == 1:
        return tuple(rise.at(ahead_us) for rise in series[0].rises)
    largest: dict[tuple[int, int], RiseAt] = {}
    for rise in (rise for history in series for rise in history.rises):
        other = largest.get((rise.until_us, rise.since_us))
        if other is None or (rise.count or 0) > (other.count or 0):
            largest[rise.until_us, rise.since_us] = rise
    return tuple(largest[key].at(ahead_us) for key in sorted(largest))


def _move_client(reading: ClientReading, by: timedelta) -> ClientReading:
    return replace(
        reading,
        seen_since=reading.seen_since + by,
        seen_at=reading.seen_at + by,
        errors=None if reading.errors is None else _move(reading.errors, by),
        retries=None if reading.retries is None else _move(reading.retries, by),
    )


def _move(counted: Counted, by: timedelta) -> Counted:
    return replace(
        counted,
        since=None if counted.since is None else counted.since + by,
        rises=tuple(
            Rise(since=rise.since + by, until=rise.until + by, count=rise.count)
            for rise in counted.rises
        ),
    )
