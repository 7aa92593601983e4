"""Routes of the past: offsets and lags at a time, and the values of a series, both from history."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from rules.baseline.naming import LABELS
from rules.baseline.series import Series
from service.api.baselines.measured import (
    TURNED_OFF,
    UnreadableFile,
    measured_view,
    read_measured,
    window_until,
)
from service.api.core.ports import Sources
from service.api.core.problems import conflict, invalid, not_found
from service.api.core.stamps import stamp_of
from service.api.past.models import (
    MOST_COMMITS,
    MeasuredDetail,
    MeasuredQuery,
    PastCommit,
    PastDetail,
    PastPartition,
    PastQuery,
    SeriesLabels,
    commit_views,
    partition_view,
)
from service.history.past_offsets import PastRound

NO_PARTITION: Final = "there was no such partition then"
NO_GROUP: Final = "there was no such group then"


def past_router(sources: Sources) -> APIRouter:
    """Return the routes of the past."""
    router = APIRouter(tags=["past"])

    @router.get("/at", response_model=PastDetail)
    async def get_past_offsets(query: Annotated[PastQuery, Query()]) -> Response:
        """Return the four offsets of a partition, or the commits and lags of a group, at a past time.

        They are those of the round nearest to the time; if none is within one interval, nothing is known. Other
        answers are 404 if there was no such subject, as that round saw everything that there was, and 409 where
        history is turned off.
        """
        return await _past(sources, query)

    @router.get("/measured", response_model=MeasuredDetail)
    async def get_measured_series(query: Annotated[MeasuredQuery, Query()]) -> Response:
        """Return what was measured of a series between two times, whether it has a baseline or not.

        A series that never was has no values. Other answers are 409 where history is turned off, and 503
        while its folder is away.
        """
        return await _measured(sources, query)

    return router


async def _past(sources: Sources, query: PastQuery) -> Response:
    is_partition = query.topic is not None and query.partition is not None
    if is_partition == (query.group is not None) or (query.topic is None) != (
        query.partition is None
    ):
        raise invalid("topic", "name either a topic and a partition, or a group")
    past, now = sources.past, sources.utc_now()
    if past is None:
        raise conflict(TURNED_OFF)
    if query.time > now:
        raise invalid("time", "it has not come yet")
    past_round = await sources.in_history(lambda: past.at(query.time))
    interval = past.interval.total_seconds()
    return await sources.answers.render(
        lambda: PastDetail(**stamp_of(now), interval_seconds=interval, **_view(query, past_round))
    )


def _view(query: PastQuery, past_round: PastRound) -> dict[str, Any]:
    partition, commits, is_complete = _subject(query, past_round)
    return {
        "time": query.time,
        "read_at": past_round.at,
        "distance_seconds": None
        if past_round.at is None
        else (past_round.at - query.time).total_seconds(),
        "before": past_round.before,
        "after": past_round.after,
        "cluster_id": None if past_round.offsets is None else past_round.offsets.names.cluster_id,
        "partition": partition,
        "group": query.group,
        "commits": None if commits is None else commits[:MOST_COMMITS],
        "commit_count": None if commits is None else len(commits),
        "is_complete": is_complete,
        "unreadable": [
            UnreadableFile(file=file, reason=reason)
            for file, reason in past_round.unreadable.items()
        ],
    }


def _subject(
    query: PastQuery, past_round: PastRound
) -> tuple[PastPartition | None, list[PastCommit] | None, bool | None]:
    """Return the partition or the commits that are requested as far as a round has read them, and whether that is all.

    Raises:
        ProblemError: there was no such subject (404); not if the round may have missed it.
    """
    offsets = past_round.offsets
    if offsets is None:
        return None, None, None
    names = offsets.names
    if query.topic is not None and query.partition is not None:
        partition = partition_view(offsets, query.topic, query.partition)
        if partition is None and names.has_all_topics:
            raise not_found(NO_PARTITION)
        return partition, None, partition is not None
    group = query.group or ""
    commits = commit_views(offsets, group)
    if commits is None and names.has_all_groups:
        raise not_found(NO_GROUP)
    return None, commits, commits is not None and group not in names.partial_groups


async def _measured(sources: Sources, query: MeasuredQuery) -> Response:
    labels: dict[str, Any] = {
        "topic": query.topic,
        "partition": query.partition,
        "group": query.group,
        "client_id": query.client_id,
    }
    needed = LABELS[query.metric]
    if {name for name, value in labels.items() if value is not None} != set(needed):
        raise invalid("metric", f"its series have these labels: {', '.join(needed) or 'none'}")
    series = Series(cluster=sources.state.cluster, metric=query.metric, **labels)
    now = sources.utc_now()
    window = window_until(query.from_, query.to or now)
    samples = await read_measured(sources, series.series_id, window, now)

    def answer() -> MeasuredDetail:
        shown = SeriesLabels(series_id=str(series.series_id), metric=query.metric, **labels)
        measured = measured_view(samples, window, query.metric.value)
        return MeasuredDetail(**stamp_of(now), series=shown, measured=measured)

    return await sources.answers.render(answer)
