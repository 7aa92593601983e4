"""Routes of change events: what changed in the cluster, newest first, from the database."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from rules.facts.change_events import ChangeEventKind
from rules.facts.last_observation import microseconds
from service.api.core.bodies import Timestamp
from service.api.core.models import Paged, Stamped
from service.api.core.paging import Page, Paging, decode_time_cursor, first_of
from service.api.core.ports import Sources
from service.api.core.problems import existing
from service.api.core.queries import NoParameters, PageQuery, Pattern, Word
from service.api.core.stamps import stored_stamp
from service.storage.rounds.change_events import ChangeEventFilter, StoredChangeEvent
from service.views.change_events import ChangeEventRow, change_event_row

LIST: Final = "events"
NO_EVENT: Final = "there is no such change event"


class ChangeEventPage(Paged[ChangeEventRow]):
    """Change events, those seen last first."""


class ChangeEventDetail(Stamped):
    """A change event."""

    event: ChangeEventRow


class ChangeEventQuery(PageQuery):
    """Which change events."""

    cluster: Word | None = None
    """Configured name of another cluster of the database; by default the service's own"""
    kind: ChangeEventKind | None = None
    topic: Pattern | None = None
    """One of the event's topics"""
    since: Annotated[Timestamp | None, Field(description="Seen from here on")] = None
    until: Annotated[Timestamp | None, Field(description="Seen up to here")] = None


def change_events_router(sources: Sources) -> APIRouter:
    """Return the routes of change events."""
    router = APIRouter(tags=["events"])
    events = sources.admin.change_events

    @router.get("/events", response_model=ChangeEventPage)
    async def list_events(paging: Paging, query: Annotated[ChangeEventQuery, Query()]) -> Response:
        """Return what changed in the cluster, seen last first: topics, replicas, brokers, settings, features.

        A change is a difference of two answers: it happened between `since` and `seen_at`. What could not be read
        is no change. The same change of many subjects is one event.
        """
        state = sources.state
        filters = ChangeEventFilter(
            cluster=query.cluster or state.cluster,
            kind=query.kind,
            topic=query.topic,
            since=query.since,
            until=query.until,
            after=decode_time_cursor(query.cursor, LIST),
        )
        rows = await sources.in_database(lambda: events.page(filters, query.limit + 1))
        page = first_of(rows, query.limit, lambda row: (microseconds(row.seen_at), row.row))

        def answer() -> ChangeEventPage:
            shown = Page([_row(row) for row in page.items], page.last)
            return ChangeEventPage(**stored_stamp(state), **paging.page(LIST, shown))

        return await sources.answers.render(answer, paging)

    @router.get("/events/{event_id}", response_model=ChangeEventDetail)
    async def get_event(
        event_id: Annotated[str, Path(max_length=100, examples=["0123456789ab"])],
        _query: NoParameters,
    ) -> Response:
        """Return a change event."""
        state = sources.state
        row = await sources.in_database(lambda: events.find(state.cluster, event_id))
        stored = existing(row, NO_EVENT)
        return await sources.answers.render(
            lambda: ChangeEventDetail(**stored_stamp(state), event=_row(stored))
        )

    return router


def _row(stored: StoredChangeEvent) -> ChangeEventRow:
    return change_event_row(
        stored.event,
        seen_at=stored.seen_at,
        since=stored.since,
        cluster=stored.cluster,
        cluster_id=stored.cluster_id,
    )
