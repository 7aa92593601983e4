"""Routes of deliveries and receivers: attempts, replay of a delivery that was given up, a test message."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from service.alerting.alerts.identity import ALERTNAME, SEVERITY, fingerprint
from service.alerting.alerts.quoting import label_set
from service.alerting.notifications.channels import body_of
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.receivers.receivers import Receiver
from service.api.core.changing import Done, apply_change, caller_of, post_of
from service.api.core.paging import (
    INT64_MAX,
    Page,
    Paging,
    decode_cursor,
    decode_row_cursor,
    first_of,
    page_of,
)
from service.api.core.ports import Sources
from service.api.core.problems import conflict, existing, not_found
from service.api.core.queries import NoParameters, PageParameters
from service.api.core.stamps import stamp_of
from service.api.deliveries import models
from service.api.deliveries.models import (
    DeliveryQuery,
    attempt_view,
    body_view,
    delivery_view,
    receiver_view,
)
from service.jobs.retention import KEPT
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change
from service.storage.delivery.deliveries import DEAD, DeliveryFilter, DeliveryStory
from service.storage.jobs.retention import Kind
from service.storage.tokens.tokens import Scope

NO_DELIVERY: Final = (
    f"there is no such delivery; they are kept for {KEPT[Kind.DELIVERIES].days} days"
)
LIST: Final = "deliveries"
RECEIVERS: Final = "receivers"
TEST: Final = "TidemarkTest"  # name of the alert

DeliveryId = Annotated[int, Path(ge=1, le=INT64_MAX)]


def deliveries_router(sources: Sources) -> APIRouter:
    """Return the routes of deliveries."""
    router = APIRouter(tags=["deliveries"])

    @router.get("/deliveries", response_model=models.DeliveryPage)
    async def list_deliveries(paging: Paging, query: Annotated[DeliveryQuery, Query()]) -> Response:
        """Return deliveries, newest first."""
        page = await _page(sources, query)

        def answer() -> models.DeliveryPage:
            return models.DeliveryPage(**stamp_of(sources.utc_now()), **paging.page(LIST, page))

        return await sources.answers.render(answer, paging)

    @router.get("/deliveries/{delivery_id}", response_model=models.DeliveryDetail)
    async def get_delivery(
        delivery_id: DeliveryId, request: Request, _query: NoParameters
    ) -> Response:
        """Return a delivery with its attempts and its body."""
        story = existing(
            await sources.in_database(lambda: sources.admin.deliveries.one(delivery_id)),
            NO_DELIVERY,
        )
        may_read_reply = Scope.ADMIN in caller_of(request).scopes
        return await sources.answers.render(
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


async def _page(sources: Sources, query: DeliveryQuery) -> Page[models.Delivery]:
    filters = DeliveryFilter(
        receiver=query.receiver,
        state=None if query.state is None else query.state.value,
        before=decode_row_cursor(query.cursor, LIST),
    )
    rows = await sources.in_database(
        lambda: sources.admin.deliveries.page(filters, query.limit + 1)
    )
    page = first_of(rows, query.limit, lambda delivery: (delivery.id,))
    return Page([delivery_view(delivery) for delivery in page.items], page.last)


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


def receivers_router(sources: Sources) -> APIRouter:
    """Return the routes of receivers."""
    router = APIRouter(tags=["receivers"])
    sending = sources.admin.sending

    @router.get("/receivers", response_model=models.ReceiverPage)
    async def list_receivers(paging: Paging, query: PageParameters) -> Response:
        """Return receivers by name, with the state of sending to each."""
        after = decode_cursor(query.cursor, RECEIVERS, str)
        every = sending.receivers.values()
        page = page_of(every, lambda receiver: (receiver.name,), after=after, limit=query.limit)
        names = [item.name for item in page.items]
        stats = await sources.in_database(lambda: sources.admin.deliveries.stats(names))

        def answer() -> models.ReceiverPage:
            items = [receiver_view(item, stats[item.name], sending) for item in page.items]
            shown = paging.page(RECEIVERS, Page(items, page.last))
            return models.ReceiverPage(**stamp_of(sources.utc_now()), **shown)

        return await sources.answers.render(answer, paging)

    @post_of(router, "/receivers/{name}/test", models.Enqueued, HTTPStatus.ACCEPTED)
    async def send_test_message(
        name: Annotated[str, Path(max_length=200)], request: Request, _query: NoParameters
    ) -> Response:
        """Send a test message to a receiver; /deliveries shows its progress."""
        receiver = sending.receivers.get(name)
        if receiver is None:
            raise not_found("there is no such receiver")
        return await apply_change(
            request, sources, lambda change: _send_test(change, sources, receiver)
        )

    return router


def _send_test(change: Change, sources: Sources, receiver: Receiver) -> Done:
    message = _message(sources, receiver, change.who, change.now)
    delivery = change.deliveries.add_test(
        receiver.name, message.group_key, body_of(receiver, message)
    )
    details = {"delivery": delivery.id, "webhook_id": delivery.webhook_id}
    return Done(
        audit_event=AuditEvent(action=Action.RECEIVER_TEST, target=receiver.name, details=details),
        status=HTTPStatus.ACCEPTED,
        model=models.Enqueued(**stamp_of(change.now), delivery=delivery_view(delivery)),
        after=sources.admin.wake,
    )


def _message(sources: Sources, receiver: Receiver, who: str, now: datetime) -> Notification:
    """Return the test notification; always of one group, so that a newer one supersedes a stuck one."""
    labels = {ALERTNAME: TEST, "cluster": sources.state.cluster, SEVERITY: "info"}
    alert = NotifiedAlert(
        labels=labels,
        annotations={
            "summary": "This is a test: nothing is wrong.",
            "description": f"{who} tests this receiver. No resolved notification follows.",
        },
        starts_at=now,
        fingerprint=fingerprint(labels),
        generator_url=sources.admin.sending.external_url,
    )
    return Notification(
        receiver=receiver.name,
        group_key=f'{{}}/{{{ALERTNAME}="{TEST}"}}:{label_set(tuple(sorted(labels.items())))}',
        group_labels=labels,
        reason="test",
        external_url=sources.admin.sending.external_url,
        alerts=(alert,),
    )
