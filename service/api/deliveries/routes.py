"""Routes of deliveries: notifications with their attempts, and the replay of one that was given up."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from service.api.core.changing import Done, apply_change, caller_of, post_of
from service.api.core.paging import (
    INT64_MAX,
    Page,
    Paging,
    decode_row_cursor,
    first_of,
)
from service.api.core.ports import Sources
from service.api.core.problems import conflict, existing
from service.api.core.queries import NoParameters
from service.api.core.stamps import stamp_of
from service.api.deliveries import models
from service.api.deliveries.models import DeliveryQuery, attempt_view, body_view, delivery_view
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change
from service.storage.delivery.deliveries import DEAD, DeliveryFilter, DeliveryStory
from service.storage.tokens.tokens import Scope

NO_DELIVERY: Final = "there is no such delivery; they are kept for 30 days"
LIST: Final = "deliveries"

DeliveryId = Annotated[int, Path(ge=1, le=INT64_MAX)]


def deliveries_router(sources: Sources) -> APIRouter:
    """Return the routes of deliveries."""
    router = APIRouter(tags=["deliveries"])

    @router.get("/deliveries")
    async def list_deliveries(
        paging: Paging, query: Annotated[DeliveryQuery, Query()]
    ) -> models.DeliveryPage:
        """Return deliveries, newest first."""
        filters = DeliveryFilter(
            receiver=query.receiver,
            state=None if query.state is None else query.state.value,
            before=decode_row_cursor(query.cursor, LIST),
        )
        rows = await sources.in_database(
            lambda: sources.admin.deliveries.page(filters, query.limit + 1)
        )
        page = first_of(rows, query.limit, lambda delivery: (delivery.id,))
        shown = Page([delivery_view(delivery) for delivery in page.items], page.last)
        return models.DeliveryPage(**stamp_of(sources.utc_now()), **paging.page(LIST, shown))

    @router.get("/deliveries/{delivery_id}")
    async def get_delivery(
        delivery_id: DeliveryId, request: Request, _query: NoParameters
    ) -> models.DeliveryDetail:
        """Return a delivery with its attempts and its body."""
        story = existing(
            await sources.in_database(lambda: sources.admin.deliveries.one(delivery_id)),
            NO_DELIVERY,
        )
        may_read_reply = Scope.ADMIN in caller_of(request).scopes
        return await sources.in_thread(
            lambda: _detail(sources, story, may_read_reply=may_read_reply)
        )

    @post_of(router, "/deliveries/{delivery_id}/replay", models.Enqueued, HTTPStatus.ACCEPTED)
    async def replay_delivery(
        delivery_id: DeliveryId, request: Request, _query: NoParameters
    ) -> Response:
        """Replay a delivery that was given up, unless its receiver got something newer since."""
        return await apply_change(
            request, sources, lambda change: _replay(change, delivery_id, sources.admin.wake)
        )

    return router


def _detail(
    sources: Sources, story: DeliveryStory, *, may_read_reply: bool
) -> models.DeliveryDetail:
    return models.DeliveryDetail(
        **stamp_of(sources.utc_now()),
        delivery=delivery_view(story.delivery),
        attempts=[
            attempt_view(attempt, may_read_reply=may_read_reply) for attempt in story.attempts
        ],
        body=body_view(story),
    )


def _replay(change: Change, delivery_id: int, wake: Callable[[], None]) -> Done:
    taken = existing(change.deliveries.take(delivery_id), NO_DELIVERY)
    if taken.state != DEAD:
        raise conflict(
            f"only a delivery that was given up can be replayed; this one is {taken.state}"
        )
    if not taken.body:
        raise conflict("its body is no longer stored")
    newer = change.deliveries.newer(taken)
    if newer is not None:
        raise conflict(f"delivery {newer.id} of the same group has the same or a newer state")
    replay = change.deliveries.replay(taken)
    details = {"receiver": replay.receiver, "delivery": replay.id, "webhook_id": replay.webhook_id}
    return Done(
        audit_event=AuditEvent(
            action=Action.DELIVERY_REPLAY, target=str(delivery_id), details=details
        ),
        status=HTTPStatus.ACCEPTED,
        model=models.Enqueued(**stamp_of(change.now), delivery=delivery_view(replay)),
        after=wake,
    )
