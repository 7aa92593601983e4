"""The lags behind which a log may be scanned, as columns: one row per commit, from round to round.

A commit is the same in two rounds if group, partition and topic are, and its lag if the committed offset
is the same too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rules.facts.column import Bools, Column, Int64s, left_out
from rules.facts.commit_keys import CommitKeys
from rules.facts.commit_memory import CommitMemory
from rules.facts.matching import matching_rows
from rules.facts.offsets import Offsets


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lags(CommitKeys):
    """Commits with a lag, ordered by group and row, and what is known of each."""

    committed: Int64s
    epoch: Int64s  # of the leader
    has_epoch: Bools
    end: Int64s  # last stable offset
    is_small: Bools
    is_unmoved: Bools  # small in the last round too, and the same
    # In this epoch and up to this end: 1 nothing to read, 0 records.
    answer: Column
    # A long stretch takes some rounds: nothing to read before this offset, in `clear_epoch`.
    clear_until: Column
    clear_epoch: Int64s
    turn: Int64s  # number of the round that scanned it last; 0: none
    seen: Int64s  # number of the round

    @classmethod
    def of(
        cls,
        keys: CommitKeys,
        offsets: Offsets,
        committed: Int64s,
        *,
        is_small: Bools,
        number: int,
    ) -> Lags:
        """Return the lags of some commits in a round, of which nothing is known yet."""
        row, count = keys.row, len(keys)
        nothing = np.zeros(count, np.int64)
        return cls(
            partitions=keys.partitions,
            group_ids=keys.group_ids,
            group=keys.group,
            row=row,
            committed=committed,
            epoch=offsets.leader_epoch.values[row],
            has_epoch=offsets.leader_epoch.valid[row],
            end=offsets.last_stable_offset.values[row],
            is_small=is_small,
            is_unmoved=np.zeros(count, np.bool_),
            answer=Column.absent(count),
            clear_until=Column.absent(count),
            clear_epoch=nothing,
            turn=nothing,
            seen=np.full(count, number, np.int64),
        )

    @classmethod
    def none(cls) -> Lags:
        """Return no lags."""
        return remembered_lags(CommitMemory.none())

    def recalled(self, before: Lags, at: Int64s) -> Lags:
        """Return the lags with what was known of them before; `at` are their places there, -1 for none."""
        if not len(before):
            return self
        old = before.take(np.maximum(at, 0))
        is_same = (at >= 0) & (old.committed == self.committed)
        holds = is_same & (old.end == self.end) & (old.epoch == self.epoch)
        return replace(
            self,
            answer=old.answer.where(holds),
            clear_until=old.clear_until.where(is_same),
            clear_epoch=old.clear_epoch,
            turn=np.where(is_same, old.turn, 0),
            # A new leader alone is no movement.
            is_unmoved=is_same & old.is_small & (old.seen == self.seen - 1) & (old.end == self.end),
        )

    def with_unseen(self, before: Lags, at: Int64s, number: int) -> Lags:
        """Return the lags, and those of the last round that this one does not show."""
        is_left = left_out(len(before), at) & (before.seen == number - 1)
        if not is_left.any():
            return self
        rows = matching_rows(before.partitions, self.partitions, needs_id=False)
        left = before.take(np.flatnonzero(is_left & (rows[before.row] >= 0)))
        names = tuple(dict.fromkeys((*self.group_ids, *before.group_ids)))
        place = {name: position for position, name in enumerate(names)}
        moved = np.array([place[name] for name in before.group_ids], np.int64)
        both = self.joined(replace(left, group=moved[left.group], row=rows[left.row]))
        order = np.lexsort((both.row, both.group)).astype(np.int64)
        return replace(both.take(order), group_ids=names)


def remembered_lags(memory: CommitMemory) -> Lags:
    """Return the lags whose answers an earlier process remembered, as of the round before the first."""
    known = np.flatnonzero(memory.readable.answer.valid).astype(np.int64)
    commits, count = memory.take(known), len(known)
    nothing = np.zeros(count, np.int64)
    return Lags(
        partitions=commits.partitions,
        group_ids=commits.group_ids,
        group=commits.group,
        row=commits.row,
        committed=commits.unchanged.values.values,
        epoch=commits.readable.epoch,
        has_epoch=np.ones(count, np.bool_),
        end=commits.readable.end,
        is_small=np.ones(count, np.bool_),
        is_unmoved=np.zeros(count, np.bool_),
        answer=commits.readable.answer,
        clear_until=Column.absent(count),
        clear_epoch=nothing,
        turn=nothing,
        seen=nothing,
    )
