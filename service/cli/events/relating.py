"""The changes of a time that an alert may have begun with: of its topics, and of brokers and the whole cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from rules.errors import TidemarkError
from service.cli.events.command import PATH, RESOURCE
from service.cli.server.report import Api
from service.terminal.parts import Line, Part, Row
from service.terminal.words import timestamp_of

BEFORE: Final = timedelta(hours=1)  # a change may take so long to show
MOST: Final = 1000  # events that are read of a time
MOST_TOPICS: Final = 10
SHOWN: Final = 10


def related_changes(
    api: Api, topics: Collection[str], since: datetime, until: datetime | None
) -> list[Row]:
    """Return the changes of a time, newest first: of these topics, or all without any, and of no topic.

    Raises:
        TidemarkError: they cannot be fetched; an older Tidemark has none.
    """
    times: dict[str, str | int] = {"since": since.isoformat()}
    if until is not None:
        times["until"] = until.isoformat()
    rows = {row["id"]: row for row in _rows(api, times) if not topics or _is_of_no_topic(row)}
    for topic in sorted(topics)[:MOST_TOPICS]:
        rows |= {row["id"]: row for row in _rows(api, {**times, "topic": topic})}
    return sorted(rows.values(), key=lambda row: str(row.get("seen_at")), reverse=True)


def changes_of_alert(api: Api, alert: Row) -> list[Row] | None:
    """Return the changes from an hour before an alert until it ended; None: they are not known."""
    begin = timestamp_of(alert.get("active_at"))
    topic = (alert.get("labels") or {}).get("topic")
    if begin is None:
        return None
    end = timestamp_of(alert.get("resolved_at"))
    try:
        return related_changes(api, [topic] if topic else [], begin - BEFORE, end)
    except TidemarkError:
        return None


def render_changes(rows: Collection[Row] | None) -> Iterator[Part]:
    """Yield the newest of the changes that an alert may have begun with; nothing without any."""
    if rows is None:
        yield Line("What changed in the cluster at that time is not known.")
    elif rows:
        yield Line("CHANGES from an hour before, newest first", "bold")
        yield RESOURCE.table(list(rows)[:SHOWN])
        if len(rows) > SHOWN:
            yield Line(f"{len(rows) - SHOWN:,} more: tidemark events ls")


def _rows(api: Api, query: dict[str, str | int]) -> Iterator[Row]:
    count = 0
    for page in api.pages(PATH, **query):
        yield from page["items"]
        count += len(page["items"])
        if count >= MOST:
            return


def _is_of_no_topic(row: Row) -> bool:
    return not any(subject.get("topic") for subject in row.get("subjects") or ())
