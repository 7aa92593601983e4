"""Route of failed records and retries, by client and topic, as clients report them in their metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from rules.record_errors.listing import ListedClient, RecordErrorList, list_record_errors
from service.api.core.paging import Page, Paging, decode_cursor, page_of
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.queries import matches
from service.api.core.stamps import snapshot_of, stamp
from service.api.record_errors.models import (
    RecordErrorPage,
    RecordErrorQuery,
    record_errors,
    status_fields,
)

NAME: Final = "record-errors"


def record_errors_router(sources: Sources) -> APIRouter:
    """Return the route of record errors."""
    router = APIRouter(tags=[NAME])
    lists = PerRound(list_record_errors)

    @router.get("/record-errors", response_model=RecordErrorPage)
    async def list_clients(paging: Paging, query: Annotated[RecordErrorQuery, Query()]) -> Response:
        """Return clients with their failed records and retries by topic; filters show what is known to match.

        They are hints: no loss is reported because of them, and an idempotent Java producer that meets a real loss
        raises only its retries.
        """
        state = sources.state
        after = decode_cursor(query.cursor, NAME, str, str, str)
        scrapes = snapshot_of(state).scrapes

        def answer() -> RecordErrorPage:
            entries = lists.of(scrapes)
            shown = select_clients(entries, state.cluster, query)
            page = page_of(shown, lambda client: client.order, after=after, limit=query.limit)
            rows = Page([record_errors(state.cluster, client) for client in page.items], page.last)
            fields = {**stamp(state), **status_fields(entries), **paging.page(NAME, rows)}
            return RecordErrorPage.of(entries, **fields)

        return await sources.answers.render_once(state, answer, paging)

    return router


def select_clients(
    entries: RecordErrorList, cluster: str, query: RecordErrorQuery
) -> Iterator[ListedClient]:
    """Yield the clients that are known to match a query."""
    if not matches(query.cluster, cluster):
        return
    for client in entries.clients:
        reading = client.reading
        if query.failing and client.last_rise_at is None:
            continue
        if query.topic is not None and (
            reading.topic is None or not matches(query.topic, reading.topic)
        ):
            continue
        if matches(query.client_id, reading.client_id):
            yield client
