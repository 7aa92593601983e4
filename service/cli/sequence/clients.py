"""Says which clients had records fail, or sent them again, at the time of an event.

Evidence is JSON of a Tidemark of any version: an older one has none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rules.sequence.words import format_count
from service.terminal.parts import Row
from service.terminal.words import time

NOT_READ: Final = "not known: no metrics of clients are read"
NOT_WHOLE: Final = (
    "there may be more: not every endpoint of metrics has answered for all of that time"
)
COUNTERS: Final = (("errors", "failed record"), ("retries", "retried record"))


def client_facts(row: Row) -> Iterator[tuple[str, object]]:
    """Yield labelled lines about clients: one per client, and whether there may be more."""
    evidence = row.get("evidence") or {}
    metrics = evidence.get("client_metrics")
    if metrics is None:
        return
    if metrics == "not_read":
        yield "clients", NOT_READ
        return
    clients = evidence.get("record_errors") or []
    for client in clients:
        yield "client", client_words(client)
    hidden = (evidence.get("record_error_clients") or 0) - len(clients)
    if hidden > 0:
        yield "clients", f"{hidden:,} more had records fail, or sent them again"
    if metrics != "complete":
        yield "clients", NOT_WHOLE
    elif not clients:
        yield "clients", "none of those that report it had records fail, or sent them again"


def client_words(client: Row) -> str:
    """Return what rose of a client, and when."""
    name = f"{client.get('client_id')} at {client.get('address')}"
    of_all = "" if client.get("topic") is not None else " (of all its topics together)"
    risen = "; ".join(
        _risen(client, field, what) for field, what in COUNTERS if _has_risen(client, field)
    )
    return f"{name}{of_all}: {risen}"


def _has_risen(client: Row, field: str) -> bool:
    return client.get(f"{field}_until") is not None


def _risen(client: Row, field: str, what: str) -> str:
    count = client.get(field)
    number = f"{what}s, of unknown number" if count is None else format_count(count, what)
    return f"{number}, {time(client.get(f'{field}_since'))} to {time(client.get(f'{field}_until'))}"
