"""Whether rounds were made in all of the time of an incident: of a time without rounds nothing is known.

There is none while the service is not started, or cannot reach the cluster. History has what each round measured; without
it only the start of the service is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from rules.errors import CollectError, TidemarkError
from service.cli.incident.report import ChartPoint
from service.cli.incident.svg import longest_gaps
from service.cli.incident.window import Window
from service.cli.server.report import Api
from service.terminal.parts import Row
from service.terminal.words import timestamp, timestamp_of

LATE: Final = 3  # so many intervals without a round are too many
MOST_TIMES: Final = 10  # without a round that are named
OF_EACH_ROUND: Final = "open_span"  # every round measures it, of every partition that has a leader
OLDEST: Final = "^__consumer_offsets$"  # a topic that was there before the incident


def times_without_rounds(api: Api, status: Row, window: Window) -> Iterator[str]:
    """Yield of which times nothing is known, because no round was made, or it is not known whether one was."""
    last = timestamp_of(status.get("as_of"))
    if last is None:
        yield "rounds: none is known of"
        return
    now = timestamp_of(status.get("now")) or window.end
    interval = timedelta(seconds=(status.get("round") or {}).get("interval_seconds") or 0)
    if last <= window.begin or min(window.end, now) - last > LATE * interval:
        yield f"rounds: none was made since {timestamp(last)}"
    if window.begin < last:
        yield from _times_before(api, status, Window(window.begin, min(window.end, last)))


def _times_before(api: Api, status: Row, window: Window) -> Iterator[str]:
    try:
        place = _place(api)
        times = {"from": window.begin.isoformat(), "to": window.end.isoformat()}
        measured = api.get("measured", metric=OF_EACH_ROUND, **place, **times)["measured"]
    except TidemarkError as exc:
        started = timestamp_of(status.get("started_at"))
        if started is None or started > window.begin:
            yield f"rounds: whether any was made before {timestamp(started)} is not known, as the service started then: {exc}"
        return
    yield from (f"{row['file']}: {row['reason']}" for row in measured["unreadable"])
    gaps = list(_gaps(measured, window))
    for gap in gaps[:MOST_TIMES]:
        yield _without_round(api, place, *gap)
    if len(gaps) > MOST_TIMES:
        yield f"rounds: {len(gaps) - MOST_TIMES:,} more times without one"


def _place(api: Api) -> dict[str, str | int]:
    """Return the labels of a partition that every round of the time should have measured.

    Raises:
        CollectError: there is none.
    """
    for query in ({"topic": OLDEST}, {}):
        for row in api.get("partitions", limit=1, **query)["items"]:
            return {"topic": row["topic"], "partition": row["partition"]}
    raise CollectError("no partition is seen")


def _gaps(measured: Row, window: Window) -> Iterator[tuple[datetime, datetime]]:
    points = [ChartPoint(at=row["at"], value=row["value"]) for row in measured["values"]]
    if not any(point.value is not None for point in points):
        yield window.begin, window.end
        return
    yield from longest_gaps(points, LATE * timedelta(seconds=measured["step_seconds"]))


def _without_round(api: Api, place: dict[str, str | int], begin: datetime, end: datetime) -> str:
    """Return what is known of a time of which history has no samples."""
    times = f"from {timestamp(begin)} to {timestamp(end)}"
    try:
        past = api.find("at", time=(begin + (end - begin) / 2).isoformat(), **place)
    except TidemarkError as exc:
        return f"rounds: whether any was made {times} is not known: {exc}"
    if past is None or past.get("read_at") is not None:
        name = f"{place['topic']}-{place['partition']}"
        return (
            f"rounds: whether all were made {times} is not known, as they have no offsets of {name}"
        )
    begin, end = timestamp_of(past.get("before")) or begin, timestamp_of(past.get("after")) or end
    return f"rounds: none was made from {timestamp(begin)} to {timestamp(end)}"
