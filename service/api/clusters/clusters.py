"""Routes of clusters: their counts, and the gaps of the last observation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from rules.facts.snapshot import Snapshot
from service.api.core.gaps import Gap, gap_of
from service.api.core.models import NextCursor, Paged, Stamped
from service.api.core.paging import Page, Paging, decode_cursor, decode_row_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import not_found
from service.api.core.queries import PageParameters
from service.api.core.stamps import snapshot_of, stamp
from service.rounds.latest import ServiceState
from service.views.cluster import Broker
from service.views.model import Model


class Cluster(Model):
    """A cluster and its counts."""

    name: str
    cluster_id: str | None
    brokers: list[Broker]
    controller: int | None
    topics: int
    partitions: int
    groups: int
    gaps: int


class ClusterPage(Paged[Cluster]):
    """The watched clusters."""


class ClusterDetail(Stamped):
    """A cluster and a page of its gaps."""

    cluster: Cluster
    items: list[Gap]
    next: NextCursor


def clusters_router(sources: Sources) -> APIRouter:
    """Return the routes of clusters."""
    router = APIRouter(tags=["clusters"])

    @router.get("/clusters", response_model=ClusterPage)
    async def list_clusters(paging: Paging, query: PageParameters) -> Response:
        """Return the watched clusters; today there is one."""
        state = sources.state
        after = decode_cursor(query.cursor, "clusters", str)
        every = [cluster_of(snapshot_of(state))]
        page = page_of(every, lambda cluster: (cluster.name,), after=after, limit=query.limit)
        return await sources.answers.render(
            lambda: ClusterPage(**stamp(state), **paging.page("clusters", page)), paging
        )

    @router.get("/clusters/{name}", response_model=ClusterDetail)
    async def get_cluster(
        name: Annotated[str, Path(max_length=1000)], paging: Paging, query: PageParameters
    ) -> Response:
        """Return a cluster with the gaps of the last observation."""
        state = sources.state
        if name != state.cluster:
            raise not_found(
                f"no cluster of that name is watched; this service watches {state.cluster}"
            )
        seen = snapshot_of(state)
        begin = decode_row_cursor(query.cursor, "gaps") or 0

        def answer() -> ClusterDetail:
            page = paging.page("gaps", _gaps(state, seen, begin, query.limit))
            return ClusterDetail(**stamp(state), cluster=cluster_of(seen), **page)

        return await sources.answers.render_once(state, answer, paging)

    return router


def cluster_of(seen: Snapshot) -> Cluster:
    """Return the counts of a snapshot."""
    return Cluster(
        name=seen.cluster,
        cluster_id=seen.cluster_id or None,
        brokers=[Broker.of(broker) for broker in seen.brokers],
        controller=seen.controller,
        topics=len(seen.partitions.index.topics),
        partitions=len(seen.partitions),
        groups=len(seen.groups),
        gaps=len(seen.gaps),
    )


def _gaps(state: ServiceState, seen: Snapshot, begin: int, limit: int) -> Page[Gap]:
    """Return gaps by their position: they have no name, and differ in every observation."""
    shown = [gap_of(state, gap) for gap in seen.gaps[begin : begin + limit]]
    end = begin + len(shown)
    return Page(shown, (end,) if end < len(seen.gaps) else None)
