"""What must be remembered of each partition so that a later loss can be proven.

After a change of leader the new leader is asked where the remembered epoch ended; the answer is
compared with the offsets remembered here (DESIGN 6.1). A round in which a partition's leader gave
no answer keeps the older memory and its older time. Whoever remembers decides for which partitions:
what a round does not list is not thereby gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Ragged
from rules.facts.identity import TopicId
from rules.facts.matching import matching_rows
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot

MICROSECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastLooks:
    """The last complete look at each partition; one row per partition of `partitions`."""

    partitions: Partitions
    leader_epoch: Column
    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    isr: Ragged
    elr: Ragged
    looked_at_us: Column  # microseconds since 1970-01-01 UTC

    def __getitem__(self, row: int) -> LastLook | None:
        looked_at, epoch = self.looked_at_us[row], self.leader_epoch[row]
        stable, watermark = self.last_stable_offset[row], self.high_watermark[row]
        if looked_at is None or epoch is None or stable is None or watermark is None:
            return None
        return LastLook(
            topic_id=self.partitions.topic_id(row),
            leader_epoch=epoch,
            last_stable_offset=stable,
            high_watermark=watermark,
            log_end_offset=self.log_end_offset[row],
            isr=self.isr[row],
            elr=self.elr[row],
            looked_at_us=looked_at,
        )

    def over(self, partitions: Partitions) -> LastLooks:
        """Return the looks at `partitions`, which begin with these; there is none at the others."""
        if partitions is self.partitions:
            return self
        rows = np.arange(len(partitions), dtype=np.int64)
        rows[len(self.partitions) :] = -1
        return LastLooks(
            partitions=partitions,
            leader_epoch=self.leader_epoch.take(rows),
            last_stable_offset=self.last_stable_offset.take(rows),
            high_watermark=self.high_watermark.take(rows),
            log_end_offset=self.log_end_offset.take(rows),
            isr=self.isr.take(rows),
            elr=self.elr.take(rows),
            looked_at_us=self.looked_at_us.take(rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LastLook:
    """The row view of `LastLooks`, for messages and tests."""

    topic_id: TopicId | None
    leader_epoch: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int | None
    isr: tuple[int, ...] | None
    elr: tuple[int, ...] | None
    looked_at_us: int


def remember(
    snapshot: Snapshot, before: LastLooks | None = None, known: Partitions | None = None
) -> LastLooks:
    """Merge a snapshot into the memory.

    It has the rows of `known`, which begin with those of the snapshot and are no others by default;
    other partitions are forgotten.
    """
    offsets, partitions = snapshot.offsets, snapshot.partitions
    seen = (
        offsets.leader_epoch.valid & offsets.last_stable_offset.valid & offsets.high_watermark.valid
    )
    now = Column.known(np.full(len(partitions), microseconds(snapshot.taken_at), np.int64))
    fresh = LastLooks(
        partitions=partitions,
        leader_epoch=offsets.leader_epoch.where(seen),
        last_stable_offset=offsets.last_stable_offset.where(seen),
        high_watermark=offsets.high_watermark.where(seen),
        log_end_offset=offsets.log_end_offset.where(seen),
        isr=partitions.isr,
        elr=partitions.elr,
        looked_at_us=now.where(seen),
    )
    fresh = fresh.over(partitions if known is None else known)
    return fresh if before is None or fresh.looked_at_us.valid.all() else _keep_older(fresh, before)


def looks_under(stored: LastLooks, seen: LastLooks) -> LastLooks:
    """Return the looks of a process that read the memory of an earlier one late.

    Where the leader epoch changed in between, the older look is kept: it is what a question about
    the end of that epoch will be compared with.
    """
    old_row = matching_rows(seen.partitions, stored.partitions)
    old_epoch = stored.leader_epoch.take(old_row)
    changed = old_epoch.valid & (old_epoch.values != seen.leader_epoch.values)
    return _with_older(seen, stored, (~seen.looked_at_us.valid | changed) & (old_row >= 0))


def _keep_older(fresh: LastLooks, before: LastLooks) -> LastLooks:
    old_row = matching_rows(fresh.partitions, before.partitions)
    return _with_older(fresh, before, ~fresh.looked_at_us.valid & (old_row >= 0))


def _with_older(fresh: LastLooks, before: LastLooks, unseen: Bools) -> LastLooks:
    """Take the rows marked from the older looks."""
    old_row = matching_rows(fresh.partitions, before.partitions)
    rows = len(before.partitions) + np.arange(len(fresh.partitions), dtype=np.int64)
    places = np.where(unseen, old_row, rows)  # among the older rows, then the fresh ones

    def merged(new: Column, old: Column) -> Column:
        return old.joined(new).take(places)

    def merged_lists(new: Ragged, old: Ragged) -> Ragged:
        return old.joined(new).take(places)

    return LastLooks(
        partitions=fresh.partitions,
        leader_epoch=merged(fresh.leader_epoch, before.leader_epoch),
        last_stable_offset=merged(fresh.last_stable_offset, before.last_stable_offset),
        high_watermark=merged(fresh.high_watermark, before.high_watermark),
        log_end_offset=merged(fresh.log_end_offset, before.log_end_offset),
        isr=merged_lists(fresh.isr, before.isr),
        elr=merged_lists(fresh.elr, before.elr),
        looked_at_us=merged(fresh.looked_at_us, before.looked_at_us),
    )


def microseconds(moment: datetime) -> int:
    """Return a moment as microseconds since 1970-01-01 UTC."""
    return round(moment.timestamp() * MICROSECOND)
