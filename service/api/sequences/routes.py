"""Routes of sequences: producers whose batches were rejected, and the fate of their records.

All of it is in memory; ended events are kept for a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response

from rules.facts.episodes import Episode, SequenceMemory
from service.api.core.globs import matches
from service.api.core.paging import Key, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import not_found
from service.api.core.queries import NoQuery, StateFilter
from service.api.core.stamps import link_next_page, stamp
from service.api.sequences.models import (
    LeaderChange,
    RejectedBatch,
    SequenceDetail,
    SequenceEvent,
    SequencePage,
    SequenceQuery,
)
from service.api.transactions.routes import view_of
from service.rounds.latest import ServiceState
from service.views.sequence_rows import change_row, episode_row, line_row

NAME: Final = "sequences"


def sequences_router(sources: Sources) -> APIRouter:
    """Return the routes of sequences."""
    router = APIRouter(tags=[NAME])

    @router.get("/sequences")
    async def list_sequences(
        request: Request, response: Response, query: Annotated[SequenceQuery, Query()]
    ) -> SequencePage:
        """Return events, newest first; filters show what is known to match."""
        service_state = sources.state
        name = f"{NAME}-{query.state}"
        after = decode_cursor(query.cursor, name, int, str)
        entries = select_episodes(view_of(service_state).memory.sequences, query)
        page = page_of(entries, _key, after=after, limit=query.limit, newest_first=True)
        items = [SequenceEvent(**episode_row(episode)) for episode in page.items]
        following = link_next_page(request, response, name, page.last)
        return SequencePage(**_of_observation(service_state), items=items, next=following)

    @router.get("/sequences/{sequence_id}")
    async def get_sequence(
        sequence_id: Annotated[str, Path(examples=["0123456789ab"])],
        _query: Annotated[NoQuery, Query()],
    ) -> SequenceDetail:
        """Return an event, its distinct rejections, and the leader changes it was held against."""
        service_state = sources.state
        episodes = view_of(service_state).memory.sequences.episodes
        sequence = next((episode for episode in episodes if episode.id == sequence_id), None)
        if sequence is None:
            raise not_found("there is no such event, or it ended more than a day ago")
        return SequenceDetail(
            **_of_observation(service_state),
            sequence=SequenceEvent(**episode_row(sequence)),
            lines=[RejectedBatch(**line_row(rejection)) for rejection in sequence.rejections],
            changes=[LeaderChange(**change_row(change)) for change in sequence.changes],
        )

    return router


def select_episodes(memory: SequenceMemory, query: SequenceQuery) -> Iterator[Episode]:
    """Yield the episodes that are known to match a query."""
    for episode in _of_state(memory, query.state):
        name, verdict = episode.name, episode.verdict
        if query.class_ not in (None, verdict.class_) or query.phase not in (None, verdict.phase):
            continue
        if query.producer_id not in (None, episode.producer_id):
            continue
        if query.topic is not None and (name is None or not matches(query.topic, name.topic)):
            continue
        if query.partition is None or (name is not None and name.partition == query.partition):
            yield episode


def _of_state(memory: SequenceMemory, state: StateFilter) -> Iterable[Episode]:
    match state:
        case StateFilter.OPEN:
            return memory.open.values()
        case StateFilter.ENDED:
            return memory.ended
        case StateFilter.ALL:
            return memory.episodes


def _key(episode: Episode) -> Key:
    return episode.first_seen_us, episode.id


def _of_observation(service_state: ServiceState) -> dict[str, Any]:
    is_read = service_state.snapshot is not None and service_state.snapshot.broker_log.is_read
    return {
        **stamp(service_state),
        "log_is_read": is_read,
        "storage": service_state.persistence.state,
    }
