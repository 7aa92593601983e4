"""Collects what groups committed: one OffsetFetch per coordinator for up to 500 groups.

Source: OffsetFetch v8 (KIP-709, many groups in one request). A share group commits nothing; its
start offsets come from DescribeShareGroupOffsets (KIP-932), and from v1 on its lags (KIP-1226), in which
records that were acknowledged beyond the start offset do not count. A partition without a commit is left
out by the broker or answered with -1: both are "no commit".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from collectors.commit_rows import AnswersKey, CommitRows, LastAnswers
from collectors.groups import by_coordinator
from collectors.naming import chunks, summarize
from collectors.session import Build, EncodedRequests, Request, Response, Session, body_of
from collectors.translate import failure_of
from collectors.wire import blocks, codec
from collectors.wire.api import DESCRIBE_SHARE_GROUP_OFFSETS, OFFSET_FETCH, Api
from collectors.wire.blocks import GroupBlock, Layout, TopicBlock
from collectors.wire.failure import Failure
from rules.facts.gap import GapScope
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.partitions import Partitions

GROUPS_PER_REQUEST: Final = 500
LAG_SINCE: Final = 1  # version of DescribeShareGroupOffsets


@dataclass(frozen=True, slots=True)
class CollectedCommits:
    """The commits, and how many a broker returned more than once (they are kept once)."""

    commits: Commits
    duplicates: int


@dataclass(slots=True)
class CommitReader:
    """Reads commits; keeps the encoded requests, and what the answers of the last round were made into."""

    _requests: EncodedRequests = field(default_factory=EncodedRequests)
    _last: LastAnswers | None = None

    def collect(
        self,
        session: Session,
        groups: Sequence[Group],
        partitions: Partitions,
        *,
        all_topics: bool,
    ) -> CollectedCommits:
        """Read the commits of all groups for the partitions of `partitions`.

        `all_topics` says that `partitions` holds every visible topic: a commit elsewhere is then a gap (a
        deleted topic, or one without permission); otherwise it is only outside the filter.
        """
        requests = [*_offset_fetches(session, groups), *_share_offsets(session, groups)]
        responses = self._requests.exchange(
            session, [request for request, _ in requests], [tuple(names) for _, names in requests]
        )
        key = AnswersKey(
            partitions=partitions,
            group_ids=tuple(group.group_id for group in groups),
            requests=tuple((request.broker.broker_id, *names) for request, names in requests),
        )
        commits = None if self._last is None else self._last.read(key, responses)
        if self._last is None or commits is None:
            rows = CommitRows(groups, partitions)
            layouts = [
                _take(session, rows, names, response)
                for (_, names), response in zip(requests, responses, strict=True)
            ]
            commits = rows.done()
            self._last = LastAnswers.of(key, layouts, rows, commits)
        else:
            rows = self._last.rows
        rows.report(session, all_topics=all_topics)
        return CollectedCommits(commits, rows.duplicates)


def _take(
    session: Session, rows: CommitRows, names: Sequence[str], response: Response
) -> Layout | None:
    """Add an answer, or the gap in its place; return its layout if nothing else is in it."""
    answer = _read(response)
    coordinator = response.request.broker
    if isinstance(answer, Failure):
        what = f"commits of {summarize(names, 'group')}"
        session.add_gap(GapScope.COMMITS, what, answer, broker_id=coordinator.broker_id)
        return None
    layout, groups = answer
    for block in groups:
        if block.error == codec.NO_ERROR:
            rows.put(block)
            continue
        needs = f"DESCRIBE on Group {block.group_id}"
        failure = failure_of(block.error, coordinator, needs=needs)
        what = f"commits of group {block.group_id}"
        session.add_gap(GapScope.COMMITS, what, failure, group=block.group_id)
        layout = None
    return layout


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


def _read(response: Response) -> tuple[Layout | None, Sequence[GroupBlock]] | Failure:
    if response.failure is not None:
        return response.failure
    if response.request.api is OFFSET_FETCH:
        try:
            return blocks.offset_fetch_layout(response.body)
        except blocks.IrregularError:
            pass  # commits with metadata text: read them with the codec
    answer = response.read()
    if isinstance(answer, Failure):
        return answer
    return None, [
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
