"""Deliveries of log lines for tests of the inbox, real and fake."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rules.facts.broker_log import LogSource, Origin, WatermarkWentBack
from service.observe.log_inbox import Store
from service.storage.formats.log import ParsedLines
from service.storage.rounds.inbox import Counts, NewDelivery, StreamState, WaitingLines
from tests.factories import NOON, at

MUCH: Final = 1000


def event(offset: int, topic: str = "orders") -> WatermarkWentBack:
    origin = Origin(source="broker-1", at=at(offset))
    return WatermarkWentBack(
        origin=origin, topic=topic, partition=0, offset_before=offset + 1, offset=offset
    )


def delivery(
    *offsets: int, received_at: datetime = NOON, streams: Sequence[StreamState] = (), **given: Any
) -> NewDelivery:
    source = LogSource(name="broker-1", lines=7, unparsed=1, last_line_at=at(5))
    return NewDelivery(
        received_at=received_at,
        key=given.get("key"),
        digest=given.get("digest", "d"),
        counts=Counts(lines=7, events=len(offsets), unparsed=1),
        parsed=ParsedLines(events=tuple(event(one) for one in offsets), sources=(source,)),
        streams=streams or [stream()],
    )


def stream(name: str = "broker-1", **given: Any) -> StreamState:
    base = {"source": name, "state": "{}", "last_line_at": at(5)}
    return StreamState(name=name, **{**base, **given})


def add(inbox: Store, *new: NewDelivery) -> None:
    for one in new:
        with inbox.turn() as turn:
            turn.add(one)


def read(inbox: Store, after: int = 0, *, events: int = MUCH, rows: int = MUCH) -> WaitingLines:
    return inbox.after(after, max_events=events, max_rows=rows)


def offsets(found: WaitingLines) -> list[int]:
    events = [one for part in found.parsed for one in part.events]
    return [one.offset for one in events if isinstance(one, WatermarkWentBack)]
