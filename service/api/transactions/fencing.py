"""Route of fencing episodes: transactional ids whose producers were fenced, and by whom.

All of it is in memory; ended episodes are kept for a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response
from pydantic import Field

from rules.facts.fencing import FencingClass, FencingEpisode, FencingMemory
from service.api.core.models import Paged
from service.api.core.paging import INT64_MAX, Key, Page, Paging, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern, StateFilter, matches
from service.api.core.stamps import stamp, view_of
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState
from service.views.fencing import Fencing, fencing_of

NAME: Final = "fencing"


class FencingPage(Paged[Fencing], use_attribute_docstrings=True):
    """Fencing episodes, newest first."""

    log_is_read: bool
    """False: `__transaction_state` is not read, so that most of them are not seen"""
    storage: PersistenceState
    """not_loaded: episodes of an earlier process may be missing"""


class FencingQuery(PageQuery):
    """Which episodes; those that are known to match are shown."""

    state: StateFilter = StateFilter.ALL
    """ended: for a day, the last 1000; nothing was seen of it for an hour"""
    class_: Annotated[FencingClass | None, Field(alias="class")] = None
    transactional_id: Pattern | None = None
    producer_id: Annotated[int | None, Field(ge=0, le=INT64_MAX)] = None


def fencing_router(sources: Sources) -> APIRouter:
    """Return the route of fencing episodes."""
    router = APIRouter(tags=["transactions"])

    @router.get("/transactions/fencing", response_model=FencingPage)
    async def list_fencing(paging: Paging, query: Annotated[FencingQuery, Query()]) -> Response:
        """Return fencing episodes, newest first; filters show what is known to match."""
        state, name = sources.state, f"{NAME}-{query.state}"
        after = decode_cursor(query.cursor, name, int, str)
        memory = view_of(state).memory.fencing

        def answer() -> FencingPage:
            entries = select_episodes(memory, query)
            page = page_of(entries, _key, after=after, limit=query.limit, newest_first=True)
            shown = Page([fencing_of(episode) for episode in page.items], page.last)
            return FencingPage(**_of_observation(state), **paging.page(name, shown))

        return await sources.answers.render_once(state, answer, paging)

    return router


def select_episodes(memory: FencingMemory, query: FencingQuery) -> Iterator[FencingEpisode]:
    """Yield the episodes that are known to match a query."""
    for episode in _of_state(memory, query.state):
        name = episode.transactional_id
        if query.class_ not in (None, episode.verdict.class_):
            continue
        if query.producer_id not in (None, episode.producer_id):
            continue
        if query.transactional_id is None or (
            name is not None and matches(query.transactional_id, name)
        ):
            yield episode


def _of_state(memory: FencingMemory, state: StateFilter) -> Iterable[FencingEpisode]:
    match state:
        case StateFilter.OPEN:
            return memory.open.values()
        case StateFilter.ENDED:
            return memory.ended
        case StateFilter.ALL:
            return memory.episodes


def _key(episode: FencingEpisode) -> Key:
    return episode.first_seen_us, episode.id


def _of_observation(state: ServiceState) -> dict[str, Any]:
    is_read = state.snapshot is not None and state.snapshot.transaction_log.is_read
    return {**stamp(state), "log_is_read": is_read, "storage": state.persistence.state}
