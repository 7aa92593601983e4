"""Routes of clusters: their counts, and the gaps of the last observation."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from rules.facts.snapshot import Snapshot
from service.api.core import models
from service.api.core.gap_views import gap_of
from service.api.core.paging import Page, decode_cursor, page_of
from service.api.core.ports import Sources
from service.api.core.problems import not_found
from service.api.core.queries import PageQuery
from service.api.core.stamps import link_next_page, snapshot_of, stamp
from service.rounds.latest import ServiceState
from service.views.snapshot_rows import broker_row


def clusters_router(sources: Sources) -> APIRouter:
    """Return the routes of clusters."""
    router = APIRouter(tags=["clusters"])

    @router.get("/clusters")
    async def list_clusters(
        request: Request, response: Response, query: Annotated[PageQuery, Query()]
    ) -> models.ClusterPage:
        """Return the watched clusters; today there is one."""
        state = sources.state
        after = decode_cursor(query.cursor, "clusters", str)
        every = [cluster_of(snapshot_of(state))]
        page = page_of(every, lambda cluster: (cluster.name,), after=after, limit=query.limit)
        following = link_next_page(request, response, "clusters", page.last)
        return models.ClusterPage(**stamp(state), items=list(page.items), next=following)

    @router.get("/clusters/{name}")
    async def get_cluster(
        name: Annotated[str, Path(max_length=1000)],
        request: Request,
        response: Response,
        query: Annotated[PageQuery, Query()],
    ) -> models.ClusterDetail:
        """Return a cluster with the gaps of the last observation."""
        state = sources.state
        if name != state.cluster:
            raise not_found(
                f"no cluster of that name is watched; this service watches {state.cluster}"
            )
        seen = snapshot_of(state)
        after = decode_cursor(query.cursor, "gaps", int)
        page = _gaps(state, seen, 0 if after is None else after[0], query.limit)
        following = link_next_page(request, response, "gaps", page.last)
        return models.ClusterDetail(
            **stamp(state), cluster=cluster_of(seen), items=list(page.items), next=following
        )

    return router


def cluster_of(seen: Snapshot) -> models.Cluster:
    """Return the counts of a snapshot."""
    return models.Cluster(
        name=seen.cluster,
        cluster_id=seen.cluster_id or None,
        brokers=[models.Broker(**broker_row(broker)) for broker in seen.brokers],
        controller=seen.controller,
        topics=len(seen.partitions.index.topics),
        partitions=len(seen.partitions),
        groups=len(seen.groups),
        gaps=len(seen.gaps),
    )


def _gaps(state: ServiceState, seen: Snapshot, begin: int, limit: int) -> Page[models.Gap]:
    """Return gaps by their position: they have no name, and differ in every observation."""
    shown = [gap_of(state, gap) for gap in seen.gaps[begin : begin + limit]]
    end = begin + len(shown)
    return Page(shown, (end,) if end < len(seen.gaps) else None)
