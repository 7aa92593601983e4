"""Routes of sequences: producers whose batches were rejected, and the fate of their records.

All of it is in memory; ended events are kept for a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from rules.exceptions.known_producers import producer_of_episode
from rules.exceptions.problems import Problem
from rules.facts.episodes import Episode, SequenceMemory
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.facts.suspicions import SuspicionMemory
from service.api.core.models import Paged, Stamped
from service.api.core.paging import INT64_MAX, Key, Page, Paging, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import existing
from service.api.core.queries import (
    NoParameters,
    PageQuery,
    PartitionNumber,
    Pattern,
    StateFilter,
    matches,
)
from service.api.core.stamps import stamp, view_of
from service.rounds.latest import ServiceState
from service.rounds.persistence import PersistenceState
from service.views.application_errors import RelatedErrors, related_errors
from service.views.sequences import LeaderChange, RejectedBatch, SequenceEvent, sequence_event
from service.views.suspicions import SuspicionRow, suspicion_row

NAME: Final = "sequences"
MAX_SUSPICIONS: Final = 100


class SequencePage(Paged[SequenceEvent], use_attribute_docstrings=True):
    """Events, newest first."""

    log_is_read: bool
    """False: no broker log lines are read, so that nothing is known"""
    storage: PersistenceState
    """not_loaded: events of an earlier process may be missing"""
    suspicions: list[SuspicionRow]
    """Rejected batches that only counters show, newest first, the same on every page; 100 at most"""
    counters_are_read: bool
    """False: no counter of rejected batches was read either"""


class SequenceDetail(Stamped):
    """An event with its distinct rejections, the leader changes that it was held against, and what applications logged."""

    sequence: SequenceEvent
    lines: list[RejectedBatch]
    """All distinct ones; if there are many, the first and the latest"""
    changes: list[LeaderChange]
    log_is_read: bool
    storage: PersistenceState
    application_errors: RelatedErrors


class SequenceQuery(PageQuery):
    """Which events; those that are known to match are shown."""

    state: StateFilter = StateFilter.OPEN
    """ended: for a day, the last 1000; nothing more is rejected"""
    class_: Annotated[SequenceClass | None, Field(alias="class")] = None
    phase: Phase | None = None
    topic: Pattern | None = None
    partition: PartitionNumber | None = None
    producer_id: Annotated[int | None, Field(ge=0, le=INT64_MAX)] = None


def sequences_router(sources: Sources) -> APIRouter:
    """Return the routes of sequences."""
    router = APIRouter(tags=[NAME])

    @router.get("/sequences", response_model=SequencePage)
    async def list_sequences(paging: Paging, query: Annotated[SequenceQuery, Query()]) -> Response:
        """Return events, newest first; filters show what is known to match."""
        state, name = sources.state, f"{NAME}-{query.state}"
        after = decode_cursor(query.cursor, name, int, str)
        memory = view_of(state).memory.sequences

        def answer() -> SequencePage:
            entries = select_episodes(memory, query)
            page = page_of(entries, _key, after=after, limit=query.limit, newest_first=True)
            events = Page([sequence_event(episode) for episode in page.items], page.last)
            return SequencePage(
                **_of_observation(state),
                **paging.page(name, events),
                suspicions=list_suspicions(view_of(state).memory.suspicions, query.state),
                counters_are_read=bool(view_of(state).memory.suspicions.addresses),
            )

        return await sources.answers.render_once(state, answer, paging)

    @router.get("/sequences/{sequence_id}", response_model=SequenceDetail)
    async def get_sequence(
        sequence_id: Annotated[str, Path(examples=["0123456789ab"])], _query: NoParameters
    ) -> Response:
        """Return an event, its distinct rejections, and the leader changes it was held against."""
        state = sources.state
        episodes = view_of(state).memory.sequences.episodes
        sequence = existing(
            next((episode for episode in episodes if episode.id == sequence_id), None),
            "there is no such event, or it ended more than a day ago",
        )
        problems = sources.application_errors.known.problems
        return await sources.answers.render(lambda: _detail(state, sequence, problems))

    return router


def _detail(state: ServiceState, sequence: Episode, problems: Iterable[Problem]) -> SequenceDetail:
    transactions = view_of(state).snapshot.transactions.by_producer()
    return SequenceDetail(
        **_of_observation(state),
        sequence=sequence_event(sequence),
        lines=[RejectedBatch.of(rejection) for rejection in sequence.rejections],
        changes=[LeaderChange.of(change) for change in sequence.changes],
        application_errors=related_errors(problems, producer_of_episode(sequence, transactions)),
    )


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


def list_suspicions(memory: SuspicionMemory, state: StateFilter) -> list[SuspicionRow]:
    """Return the suspicions of a state, newest first; they have no producer, so that no filter fits them."""
    chosen = {
        StateFilter.OPEN: memory.open,
        StateFilter.ENDED: memory.ended,
        StateFilter.ALL: memory.suspicions,
    }[state]
    newest = sorted(chosen, key=lambda suspicion: (-suspicion.until_us, suspicion.id))
    return [suspicion_row(suspicion) for suspicion in newest[:MAX_SUSPICIONS]]


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


def _of_observation(state: ServiceState) -> dict[str, Any]:
    is_read = state.snapshot is not None and state.snapshot.broker_log.is_read
    return {**stamp(state), "log_is_read": is_read, "storage": state.persistence.state}
