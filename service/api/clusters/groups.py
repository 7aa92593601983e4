"""Routes of consumer groups and their committed offsets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Response
from pydantic import Field
from starlette.convertors import PathConvertor, register_url_convertor

from rules import time_lag
from rules.facts import groups as facts
from rules.facts.column import Column, Int64s
from rules.facts.groups import GroupType
from rules.facts.member_memory import NO_HISTORY
from rules.facts.snapshot import Snapshot
from rules.facts.times import EPOCH, MICROSECOND, SECOND_US
from rules.time_lag import TimeLags, WhyAbsent
from service.api.core.models import NextCursor, Paged, Stamped
from service.api.core.paging import Key, Page, Paging, decode_cursor, page_of
from service.api.core.per_round import PerRound
from service.api.core.ports import Sources
from service.api.core.problems import existing
from service.api.core.queries import MAX_PATTERN, PageParameters, PageQuery, Pattern, matches
from service.api.core.stamps import snapshot_of, stamp
from service.rounds.latest import ServiceState
from service.views.cluster import GroupDescription
from service.views.members import (
    Member,
    OwnerField,
    OwnerText,
    Rebalance,
    UnownedPartition,
    count_unowned,
    member_models,
    rebalance_models,
    unowned_models,
)
from service.views.model import Model
from service.views.snapshot_rows import commit_rows, time_lag_rows
from service.views.waiting import WaitsFor

TimeLag = Annotated[
    float | None,
    Field(
        description="For how long the oldest unread offset has been readable; 0 if none is unread"
    ),
]
LowerBound = Annotated[
    float | None,
    Field(
        description="Lower bound; only where the offset became readable before the oldest stored observation"
    ),
]
WhyNoTimeLag = Annotated[
    WhyAbsent | None,
    Field(
        description="Why there is no lag in seconds; null if there is one, and before the first round"
    ),
]


class Group(GroupDescription):
    """A consumer group; its lag is the sum over its commits, in offsets."""

    commit_count: int
    read_committed_lag: int | None
    """Sum of the known lags; null if none is known"""
    read_uncommitted_lag: int | None
    """Likewise"""
    read_committed_lag_seconds: Annotated[
        float | None, Field(description="The longest known one of its commits; null: none is known")
    ]
    read_uncommitted_lag_seconds: float | None
    """Likewise"""
    unknown_lags: Annotated[int, Field(description="Commits whose lag is not known")]


class GroupPage(Paged[Group]):
    """Groups by name."""


class Commit(Model):
    """What a group committed for one partition."""

    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int | None
    read_committed_lag: int | None
    read_uncommitted_lag: int | None
    nothing_to_read: bool | None
    waits_for: WaitsFor
    owner: OwnerField
    member_id: OwnerText
    client_id: OwnerText
    host: OwnerText
    instance_id: OwnerText
    read_committed_lag_seconds: TimeLag
    read_committed_lag_at_least_seconds: LowerBound
    read_committed_lag_seconds_absent: WhyNoTimeLag
    read_uncommitted_lag_seconds: TimeLag
    read_uncommitted_lag_at_least_seconds: LowerBound
    read_uncommitted_lag_seconds_absent: WhyNoTimeLag


class GroupDetail(Stamped):
    """A group and a page of its commits."""

    group: Group
    members: Annotated[
        list[Member] | None,
        Field(
            description="By client id, 1,000 at most, of the `members` of the group; "
            "null: the group could not be described"
        ),
    ]
    rebalances: Annotated[
        list[Rebalance] | None,
        Field(description="Of the last hour, the newest first; null: no round has been judged yet"),
    ]
    unfinished_rebalance_since: Annotated[
        datetime | None, Field(description="null: no rebalance is going on, as far as is known")
    ]
    unowned: list[UnownedPartition]
    """Partitions that had an owner and have none, by topic and partition, 1,000 at most"""
    unowned_count: Annotated[int, Field(description="Of all such partitions")]
    items: list[Commit]
    next: NextCursor


class GroupQuery(PageQuery):
    """Which groups."""

    name: Pattern | None = None
    state: Annotated[str | None, Field(max_length=MAX_PATTERN, examples=["Empty"])] = None
    """Kafka's own word"""
    type: GroupType | None = None


GroupLags = tuple[Int64s, Int64s, Int64s, Column]


class AnyText(PathConvertor):
    """The rest of a path; Starlette's own convertor ends at a line feed, which a group id may contain."""

    regex = r"[\s\S]*"


def groups_router(sources: Sources) -> APIRouter:
    """Return the routes of groups."""
    register_url_convertor("text", AnyText())
    router = APIRouter(tags=["groups"])

    lags = PerRound(total_lags)

    @router.get("/groups", response_model=GroupPage)
    async def list_groups(paging: Paging, query: Annotated[GroupQuery, Query()]) -> Response:
        """Return groups by name, each with the total lag of its commits."""
        state = sources.state
        after = decode_cursor(query.cursor, "groups", str)
        seen = snapshot_of(state)

        def answer() -> GroupPage:
            page = group_page(state, lags.of(seen), query, after)
            return GroupPage(**stamp(state), **paging.page("groups", page))

        return await sources.answers.render_once(state, answer, paging)

    @router.get("/groups/{group:text}", response_model=GroupDetail)
    async def get_group(
        group: Annotated[str, Path(description="May hold slashes and any other text")],
        paging: Paging,
        query: PageParameters,
    ) -> Response:
        """Return a group with its commits by topic and partition."""
        state = sources.state
        seen = snapshot_of(state)
        after = decode_cursor(query.cursor, "commits", str, int)

        def answer() -> GroupDetail:
            places = (place for place, entry in enumerate(seen.groups) if entry.group_id == group)
            place = existing(next(places, None), "the last observation saw no such group")
            page = commit_page(state, place, after, query.limit)
            (item,) = group_items(seen, lags.of(seen), [place], state.time_lags)
            return GroupDetail(
                **stamp(state),
                group=item,
                **_members(state, seen.groups[place]),
                **paging.page("commits", page),
            )

        return await sources.answers.render_once(state, answer, paging)

    return router


def group_page(
    state: ServiceState, lags: GroupLags, query: GroupQuery, after: Key | None
) -> Page[Group]:
    """Return the page of groups that a query selects."""
    seen = snapshot_of(state)
    shown = [place for place, group in enumerate(seen.groups) if _is_queried(group, query)]
    names = seen.groups
    page = page_of(shown, lambda place: (names[place].group_id,), after=after, limit=query.limit)
    return Page(group_items(seen, lags, page.items, state.time_lags), page.last)


def commit_page(state: ServiceState, group: int, after: Key | None, limit: int) -> Page[Commit]:
    """Return the commits of the group at an index, in the order of topic and partition."""
    seen = snapshot_of(state)
    names = seen.partitions.index
    places = np.flatnonzero(seen.commits.group == group)

    def key(place: int) -> Key:
        name = names.topic_partition(int(seen.commits.row[place]))
        return name.topic, name.partition

    page = page_of(places.tolist(), key, after=after, limit=limit)
    shown = np.array(page.items, np.int64)
    rows = zip(commit_rows(seen, shown), time_lag_rows(state.time_lags, shown), strict=True)
    return Page([Commit(**row, **lags) for (_, row), lags in rows], page.last)


def _members(state: ServiceState, group: facts.Group) -> dict[str, Any]:
    """Return the members of a group and what is remembered of them."""
    judged = state.view
    history = NO_HISTORY if judged is None else judged.memory.members.history_of(group.group_id)
    since_us = history.unsettled_since_us
    return {
        "members": member_models(group),
        "rebalances": None if judged is None else rebalance_models(history),
        "unfinished_rebalance_since": None if since_us is None else EPOCH + since_us * MICROSECOND,
        "unowned": unowned_models(history),
        "unowned_count": count_unowned(history),
    }


def _is_queried(group: facts.Group, query: GroupQuery) -> bool:
    return (
        (query.state is None or group.state == query.state)
        and (query.type is None or group.group_type is query.type)
        and matches(query.name, group.group_id)
    )


def group_items(
    seen: Snapshot, lags: GroupLags, places: Sequence[int], times: TimeLags | None
) -> list[Group]:
    """Return groups with the totals of their commits; `lags` are those of all groups."""
    commits, known_lags, total, uncommitted = lags
    longest = {
        f"{name}_lag_seconds": _longest(seen, None if times is None else getattr(times, name))
        for name in ("read_committed", "read_uncommitted")
    }
    return [
        Group.of(
            seen.groups[place],
            commit_count=int(commits[place]),
            read_committed_lag=int(total[place]) if known_lags[place] else None,
            unknown_lags=int(commits[place] - known_lags[place]),
            read_uncommitted_lag=uncommitted[place],
            **{
                name: None if (us := column[place]) is None else us / SECOND_US
                for name, column in longest.items()
            },
        )
        for place in places
    ]


def total_lags(seen: Snapshot) -> GroupLags:
    """Return per group the number of its commits, of its known lags, and the sum of these.

    Last come the sums of the read_uncommitted lags, absent where none is known.
    """
    groups, commits = len(seen.groups), seen.commits
    count = np.bincount(commits.group, minlength=groups).astype(np.int64)
    committed_count, committed = _sum(commits.read_committed_lag(seen.offsets), seen)
    uncommitted_count, uncommitted = _sum(commits.read_uncommitted_lag(seen.offsets), seen)
    return count, committed_count, committed, Column(uncommitted, uncommitted_count > 0)


def _sum(lag: Column, seen: Snapshot) -> tuple[Int64s, Int64s]:
    """Return per group how many of its lags are known, and their sum."""
    groups, group = len(seen.groups), seen.commits.group
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, lag.values)  # absent ones hold 0
    return np.bincount(group[lag.valid], minlength=groups).astype(np.int64), total


def _longest(seen: Snapshot, lag: time_lag.TimeLag | None) -> Column:
    """Return per group the longest known time lag of its commits, in microseconds."""
    longest = np.full(len(seen.groups), -1, np.int64)
    if lag is not None:
        values = np.where(lag.lag_us.valid, lag.lag_us.values, -1)
        np.maximum.at(longest, seen.commits.group, values)
    return Column(np.maximum(longest, 0), longest >= 0)
