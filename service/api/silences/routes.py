"""Routes of silences: created, edited and expired by users; an edit has to name the version it changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID, uuid4

from fastapi import APIRouter, Path, Query, Request, Response

from rules.catalogue.all_rules import EVERY
from rules.facts.last_observation import microseconds
from rules.verdict import Severity
from service.alerting.alerts.identity import ALERTNAME, SEVERITY, Labels
from service.alerting.alerts.matchers import (
    LONGEST_TEXT,
    MatcherError,
    Matchers,
    all_match,
    in_order,
    parse_matchers,
    require_cheap,
    text_of,
)
from service.alerting.alerts.silences import SilenceState
from service.api.core.changing import IF_MATCH, Done, apply_change, etag_of, post_of, require_match
from service.api.core.paging import (
    Page,
    Paging,
    decode_cursor,
    first_of,
    foreign_cursor,
    time_in,
)
from service.api.core.ports import Sources
from service.api.core.prefix import PREFIX
from service.api.core.problems import conflict, existing, invalid
from service.api.core.queries import NoParameters
from service.api.core.stamps import stamp_of
from service.api.silences import models
from service.api.silences.models import SilenceQuery
from service.storage.alerting.silences import (
    INSTANT,
    MOST_SILENCES,
    SilenceFilter,
    StoredSilence,
    parse_once,
)
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change

NO_SILENCE: Final = "there is no such silence"
UNLIKELY: Final = "\N{SNOWMAN}\N{COMET}"  # no cluster has this name
PATH: Final = f"{PREFIX}/silences"

SilenceId = Annotated[UUID, Path(examples=["0c6d2b0e-7c3b-4c4e-9d55-2f3f3a1b9f10"])]


def silences_router(sources: Sources) -> APIRouter:
    """Return the routes of silences."""
    router = APIRouter(tags=["silences"])
    _add_reads(router, sources)
    _add_making(router, sources)
    _add_changes(router, sources)
    return router


def _add_reads(router: APIRouter, sources: Sources) -> None:
    @router.get("/silences", response_model=models.SilencePage)
    async def list_silences(paging: Paging, query: Annotated[SilenceQuery, Query()]) -> Response:
        """Return silences, those that end last first."""
        name, now = f"silences-{query.state}", sources.utc_now()
        filters = SilenceFilter(states=query.state.states, now=now, after=_after(query, name))
        rows = await sources.in_database(
            lambda: sources.admin.silences.page(filters, query.limit + 1)
        )
        page = first_of(rows, query.limit, lambda row: (microseconds(row.ends_at), str(row.id)))

        def answer() -> models.SilencePage:
            shown = Page([_view(silence, now) for silence in page.items], page.last)
            return models.SilencePage(**stamp_of(now), **paging.page(name, shown))

        return await sources.answers.render(answer, paging)

    @router.get("/silences/{silence_id}")
    async def get_silence(
        silence_id: SilenceId, response: Response, _query: NoParameters
    ) -> models.SilenceDetail:
        """Return a silence, and its version as ETag."""
        silence = existing(
            await sources.in_database(lambda: sources.admin.silences.one(silence_id)), NO_SILENCE
        )
        response.headers["ETag"] = etag_of(silence.version)
        return _detail(silence, sources.utc_now())


def _add_making(router: APIRouter, sources: Sources) -> None:
    @post_of(router, "/silences", models.SilenceDetail, HTTPStatus.CREATED)
    async def create_silence(
        body: models.SilenceBody, request: Request, _query: NoParameters
    ) -> Response:
        """Silence alerts for a while: they fire and resolve without notifications."""
        matchers = await sources.in_thread(lambda: _matchers(body))
        return await apply_change(request, sources, lambda change: _create(change, body, matchers))


def _add_changes(router: APIRouter, sources: Sources) -> None:
    @router.put(
        "/silences/{silence_id}", response_model=models.SilenceDetail, openapi_extra=dict(IF_MATCH)
    )
    async def edit_silence(
        silence_id: SilenceId, body: models.SilenceBody, request: Request, _query: NoParameters
    ) -> Response:
        """Edit a silence that has not expired; its author stays."""
        matchers = await sources.in_thread(lambda: _matchers(body))

        def edit(change: Change) -> Done:
            return _edit(change, _take(change, silence_id, request), body, matchers)

        return await apply_change(request, sources, edit)

    @router.delete(
        "/silences/{silence_id}",
        status_code=HTTPStatus.NO_CONTENT,
        openapi_extra=dict(IF_MATCH),
    )
    async def expire_silence(
        silence_id: SilenceId, request: Request, _query: NoParameters
    ) -> Response:
        """Expire a silence now; it stays in the list."""

        def expire(change: Change) -> Done:
            return _expire(change, _take(change, silence_id, request))

        return await apply_change(request, sources, expire)


def _after(query: SilenceQuery, name: str) -> tuple[datetime, UUID] | None:
    key = decode_cursor(query.cursor, name, int, str)
    if key is None:
        return None
    try:
        return time_in(key), UUID(key[1])
    except ValueError as exc:
        raise foreign_cursor() from exc


def _view(stored: StoredSilence, now: datetime) -> models.Silence:
    return models.Silence(**asdict(stored), state=stored.state(now))


def _detail(stored: StoredSilence, now: datetime) -> models.SilenceDetail:
    return models.SilenceDetail(**stamp_of(now), silence=_view(stored, now))


def _matchers(body: models.SilenceBody) -> Matchers:
    """Parse the matchers of a body as they will be stored, so that the next round finds them parsed.

    Raises:
        ProblemError: they cannot be parsed, are too costly, or match every alert without `all`.
    """
    try:
        given = in_order(parse_matchers(body.matchers))
        require_cheap(given)
    except MatcherError as exc:
        raise invalid("matchers", str(exc)) from exc
    matchers = parse_once(text_of(given))
    if matchers is None:
        raise invalid("matchers", f"with all quotes they are longer than {LONGEST_TEXT} characters")
    if not body.all and matches_everything(matchers):
        message = 'they match every alert; narrow them, or set "all": true (--all)'
        raise invalid("matchers", message)
    return matchers


def matches_everything(matchers: Matchers) -> bool:
    """Return whether matchers match the alerts of every rule in any cluster, whatever their subject.

    Alertmanager only checks whether they match an alert without labels; but all severities, or a list
    of all rules, reach as far.
    """
    return all_match(matchers, {}) or all(all_match(matchers, labels) for labels in _bare())


def _bare() -> Iterator[Labels]:
    for rule in EVERY:
        for severity in Severity:
            yield {
                ALERTNAME: rule.meta.rule_id,
                SEVERITY: str(severity),
                "cluster": UNLIKELY,
            }


def _create(change: Change, body: models.SilenceBody, matchers: Matchers) -> Done:
    if not change.silences.has_room(change.now):
        raise conflict(f"there are {MOST_SILENCES} silences already; combine some of them")
    silence = StoredSilence(
        id=uuid4(),
        matchers=text_of(matchers),
        starts_at=body.starts_at or change.now,
        ends_at=body.ends_at,
        created_by=change.who,
        comment=body.comment,
        version=1,
        created_at=change.now,
        updated_at=change.now,
    )
    _check_times(silence, change.now)
    change.silences.add(silence)
    headers = {"Location": f"{PATH}/{silence.id}"}
    return _done(Action.SILENCE_CREATE, silence, change, HTTPStatus.CREATED, headers)


def _take(change: Change, silence_id: UUID, request: Request) -> StoredSilence:
    """Lock and return the silence to change.

    Raises:
        ProblemError: there is none, it has another version, or it has expired.
    """
    silence = existing(change.silences.take(silence_id), NO_SILENCE)
    require_match(request, silence.version)
    if silence.state(change.now) is SilenceState.EXPIRED:
        raise conflict("the silence has expired: create a new one")
    return silence


def _edit(
    change: Change, silence: StoredSilence, body: models.SilenceBody, matchers: Matchers
) -> Done:
    edited = replace(
        silence,
        matchers=text_of(matchers),
        starts_at=body.starts_at or silence.starts_at,
        ends_at=body.ends_at,
        comment=body.comment,
        updated_at=change.now,
    )
    _check_times(edited, change.now)
    return _done(Action.SILENCE_EDIT, change.silences.change(edited), change, HTTPStatus.OK, {})


def _expire(change: Change, silence: StoredSilence) -> Done:
    """Expire a silence now; one that has not begun ends as soon as it begins."""
    over = replace(
        silence,
        starts_at=min(silence.starts_at, change.now - INSTANT),
        ends_at=change.now,
        updated_at=change.now,
    )
    ended = change.silences.change(over)
    return Done(
        audit_event=_audit_event(Action.SILENCE_EXPIRE, ended), status=HTTPStatus.NO_CONTENT
    )


def _check_times(silence: StoredSilence, now: datetime) -> None:
    if silence.ends_at <= silence.starts_at:
        raise invalid("ends_at", "it ends before it begins")
    if silence.ends_at <= now:
        raise invalid("ends_at", "it would be over already")


def _done(
    action: Action,
    silence: StoredSilence,
    change: Change,
    status: HTTPStatus,
    headers: dict[str, str],
) -> Done:
    return Done(
        audit_event=_audit_event(action, silence),
        status=status,
        model=_detail(silence, change.now),
        headers={"ETag": etag_of(silence.version), **headers},
    )


def _audit_event(action: Action, silence: StoredSilence) -> AuditEvent:
    details = {
        "matchers": silence.matchers,
        "starts_at": silence.starts_at.isoformat(),
        "ends_at": silence.ends_at.isoformat(),
        "version": silence.version,
    }
    return AuditEvent(action=action, target=str(silence.id), why=silence.comment, details=details)
