"""Collects what groups committed: one OffsetFetch per coordinator for up to 500 groups.

Source: OffsetFetch v8 (KIP-709, many groups in one request). A share group commits nothing; its
start offsets come from DescribeShareGroupOffsets (KIP-932), and from v1 on its lags (KIP-1226), in which
records that were acknowledged beyond the start offset do not count. A partition without a commit is left
out by the broker or answered with -1: both are "no commit".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from collectors.groups import by_coordinator
from collectors.naming import chunks, counted, listed, summarize
from collectors.session import Build, Request, Response, Session, body_of
from collectors.translate import failure_of
from collectors.wire import blocks, codec
from collectors.wire.api import DESCRIBE_SHARE_GROUP_OFFSETS, OFFSET_FETCH, Api
from collectors.wire.blocks import GroupBlock, TopicBlock
from collectors.wire.failure import Failure
from rules.facts.column import Column, Int64s
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.identity import Broker
from rules.facts.partitions import Partitions

GROUPS_PER_REQUEST: Final = 500
LAG_SINCE: Final = 1  # version of DescribeShareGroupOffsets


@dataclass(frozen=True, slots=True)
class CollectedCommits:
    """The commits, and how many a broker returned more than once (they are kept once)."""

    commits: Commits
    duplicates: int


def collect(
    session: Session, groups: Sequence[Group], partitions: Partitions, *, all_topics: bool
) -> CollectedCommits:
    """Read the commits of all groups for the partitions of `partitions`.

    `all_topics` says that `partitions` holds every visible topic: a commit elsewhere is then a gap (a
    deleted topic, or one without permission); otherwise it is only outside the filter.
    """
    rows = CommitRows(groups, partitions)
    requests = [*_offset_fetches(session, groups), *_share_offsets(session, groups)]
    responses = session.exchange([request for request, _ in requests])
    for (_, members), response in zip(requests, responses, strict=True):
        answer = _read(response)
        if isinstance(answer, Failure):
            what = f"commits of {summarize(members, 'group')}"
            session.add_gap(
                GapScope.COMMITS, what, answer, broker_id=response.request.broker.broker_id
            )
            continue
        for block in answer:
            _take(session, rows, block, response.request.broker)
    rows.report(session, all_topics=all_topics)
    commits, duplicates = rows.done()
    return CollectedCommits(commits, duplicates)


def _take(session: Session, rows: CommitRows, block: GroupBlock, coordinator: Broker) -> None:
    if block.error == codec.NO_ERROR:
        rows.put(block)
        return
    needs = f"DESCRIBE on Group {block.group_id}"
    failure = failure_of(block.error, coordinator, needs=needs)
    what = f"commits of group {block.group_id}"
    session.add_gap(GapScope.COMMITS, what, failure, group=block.group_id)


# ------------------------------------------------------------------ requests
def _offset_fetches(
    session: Session, groups: Sequence[Group]
) -> list[tuple[Request, Sequence[str]]]:
    """Return the requests for all commits: up to 500 groups in each."""
    commits = by_coordinator(session, groups, lambda group: group.group_type != GroupType.SHARE)
    return [
        (Request(coordinator, OFFSET_FETCH, _body(OFFSET_FETCH, names)), names)
        for coordinator, members in commits
        for names in chunks([group.group_id for group in members], GROUPS_PER_REQUEST)
    ]


def _share_offsets(
    session: Session, groups: Sequence[Group]
) -> list[tuple[Request, Sequence[str]]]:
    """Return the requests for all start offsets of share groups."""
    api = DESCRIBE_SHARE_GROUP_OFFSETS
    shares = by_coordinator(session, groups, lambda group: group.group_type == GroupType.SHARE)
    named = [(broker, [group.group_id for group in members]) for broker, members in shares]
    return [(Request(broker, api, _body(api, names)), names) for broker, names in named]


def _body(api: Api, names: Sequence[str]) -> Build:
    return body_of(api, groups=[{"group_id": name, "topics": None} for name in names])


# ------------------------------------------------------------------ answers
def _read(response: Response) -> Sequence[GroupBlock] | Failure:
    if response.failure is not None:
        return response.failure
    if response.request.api is OFFSET_FETCH:
        try:
            return blocks.read_offset_fetch(response.body)
        except blocks.IrregularError:
            pass  # commits with metadata text: read them with the codec
    answer = response.read()
    if isinstance(answer, Failure):
        return answer
    return [
        GroupBlock(
            group.group_id,
            tuple(_topic_block(topic, response) for topic in group.topics),
            int(group.error_code),
        )
        for group in answer.groups
    ]


def _topic_block(topic: Any, response: Response) -> TopicBlock:
    if response.request.api is not OFFSET_FETCH:
        lag = "lag" if (response.version or 0) >= LAG_SINCE else None
        return TopicBlock.of(topic.topic_name, topic.partitions, offset="start_offset", lag=lag)
    return TopicBlock.of(
        topic.name,
        topic.partitions,
        offset="committed_offset",
        leader_epoch="committed_leader_epoch",
    )


# ------------------------------------------------------------------ from answers to columns
class CommitRows:
    """Commits under construction: blocks in, columns without duplicates out."""

    def __init__(self, groups: Sequence[Group], partitions: Partitions) -> None:
        self._partitions = partitions
        self._position = {group.group_id: place for place, group in enumerate(groups)}
        self._group: list[int] = []  # one entry per block, as are the next three
        self._first_row: list[int] = []
        self._end_row: list[int] = []  # exclusive: a partition behind it is not in the index
        self._blocks: list[TopicBlock] = []
        self._elsewhere: dict[str, list[str]] = {}
        self._behind: dict[str, list[str]] = {}  # topics with commits behind their last partition
        self._rejected: dict[tuple[str, str, int], int] = {}

    def put(self, block: GroupBlock) -> None:
        """Add the commits of one group."""
        index = self._partitions.index
        place = self._position.get(block.group_id)
        if place is None:
            return  # the request did not name this group
        for topic in block.topics:
            position = index.position_of_topic.get(topic.topic)
            if position is None:
                self._elsewhere.setdefault(topic.topic, []).append(block.group_id)
                continue
            if topic.error.any():
                self._note_errors(block.group_id, topic)
            first, end = int(index.starts[position]), int(index.starts[position + 1])
            if len(topic.partition) and int(topic.partition.max()) >= end - first:
                self._behind.setdefault(topic.topic, []).append(block.group_id)
            self._group.append(place)
            self._first_row.append(first)
            self._end_row.append(end)
            self._blocks.append(topic)

    def _note_errors(self, group_id: str, topic: TopicBlock) -> None:
        codes, counts = np.unique(topic.error[topic.error != 0], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            self._rejected[group_id, topic.topic, code] = count

    def report(self, session: Session, *, all_topics: bool) -> None:
        """Add the gaps: partitions with an error, and commits for topics that are not visible."""
        for (group, topic, code), count in self._rejected.items():
            what = f"commits of group {group} for {counted(count, 'partition')} of {topic}"
            failure = failure_of(code, "OffsetFetch")
            session.add_gap(GapScope.COMMITS, what, failure, group=group, topic=topic)
        for topic, groups in self._behind.items():
            what = f"commits of {listed(groups)} for new partitions of {topic}"
            why = "the topic has grown since placement was read"
            session.add_gap(GapScope.COMMITS, what, Failure(GapCause.GONE, why), topic=topic)
        if not all_topics:
            return
        for topic, groups in self._elsewhere.items():
            what = f"offsets of topic {topic}, for which {listed(groups)} committed"
            why = "the topic is not in the cluster's list: deleted, or no DESCRIBE on it"
            session.add_gap(GapScope.OFFSETS, what, Failure(GapCause.GONE, why), topic=topic)

    def done(self) -> tuple[Commits, int]:
        """Return the commits, ordered by group and row, and the number of dropped duplicates."""
        if not self._blocks:
            return Commits.none(), 0
        lengths = [len(block.partition) for block in self._blocks]
        group = np.repeat(np.array(self._group, np.int64), lengths)
        first_row = np.repeat(np.array(self._first_row, np.int64), lengths)
        end_row = np.repeat(np.array(self._end_row, np.int64), lengths)
        row = first_row + np.concatenate([block.partition for block in self._blocks])
        offset = np.concatenate([block.offset for block in self._blocks])
        epoch = np.concatenate([block.leader_epoch for block in self._blocks])
        error = np.concatenate([block.error for block in self._blocks])
        usable = np.flatnonzero((error == 0) & (offset >= 0) & (row >= first_row) & (row < end_row))
        first = usable[_first_of_each((group * max(len(self._partitions), 1) + row)[usable])]
        lags = [_lags_of(block) for block in self._blocks]
        commits = Commits(
            group=group[first],
            row=row[first],
            committed_offset=offset[first],
            committed_leader_epoch=_known_from_zero(epoch[first]),
            nothing_to_read=Column.absent(len(first)),
            scan_failed=np.zeros(len(first), np.bool_),
            reported_lag=_known_from_zero(np.concatenate(lags)[first]),
            has_reported_lag=np.repeat([block.lag is not None for block in self._blocks], lengths)[
                first
            ],
        )
        return commits, len(usable) - len(first)


def _lags_of(block: TopicBlock) -> Int64s:
    return np.full(len(block.partition), -1, np.int64) if block.lag is None else block.lag


def _known_from_zero(values: Int64s) -> Column:
    """Return a column in which what is negative on the wire is absent."""
    return Column(np.maximum(values, 0), values >= 0)


def _first_of_each(key: Int64s) -> Int64s:
    """Return the positions of the first occurrence of each key, in ascending order of the key."""
    _, first = np.unique(key, return_index=True)
    return first.astype(np.int64)
