"""Route of partitions by topic and number; filters work on whole columns."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from fastapi import APIRouter, Query, Response
from pydantic import Field

from rules.facts.column import Bools, Int64s
from rules.facts.snapshot import Snapshot
from service.api.core.models import Paged
from service.api.core.paging import Key, Page, Paging, decode_cursor
from service.api.core.ports import Sources
from service.api.core.queries import PageQuery, Pattern, matches
from service.api.core.stamps import snapshot_of, stamp
from service.views.model import Model
from service.views.snapshot_rows import partition_rows


class Partition(Model):
    """A partition as its leader and the controller see it."""

    topic: str
    partition: int
    topic_id: str | None
    leader: int | None
    leader_epoch: int | None
    replicas: list[int] | None
    isr: list[int] | None
    elr: list[int] | None
    last_known_elr: list[int] | None
    min_insync_replicas: int | None
    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    replica_log_end_offsets: dict[str, int | None] | None
    open_span: int | None
    unreplicated_span: int | None


class PartitionPage(Paged[Partition]):
    """Partitions by topic and number."""


class PartitionQuery(PageQuery):
    """Which partitions."""

    topic: Pattern | None = None
    at_risk: Annotated[
        bool,
        Field(
            description="Only those with fewer in-sync replicas than replicas, or an unreplicated "
            "span; partitions that could not be observed are among the gaps of the cluster"
        ),
    ] = False


def partitions_router(sources: Sources) -> APIRouter:
    """Return the route of partitions."""
    router = APIRouter(tags=["partitions"])

    @router.get("/partitions", response_model=PartitionPage)
    async def list_partitions(
        paging: Paging, query: Annotated[PartitionQuery, Query()]
    ) -> Response:
        """Return the partitions that the last observation saw."""
        state = sources.state
        after = decode_cursor(query.cursor, "partitions", str, int)
        seen = snapshot_of(state)

        def answer() -> PartitionPage:
            mask = at_risk(seen) if query.at_risk else np.ones(len(seen.partitions), np.bool_)
            page = partition_page(seen, mask, topic=query.topic, after=after, limit=query.limit)
            return PartitionPage(**stamp(state), **paging.page("partitions", page))

        return await sources.answers.render_once(state, answer, paging)

    return router


def at_risk(seen: Snapshot) -> Bools:
    """Return the mask of partitions whose records are on fewer replicas than they should be."""
    replicas, isr = seen.partitions.replicas, seen.partitions.isr
    is_short = replicas.valid & isr.valid & (isr.lengths < replicas.lengths)
    unreplicated = seen.offsets.unreplicated_span
    mask: Bools = is_short | (unreplicated.valid & (unreplicated.values > 0))
    return mask


def partition_page(
    seen: Snapshot, mask: Bools, *, topic: str | None, after: Key | None, limit: int
) -> Page[Partition]:
    """Return the partitions of the mask in the order of topic and number."""
    index = seen.partitions.index
    rank = _ranks(index.topics, topic, None if after is None else after[0])
    rank_of_row = rank[index.topic_of_row]
    number = np.arange(len(index), dtype=np.int64) - index.starts[index.topic_of_row]
    is_shown = mask & (rank_of_row >= 0)
    if after is not None and (place := index.position_of_topic.get(after[0])) is not None:
        is_shown &= (index.topic_of_row != place) | (number > after[1])
    rows = np.flatnonzero(is_shown)
    ordered = rows[np.argsort(rank_of_row[rows], kind="stable")]
    items = _items(seen, ordered[:limit])
    last = items[-1] if len(ordered) > limit else None
    return Page(items, None if last is None else (last.topic, last.partition))


def _ranks(topics: tuple[str, ...], pattern: str | None, first: str | None) -> Int64s:
    """Return each topic's rank in the order of names; -1 where it is not shown."""
    shown = (
        (name, position)
        for position, name in enumerate(topics)
        if (first is None or name >= first) and matches(pattern, name)
    )
    ranks = np.full(len(topics), -1, np.int64)
    for place, (_, position) in enumerate(sorted(shown)):
        ranks[position] = place
    return ranks


def _items(seen: Snapshot, rows: Int64s) -> list[Partition]:
    spans = zip(
        seen.offsets.open_span.take(rows).to_list(),
        seen.offsets.unreplicated_span.take(rows).to_list(),
        strict=True,
    )
    return [
        Partition(**row, open_span=held, unreplicated_span=unreplicated)
        for row, (held, unreplicated) in zip(partition_rows(seen, rows), spans, strict=True)
    ]
