"""ListOffsets answers as rows of the partition index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from collectors.session import Response
from collectors.wire import blocks
from collectors.wire.blocks import Layout, TopicBlock
from collectors.wire.failure import Failure
from rules.facts.column import Bools, Column, Int64s
from rules.facts.partitions import PartitionIndex


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredRows:
    """One broker's answer for one kind of offset, as columns of equal length."""

    rows: Int64s
    error: Int64s  # Kafka's error code, 0 for none
    offset: Int64s
    leader_epoch: Int64s

    def only(self, mask: Bools) -> AnsweredRows:
        """Keep some of the rows."""
        return AnsweredRows(
            self.rows[mask], self.error[mask], self.offset[mask], self.leader_epoch[mask]
        )


@dataclass(slots=True, eq=False)
class AnswerReader:
    """Reads the answers to one request, round after round, for one partition index."""

    _layout: Layout | None = None  # of an answer whose records all are rows
    _rows: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))

    def read(self, response: Response, index: PartitionIndex) -> AnsweredRows | Failure:
        """Read an answer; partitions that are not in the index are left out."""
        if response.failure is not None:
            return response.failure
        records = None if self._layout is None else self._layout.read(response.body)
        if records is not None:
            return AnsweredRows(self._rows, records.error, records.offset, records.leader_epoch)
        self._layout = None
        try:
            layout = blocks.list_offsets_layout(response.body)
        except blocks.IrregularError:
            answer = response.read()
            if isinstance(answer, Failure):
                return answer
            return _rows([TopicBlock.of(t.name, t.partitions) for t in answer.topics], index)
        answered = _rows(layout.blocks(), index)
        if len(answered.rows) == len(layout):
            self._layout, self._rows = layout, answered.rows
        return answered


def read_answer(response: Response, index: PartitionIndex) -> AnsweredRows | Failure:
    """Read one answer; partitions that are not in the index are left out."""
    return AnswerReader().read(response, index)


def _rows(topics: Sequence[TopicBlock], index: PartitionIndex) -> AnsweredRows:
    in_index = [block for block in topics if block.topic in index.position_of_topic]
    if not in_index:
        nothing = np.zeros(0, np.int64)
        return AnsweredRows(nothing, nothing, nothing, nothing)
    positions = np.array([index.position_of_topic[block.topic] for block in in_index])
    lengths = [len(block.partition) for block in in_index]
    partition = np.concatenate([block.partition for block in in_index])
    rows = np.repeat(index.starts[positions], lengths) + partition
    inside = (partition >= 0) & (rows < np.repeat(index.starts[positions + 1], lengths))
    return AnsweredRows(
        rows,
        np.concatenate([block.error for block in in_index]),
        np.concatenate([block.offset for block in in_index]),
        np.concatenate([block.leader_epoch for block in in_index]),
    ).only(inside)


class Filling:
    """A column under construction: every row is absent until an answer puts it."""

    def __init__(self, rows: int) -> None:
        self._offset = np.zeros(rows, np.int64)
        self._epoch = np.zeros(rows, np.int64)
        self._valid = np.zeros(rows, np.bool_)

    def put(self, answered: AnsweredRows, at: Int64s | None = None) -> None:
        """Add the error-free, non-negative offsets at their rows, or at the places `at`."""
        usable = (answered.error == 0) & (answered.offset >= 0)
        where = (answered.rows if at is None else at)[usable]
        self._offset[where] = answered.offset[usable]
        self._epoch[where] = answered.leader_epoch[usable]
        self._valid[where] = True

    def offsets(self) -> Column:
        """Return the offsets so far."""
        return Column(self._offset, self._valid)

    def epochs(self) -> Column:
        """Return the leader epochs of these offsets; -1 in an answer is absent."""
        return Column(np.maximum(self._epoch, 0), self._valid & (self._epoch >= 0))
