"""Route of posture: the settings on which exactly-once depends, and which of them are wrong."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from rules.posture.all_checks import judge_posture
from rules.posture.line import PostureVerdict
from service.api.core.models import Paged
from service.api.core.paging import Paging, decode_cursor
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern
from service.api.core.stamps import stamp, view_of
from service.api.posture.listing import Selection, count_checks, list_page
from service.views.posture import PostureCheckRow, PostureRow

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
    judged = PerRound(judge_posture)

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
            posture = judged.of(view)
            page = list_page(posture, selection, after=after, limit=query.limit)
            fields = {**stamp(state), **paging.page(NAME, page)}
            return PosturePage(**fields, checks=count_checks(posture, selection))

        return await sources.answers.render_once(state, answer, paging)

    return router
