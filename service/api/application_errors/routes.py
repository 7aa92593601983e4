"""Routes of errors that applications logged, and of what Tidemark knows of their producers.

All of it is in memory; a problem is kept for a day after it was last seen. Nothing here is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import AwareDatetime, Field

from rules.exceptions.meaning import Role
from rules.exceptions.problems import Problem
from rules.facts.last_observation import microseconds
from rules.transactions.listing import Listing, listing
from service.api.application_errors.related import (
    RelatedFinding,
    RelatedSequence,
    RelatedTransaction,
    related_findings,
    related_sequences,
    related_transactions,
)
from service.api.core.models import Paged, Stamped
from service.api.core.paging import INT64_MAX, Key, Page, Paging, decode_cursor, page_of
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.problems import existing
from service.api.core.queries import NoParameters, PageQuery, Pattern, Word, matches
from service.observe.application_errors import KnownErrors
from service.rounds.latest import ServiceState
from service.views.application_errors import LoggedError, logged_error

NAME: Final = "application-errors"
NOT_THERE: Final = "there is no such application error, or it was last seen more than a day ago"


class LoggedErrorPage(Paged[LoggedError], use_attribute_docstrings=True):
    """Application errors, those last seen first."""

    rejected_lines: int
    """Lines that were over a limit since the start, and answered with 429"""


class LoggedErrorDetail(Stamped):
    """An application error, with what is known of its producer, its group and its topics."""

    application_error: LoggedError
    sequences: list[RelatedSequence]
    transactions: Annotated[list[RelatedTransaction], Field(description="That are open")]
    findings: Annotated[list[RelatedFinding], Field(description="That are open")]


class LoggedErrorQuery(PageQuery):
    """Which application errors."""

    error: Word | None = None
    """Kafka's name, as PRODUCER_FENCED, or the lasting name of a meaning, as producer_fenced"""
    role: Role | None = None
    application: Pattern | None = None
    client_id: Pattern | None = None
    transactional_id: Pattern | None = None
    producer_id: Annotated[int | None, Field(ge=0, le=INT64_MAX)] = None
    group: Pattern | None = None
    topic: Pattern | None = None
    since: Annotated[AwareDatetime | None, Field(description="Last seen at or after")] = None


def application_errors_router(sources: Sources) -> APIRouter:
    """Return the routes of application errors."""
    router = APIRouter(tags=[NAME])
    listings = PerRound(listing)

    @router.get("/application-errors", response_model=LoggedErrorPage)
    async def list_application_errors(
        paging: Paging, query: Annotated[LoggedErrorQuery, Query()]
    ) -> Response:
        """Return errors that applications logged, those last seen first; none of them is a verdict.

        `is_current` is false while errors that an earlier process of Tidemark took may be missing.
        """
        after = decode_cursor(query.cursor, NAME, int, str)
        errors, now = sources.application_errors.known, sources.utc_now()

        def answer() -> LoggedErrorPage:
            chosen = select_errors(errors.problems, query)
            page = page_of(chosen, _key, after=after, limit=query.limit, newest_first=True)
            items = [shown for item in page.items if (shown := logged_error(item)) is not None]
            return LoggedErrorPage(
                **_stamp(errors, now),
                **paging.page(NAME, Page(items, page.last)),
                rejected_lines=errors.rejected_lines,
            )

        return await sources.answers.render(answer, paging)

    @router.get("/application-errors/{error_id}", response_model=LoggedErrorDetail)
    async def get_application_error(
        error_id: Annotated[str, Path(examples=["0123456789ab"])], _query: NoParameters
    ) -> Response:
        """Return an application error, and what is known of its producer, its group and its topics."""
        errors, now, state = sources.application_errors.known, sources.utc_now(), sources.state
        problem = existing(
            next((each for each in errors.problems if each.id == error_id), None), NOT_THERE
        )
        shown = existing(logged_error(problem), NOT_THERE)

        def answer() -> LoggedErrorDetail:
            open_ = None if state.view is None else listings.of(state.view)
            return _detail(problem, shown, errors, state, open_, now)

        return await sources.answers.render(answer)

    return router


def _stamp(errors: KnownErrors, now: datetime) -> dict[str, Any]:
    """Return the time of the answer; it is not current if errors of an earlier process may be missing."""
    return {"as_of": now, "is_current": errors.is_loaded}


def _detail(  # noqa: PLR0913, PLR0917 - what one answer is made of
    problem: Problem,
    shown: LoggedError,
    errors: KnownErrors,
    state: ServiceState,
    transactions: Listing | None,
    now: datetime,
) -> LoggedErrorDetail:
    return LoggedErrorDetail(
        **_stamp(errors, now),
        application_error=shown,
        sequences=related_sequences(problem, state),
        transactions=[] if transactions is None else related_transactions(problem, transactions),
        findings=related_findings(problem, state),
    )


def select_errors(problems: Iterable[Problem], query: LoggedErrorQuery) -> Iterator[Problem]:
    """Yield the problems that are known to match a query."""
    for problem in problems:
        names = problem.names
        pairs = (
            (query.application, names.application),
            (query.client_id, names.client_id),
            (query.transactional_id, names.transactional_id),
            (query.group, names.group),
            (query.topic, names.topic),
        )
        if any(
            pattern is not None and (name is None or not matches(pattern, name))
            for pattern, name in pairs
        ):
            continue
        if query.error is not None and query.error not in (problem.error, problem.meaning):
            continue
        if query.since is not None and problem.last_seen < query.since:
            continue
        if _has_role(problem, query.role) and _has_producer(problem, query.producer_id):
            yield problem


def _has_role(problem: Problem, role: Role | None) -> bool:
    if role is None:
        return True
    shown = logged_error(problem)
    return shown is not None and shown.role is role


def _has_producer(problem: Problem, producer_id: int | None) -> bool:
    return producer_id is None or any(each.producer_id == producer_id for each in problem.producers)


def _key(problem: Problem) -> Key:
    return microseconds(problem.last_seen), problem.id
