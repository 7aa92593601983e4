"""Which clients had records fail, or sent them again, at the time of rejected batches, as sequence events name them.

They are no proof of a loss: a client retries when a reordering heals, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from service.cli.incident.report import ClientOfEvent
from service.cli.incident.window import Window
from service.cli.sequence.clients import NOT_READ, NOT_WHOLE
from service.cli.server.report import Api
from service.terminal.parts import Row
from service.terminal.words import text, timestamp_of

COUNTERS: Final = ("errors", "retries")


def events_of(api: Api, window: Window) -> list[Row]:
    """Return the sequence events of a time, the newest first; ended ones are kept for a day."""
    return [
        row
        for page in api.pages("sequences", state="all")
        for row in page["items"]
        if window.overlaps(timestamp_of(row.get("first_seen")), timestamp_of(row.get("ended_at")))
    ]


def clients_of(events: Iterable[Row], is_related: Callable[[Row], bool]) -> Iterator[ClientOfEvent]:
    """Yield the clients that events name."""
    for event in events:
        for client in (event.get("evidence") or {}).get("record_errors") or ():
            yield ClientOfEvent.model_validate(
                {
                    **client,
                    "sequence": event["id"],
                    "of_topic": event.get("topic"),
                    "partition": event.get("partition"),
                    "is_related": is_related(event),
                },
                extra="ignore",
            )


def missing_clients(events: Iterable[Row]) -> Iterator[str]:
    """Yield of which events clients may be missing, and why; an older Tidemark knows of no clients."""
    whys = {"not_read": NOT_READ, "incomplete": NOT_WHOLE}
    for event in events:
        why = whys.get(str((event.get("evidence") or {}).get("client_metrics")))
        if why is not None:
            place = f"{text(event.get('topic'))}-{text(event.get('partition'))}"
            yield f"clients of sequences/{event['id']} ({place}): {why}"


def rises_of(client: ClientOfEvent) -> Iterator[tuple[object, str]]:
    """Yield the end of each rise, and what rose."""
    name = f"{client.client_id} at {client.address}"
    topic = "all its topics" if client.topic is None else client.topic
    for counter in COUNTERS:
        until, count = getattr(client, f"{counter}_until"), getattr(client, counter)
        if until is not None:
            by = "" if count is None else f" by {count:,}"
            yield until.isoformat(), f"record {counter} of {name} for {topic} had risen{by}"
