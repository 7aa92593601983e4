"""From the answers about commits to columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from collectors.naming import counted, listed
from collectors.session import Response, Session
from collectors.translate import failure_of
from collectors.wire.blocks import GroupBlock, Layout, TopicBlock
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column, Int64s
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits, Group
from rules.facts.partitions import Partitions


class CommitRows:
    """Commits under construction: blocks in, columns without duplicates out."""

    def __init__(self, groups: Sequence[Group], partitions: Partitions) -> None:
        self._partitions = partitions
        self._position = {group.group_id: place for place, group in enumerate(groups)}
        self._group: list[int] = []  # one entry per block, as are the next three
        self._first_row: list[int] = []
        self._end_row: list[int] = []  # exclusive: a partition behind it is not in the index
        self._blocks: list[TopicBlock] = []
        self._first_record: list[int] = []  # among all that came
        self._records = 0  # that came
        self.source = np.zeros(0, np.int64)  # of each commit: its record among all that came
        self.duplicates = 0  # that were dropped
        self._elsewhere: dict[str, list[str]] = {}
        self._behind: dict[str, list[str]] = {}  # topics with commits behind their last partition
        self._rejected: dict[tuple[str, str, int], int] = {}

    def put(self, block: GroupBlock) -> None:
        """Add the commits of one group."""
        index = self._partitions.index
        place = self._position.get(block.group_id)
        for topic in block.topics:
            first_record, self._records = self._records, self._records + len(topic.partition)
            position = index.position_of_topic.get(topic.topic)
            if place is None:
                continue  # the request did not name this group
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
            self._first_record.append(first_record)

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

    def done(self) -> Commits:
        """Return the commits, ordered by group and row; once."""
        if not self._blocks:
            return Commits.none()
        lengths = np.array([len(block.partition) for block in self._blocks], np.int64)
        before = np.cumsum(lengths) - lengths  # records of the blocks before
        source = np.repeat(np.array(self._first_record, np.int64) - before, lengths)
        source += np.arange(len(source))
        group = np.repeat(np.array(self._group, np.int64), lengths)
        first_row = np.repeat(np.array(self._first_row, np.int64), lengths)
        end_row = np.repeat(np.array(self._end_row, np.int64), lengths)
        row = first_row + np.concatenate([block.partition for block in self._blocks])
        offset = np.concatenate([block.offset for block in self._blocks])
        epoch = np.concatenate([block.leader_epoch for block in self._blocks])
        error = np.concatenate([block.error for block in self._blocks])
        lag = np.concatenate([_lags_of(block) for block in self._blocks])
        has_lag = np.repeat([block.lag is not None for block in self._blocks], lengths)
        is_usable = (error == 0) & (offset >= 0) & (row >= first_row) & (row < end_row)
        group, row, offset, epoch, source, lag = (
            column[is_usable] for column in (group, row, offset, epoch, source, lag)
        )
        first = _first_of_each(group * max(len(self._partitions), 1) + row)
        self.source, self.duplicates = source[first], len(row) - len(first)
        self._blocks = []
        return Commits(
            group=group[first],
            row=row[first],
            committed_offset=offset[first],
            committed_leader_epoch=_known_from_zero(epoch[first]),
            nothing_to_read=Column.absent(len(first)),
            scan_failed=np.zeros(len(first), np.bool_),
            reported_lag=_known_from_zero(lag[first]),
            has_reported_lag=has_lag[is_usable][first],
        )


def _lags_of(block: TopicBlock) -> Int64s:
    return np.full(len(block.partition), -1, np.int64) if block.lag is None else block.lag


def _known_from_zero(values: Int64s) -> Column:
    """Return a column in which what is negative on the wire is absent."""
    return Column(np.maximum(values, 0), values >= 0)


def _first_of_each(key: Int64s) -> Int64s:
    """Return the positions of the first occurrence of each key, in ascending order of the key."""
    _, first = np.unique(key, return_index=True)
    return first.astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswersKey:
    """What the columns that are made of answers depend on, besides the answers."""

    partitions: Partitions
    group_ids: tuple[str, ...]
    requests: tuple[tuple[int | str, ...], ...]  # a broker, and the groups that it was asked for

    def is_same(self, other: AnswersKey) -> bool:
        """Whether the same answers would become the same columns."""
        return (
            self.partitions is other.partitions
            and self.group_ids == other.group_ids
            and self.requests == other.requests
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastAnswers:
    """What the answers of a round were made into: the next ones differ in their offsets, nearly always."""

    key: AnswersKey
    layouts: tuple[Layout, ...]
    is_commit: Bools  # by record: not -1
    rows: CommitRows
    commits: Commits

    @classmethod
    def of(
        cls, key: AnswersKey, layouts: Sequence[Layout | None], rows: CommitRows, commits: Commits
    ) -> LastAnswers | None:
        """Remember a round; None if a part of it was no answer of such a layout."""
        whole = tuple(layout for layout in layouts if layout is not None)
        if len(whole) < len(layouts) or not whole:
            return None
        offsets = [layout.raw(layout.body.data)["offset"] for layout in whole]
        return cls(
            key=key,
            layouts=whole,
            is_commit=np.concatenate(offsets) >= 0,
            rows=rows,
            commits=commits,
        )

    def read(self, key: AnswersKey, responses: Sequence[Response]) -> Commits | None:
        """Return the commits of other answers; None if they differ in more than offsets and epochs."""
        if not self.key.is_same(key) or any(response.failure is not None for response in responses):
            return None
        read = [
            layout.read(response.body)
            for layout, response in zip(self.layouts, responses, strict=True)
        ]
        records = [answer for answer in read if answer is not None]
        if len(records) < len(read):
            return None
        offset = np.concatenate([answer.offset for answer in records])
        if not np.array_equal(offset >= 0, self.is_commit):
            return None
        source = self.rows.source
        epoch = np.concatenate([answer.leader_epoch for answer in records])[source]
        return replace(
            self.commits,
            committed_offset=offset[source],
            committed_leader_epoch=_known_from_zero(epoch),
        )
