"""Routes of alerts: listing, acknowledging, feedback, and closing of events."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response

from rules.facts.last_observation import microseconds
from rules.verdict import Kind
from service.alerting.alerts.alert import AlertState
from service.api.alerts import models
from service.api.alerts.models import (
    AlertQuery,
    alert_stamp,
    alert_view,
    groups_of,
    kind_of,
    now_of,
    receivers_of,
)
from service.api.core.changing import Done, apply_change, post_of
from service.api.core.paging import Key, Page, Paging, decode_time_cursor
from service.api.core.ports import Sources
from service.api.core.problems import conflict, existing, not_found
from service.api.core.queries import NoParameters
from service.api.core.stamps import stamp_of
from service.api.deliveries.models import delivery_view
from service.storage.alerting.alert_lists import AlertFilter, AlertReading, StoredAlert
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change
from service.storage.delivery.deliveries import list_for_groups

NO_ALERT: Final = "there is no such alert"
LIST: Final = "alerts"
BATCH: Final = 1000  # rows read at once
MOST_BATCHES: Final = 10  # for one page; a filter by receiver may show few of many

Fingerprint = Annotated[
    str, Path(pattern="^[0-9a-f]{16}$", examples=["0123456789abcdef"], description="Of the labels")
]


def alerts_router(sources: Sources) -> APIRouter:
    """Return the routes of alerts."""
    router = APIRouter(tags=["alerts"])
    _add_reads(router, sources)
    _add_acknowledging(router, sources)
    _add_feedback(router, sources)
    _add_closing(router, sources)
    return router


def _add_reads(router: APIRouter, sources: Sources) -> None:
    @router.get("/alerts", response_model=models.AlertPage)
    async def list_alerts(paging: Paging, query: Annotated[AlertQuery, Query()]) -> Response:
        """Return alerts as of the last stored round."""
        after = decode_time_cursor(query.cursor, LIST)
        stamped, page = await sources.in_database(lambda: _page(sources, query, after))
        return await sources.answers.render(
            lambda: models.AlertPage(**stamped, **paging.page(LIST, page)), paging
        )

    @router.get("/alerts/{fingerprint}", response_model=models.AlertDetail)
    async def get_alert(fingerprint: Fingerprint, _query: NoParameters) -> Response:
        """Return an alert with its steps and the notifications that were sent."""
        detail = await sources.in_database(lambda: _detail(sources, fingerprint))
        return await sources.answers.render(lambda: detail)


def _add_acknowledging(router: APIRouter, sources: Sources) -> None:
    @post_of(router, "/alerts/{fingerprint}/acknowledge", models.AckDetail)
    async def acknowledge_alert(
        fingerprint: Fingerprint, body: models.AckBody, request: Request, _query: NoParameters
    ) -> Response:
        """Acknowledge a firing alert: its notification is no longer repeated."""
        return await apply_change(request, sources, lambda change: _ack(change, fingerprint, body))

    @router.delete("/alerts/{fingerprint}/acknowledge", status_code=HTTPStatus.NO_CONTENT)
    async def unacknowledge_alert(
        fingerprint: Fingerprint, request: Request, _query: NoParameters
    ) -> Response:
        """Withdraw an acknowledgement."""
        return await apply_change(request, sources, lambda change: _unack(change, fingerprint))


def _add_feedback(router: APIRouter, sources: Sources) -> None:
    @post_of(router, "/alerts/{fingerprint}/feedback", models.FeedbackDetail)
    async def give_feedback(
        fingerprint: Fingerprint, body: models.FeedbackBody, request: Request, _query: NoParameters
    ) -> Response:
        """Say whether the last firing of an alert was an incident; also after it has resolved.

        Baseline runs that are made from now on do not learn from an incident, and learn from a false alarm.
        """
        return await apply_change(
            request, sources, lambda change: _give_feedback(change, fingerprint, body)
        )

    @router.delete("/alerts/{fingerprint}/feedback", status_code=HTTPStatus.NO_CONTENT)
    async def withdraw_feedback(
        fingerprint: Fingerprint, request: Request, _query: NoParameters
    ) -> Response:
        """Withdraw what was said of the last firing of an alert."""
        return await apply_change(
            request, sources, lambda change: _withdraw_feedback(change, fingerprint)
        )


def _add_closing(router: APIRouter, sources: Sources) -> None:
    @post_of(router, "/alerts/{fingerprint}/close", models.ClosingDetail, HTTPStatus.ACCEPTED)
    async def close_alert(
        fingerprint: Fingerprint, body: models.CloseBody, request: Request, _query: NoParameters
    ) -> Response:
        """Close an event that is dealt with; the next round ends it.

        A finding of kind state cannot be closed: it ends when its condition does.
        """
        return await apply_change(
            request, sources, lambda change: _close(change, fingerprint, body)
        )


def _page(
    sources: Sources, query: AlertQuery, after: tuple[datetime, int] | None
) -> tuple[dict[str, Any], Page[models.Alert]]:
    admin, now = sources.admin, sources.utc_now()
    with admin.alerts.reading() as reading:
        page = _select_alerts(reading, sources, query, after)
        held = now_of(reading, page.items, admin.sending, now)
        stamped = alert_stamp(sources.state, reading.observed_at(), now)
        has_counts = query.receiver is None
        stamped["counts"] = reading.counts(_filter_of(query, None)) if has_counts else None
    return stamped, Page([alert_view(stored, held) for stored in page.items], page.last)


def _select_alerts(
    reading: AlertReading,
    sources: Sources,
    query: AlertQuery,
    after: tuple[datetime, int] | None,
) -> Page[StoredAlert]:
    """Return the alerts of a page, and the key of the last alert read if there may be more."""
    shown: list[StoredAlert] = []
    # One alert more than the page shows whether there is another page.
    size = query.limit + 1 if query.receiver is None else BATCH
    for _ in range(MOST_BATCHES):
        batch = reading.page(_filter_of(query, after), size)
        for stored in batch:
            if len(shown) == query.limit:
                return Page(shown, _key(after))
            if query.receiver in (None, *receivers_of(stored, sources.admin.sending)):
                shown.append(stored)
            after = stored.alert.active_at, stored.id
        if len(batch) < size:
            return Page(shown, None)
    return Page(shown, _key(after))


def _filter_of(query: AlertQuery, after: tuple[datetime, int] | None) -> AlertFilter:
    return AlertFilter(
        states=query.state.states, severity=query.severity, rule_id=query.rule, after=after
    )


def _key(after: tuple[datetime, int] | None) -> Key | None:
    return None if after is None else (microseconds(after[0]), after[1])


def _detail(sources: Sources, fingerprint: str) -> models.AlertDetail:
    admin, now = sources.admin, sources.utc_now()
    with admin.alerts.reading() as reading:
        stored = existing(reading.one(fingerprint), NO_ALERT)
        groups, since = groups_of(stored, admin.sending), stored.alert.active_at
        detail = {
            "alert": alert_view(stored, now_of(reading, [stored], admin.sending, now)),
            "steps": reading.steps(stored),
            "notified": [
                delivery_view(delivery)
                for delivery in list_for_groups(
                    reading.connection, sources.state.cluster, groups, since
                )
            ],
            "closing": reading.closing(stored),
            "runbook_url": _runbook(admin.sending.runbook_url, stored.alert.rule_id),
        }
        stamped = alert_stamp(sources.state, reading.observed_at(), now)
    return models.AlertDetail.model_validate(stamped | detail)


def _runbook(base: str, rule_id: str) -> str | None:
    return f"{base.rstrip('/')}/{rule_id}.md" if base else None


def _ack(change: Change, fingerprint: str, body: models.AckBody) -> Done:
    stored = existing(change.alert(fingerprint), NO_ALERT)
    if stored.alert.state is not AlertState.FIRING:
        raise conflict(f"the alert does not fire: it is {stored.alert.state}")
    acknowledgement = change.acknowledge(stored, body.comment)
    answer = {"fingerprint": fingerprint, "acknowledged": acknowledgement}
    model = models.AckDetail.model_validate(stamp_of(change.now) | answer)
    audit_event = _audit_event(Action.ALERT_ACKNOWLEDGE, stored, body.comment)
    return Done(audit_event=audit_event, status=HTTPStatus.OK, model=model)


def _unack(change: Change, fingerprint: str) -> Done:
    stored = existing(change.alert(fingerprint), NO_ALERT)
    withdrawn = change.take_back(stored)
    if withdrawn is None:
        raise not_found("nobody has acknowledged this alert")
    audit_event = _audit_event(
        Action.ALERT_UNACKNOWLEDGE, stored, "", by=withdrawn.by, comment=withdrawn.comment
    )
    return Done(audit_event=audit_event, status=HTTPStatus.NO_CONTENT)


def _give_feedback(change: Change, fingerprint: str, body: models.FeedbackBody) -> Done:
    stored = existing(change.alert(fingerprint), NO_ALERT)
    given = change.give_feedback(stored, body.feedback, body.comment)
    if given is None:
        raise conflict("the alert has never fired: nobody was notified of it")
    answer = {
        "fingerprint": fingerprint,
        "state": stored.alert.state,
        "acknowledged": change.acknowledgement(stored),
        "feedback": given,
    }
    model = models.FeedbackDetail.model_validate(stamp_of(change.now) | answer)
    audit_event = _audit_event(
        Action.ALERT_FEEDBACK, stored, body.comment, feedback=body.feedback.value
    )
    return Done(audit_event=audit_event, status=HTTPStatus.OK, model=model)


def _withdraw_feedback(change: Change, fingerprint: str) -> Done:
    stored = existing(change.alert(fingerprint), NO_ALERT)
    withdrawn = change.withdraw_feedback(stored)
    if withdrawn is None:
        raise not_found("nobody said what the last firing of this alert was")
    audit_event = _audit_event(
        Action.ALERT_WITHDRAW_FEEDBACK,
        stored,
        "",
        feedback=withdrawn.feedback.value,
        by=withdrawn.by,
        comment=withdrawn.comment,
    )
    return Done(audit_event=audit_event, status=HTTPStatus.NO_CONTENT)


def _close(change: Change, fingerprint: str, body: models.CloseBody) -> Done:
    stored = existing(change.alert(fingerprint), NO_ALERT)
    if kind_of(stored) is not Kind.EVENT:
        raise conflict(
            f"{stored.alert.rule_id} is a state: it ends when it is over. Acknowledge or silence it"
        )
    if not stored.is_active:
        raise conflict("the event is over already")
    closing = change.closing(stored)
    if closing is not None and closing.done_at is None:
        raise conflict(f"{closing.by} requested its closing at {closing.at:%Y-%m-%d %H:%M:%S} UTC")
    closing = change.close(stored, body.why)
    answer = {"fingerprint": fingerprint, "closing": closing}
    model = models.ClosingDetail.model_validate(stamp_of(change.now) | answer)
    audit_event = _audit_event(Action.ALERT_CLOSE, stored, body.why)
    return Done(audit_event=audit_event, status=HTTPStatus.ACCEPTED, model=model)


def _audit_event(action: Action, stored: StoredAlert, why: str, **details: str) -> AuditEvent:
    labels = dict(stored.alert.labels)
    target = stored.alert.fingerprint
    return AuditEvent(action=action, target=target, why=why, details={"labels": labels, **details})
