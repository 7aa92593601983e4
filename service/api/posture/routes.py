"""Route of posture: the settings on which exactly-once depends, and which of them are wrong."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from service.api.core.models import Paged
from service.api.core.paging import Page, Paging, decode_cursor
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern
from service.api.core.stamps import stamp, view_of
from service.api.posture.listing import Selection, count_checks, list_entries
from service.views.posture import PostureCheckRow, PostureRow, PostureVerdict, posture_row

NAME: Final = "posture"


class PosturePage(Paged[PostureRow], use_attribute_docstrings=True):
    """Lines by check and name."""

    checks: list[PostureCheckRow]
    """Counts of all lines that match topic and check, the same on every page"""


class PostureQuery(PageQuery):
    """Which lines; without `verdict` and `all` what is wrong or not known."""

    topic: Pattern | None = None
    """Only lines of topics"""
    check: Pattern | None = None
    verdict: PostureVerdict | None = None
    all: bool = False
    """What is right as well"""


def posture_router(sources: Sources) -> APIRouter:
    """Return the route of posture."""
    router = APIRouter(tags=[NAME])
    lists = PerRound(list_entries)

    @router.get("/posture", response_model=PosturePage)
    async def list_posture(paging: Paging, query: Annotated[PostureQuery, Query()]) -> Response:
        """Return settings on which exactly-once depends: what is wrong or not known, with what can go wrong and how to set it."""
        state = sources.state
        after = decode_cursor(query.cursor, NAME, str, str, int)
        view = view_of(state)
        selection = Selection(
            topic=query.topic, check=query.check, verdict=query.verdict, every=query.all
        )

        def answer() -> PosturePage:
            entries = lists.of(view)
            page = entries.page(after=after, limit=query.limit, is_shown=selection.shows)
            rows = [posture_row(e.judgement.line(e.position)) for e in page.items]
            return PosturePage(
                **stamp(state),
                **paging.page(NAME, Page(rows, page.last)),
                checks=count_checks(entries, selection),
            )

        return await sources.answers.render_once(state, answer, paging)

    return router
