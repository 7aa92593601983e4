"""Routes of receivers: their state, and a test message to one."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response

from service.alerting.alerts.identity import ALERTNAME, SEVERITY, fingerprint
from service.alerting.alerts.quoting import label_set
from service.alerting.notifications.channels import body_of
from service.alerting.notifications.notification import Notification, NotifiedAlert
from service.alerting.receivers.receivers import Receiver
from service.api.core.changing import Done, apply_change, post_of
from service.api.core.paging import Page, Paging, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import not_found
from service.api.core.queries import NoParameters, PageParameters
from service.api.core.stamps import stamp_of
from service.api.deliveries import models
from service.api.deliveries.models import delivery_view, receiver_view
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change

TEST: Final = "TidemarkTest"
LIST: Final = "receivers"


def receivers_router(sources: Sources) -> APIRouter:
    """Return the routes of receivers."""
    router = APIRouter(tags=["receivers"])
    sending = sources.admin.sending

    @router.get("/receivers")
    async def list_receivers(paging: Paging, query: PageParameters) -> models.ReceiverPage:
        """Return receivers by name, with the state of sending to each."""
        after = decode_cursor(query.cursor, LIST, str)
        every = sending.receivers.values()
        page = page_of(every, lambda receiver: (receiver.name,), after=after, limit=query.limit)
        names = [item.name for item in page.items]
        stats = await sources.in_database(lambda: sources.admin.deliveries.stats(names))
        items = [receiver_view(item, stats[item.name], sending) for item in page.items]
        answer = paging.page(LIST, Page(items, page.last))
        return models.ReceiverPage(**stamp_of(sources.utc_now()), **answer)

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
