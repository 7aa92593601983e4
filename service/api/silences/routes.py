"""Silences: made, changed and ended by persons, each with a version that a change has to name."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID, uuid4

from fastapi import APIRouter, Path, Query, Request, Response

from rules.facts.last_observation import microseconds
from rules.facts.times import EPOCH
from service.alerting.alerts.matchers import (
    MatcherError,
    Matchers,
    in_order,
    parse_matchers,
    text_of,
)
from service.alerting.alerts.silences import SilenceState
from service.api.core.changing import KEY_HEADER, Done, changed, stamp_of
from service.api.core.paging import decode_cursor
from service.api.core.ports import Sources
from service.api.core.prefix import PREFIX
from service.api.core.problems import ProblemError, conflict, invalid, not_found
from service.api.core.queries import NoQuery
from service.api.core.stamps import continued
from service.api.core.versions import IF_MATCH, etag_of, require_match
from service.api.findings.lists import LAST_US
from service.api.silences import models
from service.api.silences.query import SilenceQuery
from service.api.silences.reach import matches_everything
from service.storage.alerting.silences import INSTANT, SilenceFilter, StoredSilence
from service.storage.changes.audit import Action, AuditEvent
from service.storage.changes.changes import Change

NO_SILENCE: Final = "there is no such silence"
MOST: Final = 5000  # that are not over: every round observes all of them
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
    @router.get("/silences")
    async def list_silences(
        request: Request, response: Response, query: Annotated[SilenceQuery, Query()]
    ) -> models.SilencePage:
        """Return silences, those that end last first."""
        name, now = f"silences-{query.state}", sources.utc_now()
        wanted = SilenceFilter(states=query.state.states, now=now, after=_after(query, name))
        found = await sources.in_database(
            lambda: sources.admin.silences.page(wanted, query.limit + 1)
        )
        shown = found[: query.limit]
        is_end = len(found) <= query.limit
        last = None if is_end else (microseconds(shown[-1].ends_at), str(shown[-1].id))
        following = continued(request, response, name, last)
        items = [_view(one, now) for one in shown]
        return models.SilencePage(**stamp_of(now), items=items, next=following)

    @router.get("/silences/{silence_id}")
    async def get_silence(
        silence_id: SilenceId, response: Response, _query: Annotated[NoQuery, Query()]
    ) -> models.SilenceDetail:
        """Return a silence, and its version as ETag."""
        found = await sources.in_database(lambda: sources.admin.silences.one(silence_id))
        if found is None:
            raise not_found(NO_SILENCE)
        response.headers["ETag"] = etag_of(found.version)
        return _detail(found, sources.utc_now())


def _add_making(router: APIRouter, sources: Sources) -> None:
    @router.post(
        "/silences",
        status_code=HTTPStatus.CREATED,
        response_model=models.SilenceDetail,
        openapi_extra=dict(KEY_HEADER),
    )
    async def create_silence(
        body: models.SilenceBody, request: Request, _query: Annotated[NoQuery, Query()]
    ) -> Response:
        """Silence alerts for a while. They fire and end all the same; nobody is told."""
        matchers = await sources.in_thread(lambda: _matchers(body))
        return await changed(request, sources, lambda change: _made(change, body, matchers))


def _add_changes(router: APIRouter, sources: Sources) -> None:
    @router.put(
        "/silences/{silence_id}", response_model=models.SilenceDetail, openapi_extra=dict(IF_MATCH)
    )
    async def edit_silence(
        silence_id: SilenceId,
        body: models.SilenceBody,
        request: Request,
        _query: Annotated[NoQuery, Query()],
    ) -> Response:
        """Change a silence that is not over; its author stays."""
        matchers = await sources.in_thread(lambda: _matchers(body))

        def edit(change: Change) -> Done:
            return _edited(change, _taken(change, silence_id, request), body, matchers)

        return await changed(request, sources, edit)

    @router.delete(
        "/silences/{silence_id}",
        status_code=HTTPStatus.NO_CONTENT,
        openapi_extra=dict(IF_MATCH),
    )
    async def expire_silence(
        silence_id: SilenceId, request: Request, _query: Annotated[NoQuery, Query()]
    ) -> Response:
        """End a silence now; it stays to be observed."""

        def expire(change: Change) -> Done:
            return _expired(change, _taken(change, silence_id, request))

        return await changed(request, sources, expire)


# ------------------------------------------------------------------ reading
def _after(query: SilenceQuery, name: str) -> tuple[datetime, UUID] | None:
    key = decode_cursor(query.cursor, name, int, str)
    if key is None:
        return None
    try:
        row = UUID(key[1])
    except ValueError:
        row = None
    if row is None or key[0] > LAST_US:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the cursor does not belong to this list")
    return EPOCH + timedelta(microseconds=key[0]), row


def _view(stored: StoredSilence, now: datetime) -> models.Silence:
    told = {name: getattr(stored, name) for name in StoredSilence.__dataclass_fields__}
    return models.Silence(**told, state=stored.state(now))


def _detail(stored: StoredSilence, now: datetime) -> models.SilenceDetail:
    return models.SilenceDetail(**stamp_of(now), silence=_view(stored, now))


# ------------------------------------------------------------------ changing
def _matchers(body: models.SilenceBody) -> Matchers:
    """Read the matchers of a body, which may hold patterns that take a while.

    Raises:
        ProblemError: they cannot be read, or hold back everything without saying so.
    """
    try:
        matchers = in_order(parse_matchers(body.matchers))
    except MatcherError as exc:
        raise invalid("matchers", str(exc)) from exc
    if not body.all and matches_everything(matchers):
        told = 'they match every alert; name what is meant, or say "all": true (--all)'
        raise invalid("matchers", told)
    return matchers


def _made(change: Change, body: models.SilenceBody, matchers: Matchers) -> Done:
    if change.silences.count(change.now) >= MOST:
        raise conflict(f"there are {MOST} silences already; match more with fewer")
    made = StoredSilence(
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
    _check_times(made, change.now)
    change.silences.add(made)
    headers = {"Location": f"{PATH}/{made.id}"}
    return _done(Action.SILENCE_CREATE, made, change, HTTPStatus.CREATED, headers)


def _taken(change: Change, silence_id: UUID, request: Request) -> StoredSilence:
    """Return the silence that is changed.

    Raises:
        ProblemError: there is none, it is another version, or it is over.
    """
    found = change.silences.take(silence_id)
    if found is None:
        raise not_found(NO_SILENCE)
    require_match(request, found.version)
    if found.state(change.now) is SilenceState.EXPIRED:
        raise conflict("the silence is over: make another one")
    return found


def _edited(
    change: Change, found: StoredSilence, body: models.SilenceBody, matchers: Matchers
) -> Done:
    wanted = replace(
        found,
        matchers=text_of(matchers),
        starts_at=body.starts_at or found.starts_at,
        ends_at=body.ends_at,
        comment=body.comment,
        updated_at=change.now,
    )
    _check_times(wanted, change.now)
    return _done(Action.SILENCE_EDIT, change.silences.change(wanted), change, HTTPStatus.OK, {})


def _expired(change: Change, found: StoredSilence) -> Done:
    """End it now; what never began is over as soon as it begins."""
    over = replace(
        found,
        starts_at=min(found.starts_at, change.now - INSTANT),
        ends_at=change.now,
        updated_at=change.now,
    )
    ended = change.silences.change(over)
    return Done(
        audit_event=_audit_event(Action.SILENCE_EXPIRE, ended), status=HTTPStatus.NO_CONTENT
    )


def _check_times(wanted: StoredSilence, now: datetime) -> None:
    if wanted.ends_at <= wanted.starts_at:
        raise invalid("ends_at", "it ends before it begins")
    if wanted.ends_at <= now:
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
