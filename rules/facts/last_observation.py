"""Remembers each partition's last observation, so that a later loss can be proven.

After a leader change the new leader is queried for the end of the remembered epoch; the answer is
compared with the offsets remembered here (docs/loss.md). The observation before the change is kept until a
leader has reported where its epoch ended, also over a restart and over further changes. A round in which
a partition's leader gave no answer keeps the older observation and its older time; but the ISR under that
leader is reported by other brokers, and the latest one counts: an ISR may shrink to a leader that crashes
before it is queried again. The caller decides which partitions are remembered: one that a round does not
list may still exist.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from rules.facts.at_risk_observations import AtRiskObservations
from rules.facts.column import Bools, Column, Ragged, Table
from rules.facts.epoch_ends import EpochEnds
from rules.facts.identity import TopicId, TopicPartition
from rules.facts.matching import matching_rows
from rules.facts.observation_context import ObservationContext
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.facts.times import SECOND_US
from rules.facts.unchanged_since import UnchangedSince, keep_earlier


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastObservations(Table):
    """The last complete observation of each partition; one row per partition of `partitions`."""

    partitions: Partitions
    leader: Column  # broker id
    leader_epoch: Column
    log_start_offset: Column
    last_stable_offset: Column
    high_watermark: Column
    log_end_offset: Column
    isr: Ragged
    elr: Ragged
    observed_at_us: Column  # microseconds since 1970-01-01 UTC
    context: ObservationContext

    def __getitem__(self, row: int) -> LastObservation | None:
        observed_at, epoch = self.observed_at_us[row], self.leader_epoch[row]
        stable, watermark = self.last_stable_offset[row], self.high_watermark[row]
        if observed_at is None or epoch is None or stable is None or watermark is None:
            return None
        return LastObservation(
            topic_id=self.partitions.topic_id(row),
            leader=self.leader[row],
            leader_epoch=epoch,
            log_start_offset=self.log_start_offset[row],
            last_stable_offset=stable,
            high_watermark=watermark,
            log_end_offset=self.log_end_offset[row],
            isr=self.isr[row],
            elr=self.elr[row],
            observed_at_us=observed_at,
        )

    def of_partition(self, name: TopicPartition) -> LastObservation | None:
        """Return the last observation of a partition by its name."""
        row = self.partitions.index.row(name.topic, name.partition)
        return None if row is None else self[row]

    def over(self, partitions: Partitions) -> LastObservations:
        """Return the observations by the rows of `partitions`, which begin with these; others have none."""
        if partitions is self.partitions:
            return self
        rows = np.arange(len(partitions), dtype=np.int64)
        rows[len(self.partitions) :] = -1
        return replace(self.take(rows), partitions=partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastObservation:
    """The row view of `LastObservations`, for messages and tests."""

    topic_id: TopicId | None
    leader: int | None
    leader_epoch: int
    log_start_offset: int | None
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int | None
    isr: tuple[int, ...] | None
    elr: tuple[int, ...] | None
    observed_at_us: int


def remember(
    snapshot: Snapshot,
    before: LastObservations | None = None,
    all_partitions: Partitions | None = None,
    high_watermark: UnchangedSince | None = None,
) -> LastObservations:
    """Merge a snapshot into the memory.

    An observation of a later leader epoch replaces an older one only once the end of the older epoch is
    known. The result has the rows of `all_partitions`, which begin with those of the snapshot (the
    default); other partitions are forgotten. `high_watermark` is since when the high watermarks are
    unchanged.
    """
    offsets, partitions, described = snapshot.offsets, snapshot.partitions, snapshot.described
    rows = np.arange(len(partitions), dtype=np.int64)
    unchanged = UnchangedSince.absent(0) if high_watermark is None else high_watermark
    seen = (
        offsets.leader_epoch.valid & offsets.last_stable_offset.valid & offsets.high_watermark.valid
    )
    now = Column.known(np.full(len(partitions), microseconds(snapshot.taken_at), np.int64))
    reported = now if snapshot.placement_read else Column.absent(len(partitions))
    fresh = LastObservations(
        partitions=partitions,
        leader=partitions.leader.where(seen),
        leader_epoch=offsets.leader_epoch.where(seen),
        log_start_offset=offsets.log_start_offset.where(seen),
        last_stable_offset=offsets.last_stable_offset.where(seen),
        high_watermark=offsets.high_watermark.where(seen),
        log_end_offset=offsets.log_end_offset.where(seen),
        isr=described.isr,
        elr=described.elr,
        observed_at_us=now.where(seen),
        context=ObservationContext.of(described, unchanged.take(rows), reported),
    )
    fresh = fresh.over(partitions if all_partitions is None else all_partitions)
    if before is None:
        return fresh
    return _keep_older(
        fresh, before, snapshot.epoch_ends, partitions.leader.padded(len(fresh.partitions))
    )


def unsettled_rows(
    observations: LastObservations, partitions: Partitions, leader_epoch: Column
) -> Bools:
    """Mark the rows of `partitions` whose last observation is of an older leader epoch.

    `leader_epoch` is the one in the leaders' present answers.
    """
    old_epoch = observations.leader_epoch.take(matching_rows(partitions, observations.partitions))
    changed: Bools = old_epoch.valid & leader_epoch.valid & (old_epoch.values < leader_epoch.values)
    return changed


def overlay_observations(
    observations: LastObservations, light: AtRiskObservations
) -> LastObservations:
    """Return the observations updated by newer light ones of the same leader epoch."""
    rows = matching_rows(light.partitions, observations.partitions)[light.row]
    epoch = observations.leader_epoch.take(rows)
    is_same = epoch.valid & (epoch.values == light.leader_epoch) & light.high_watermark.valid
    is_same &= light.observed_at_us > observations.observed_at_us.take(rows).values
    at = rows[is_same]

    def overlay(column: Column, over: Column) -> Column:
        values, valid = column.values.copy(), column.valid.copy()
        values[at], valid[at] = over.values[is_same], over.valid[is_same]
        return Column(values, valid)

    return replace(
        observations,
        last_stable_offset=overlay(observations.last_stable_offset, light.last_stable_offset),
        high_watermark=overlay(observations.high_watermark, light.high_watermark),
        log_end_offset=overlay(observations.log_end_offset, light.log_end_offset),
        observed_at_us=overlay(observations.observed_at_us, Column.known(light.observed_at_us)),
    )


def merge_observations(stored: LastObservations, seen: LastObservations) -> LastObservations:
    """Merge the stored observations into memory.

    Where the leader epoch changed in between, the older observation is kept: the end of that epoch will
    be compared with it.
    """
    old_row = matching_rows(seen.partitions, stored.partitions)
    old_epoch = stored.leader_epoch.take(old_row)
    changed = old_epoch.valid & (old_epoch.values != seen.leader_epoch.values)
    stood = keep_earlier(seen.context.high_watermark, stored.context.high_watermark.take(old_row))
    seen = replace(seen, context=replace(seen.context, high_watermark=stood))
    return _with_older(seen, stored, (~seen.observed_at_us.valid | changed) & (old_row >= 0))


def _keep_older(
    fresh: LastObservations, before: LastObservations, ends: EpochEnds, leader: Column
) -> LastObservations:
    """Keep older observations that are not settled; `leader` is the leader that metadata names."""
    old_row = matching_rows(fresh.partitions, before.partitions)
    unseen = ~fresh.observed_at_us.valid & (old_row >= 0)
    waits = unsettled_rows(before, fresh.partitions, fresh.leader_epoch) & ~_is_answered(
        fresh, before.leader_epoch.take(old_row), ends
    )
    # A leader that answers with an older epoch does not know yet that it was replaced.
    old_epoch = before.leader_epoch.take(old_row)
    is_stale = old_epoch.valid & fresh.leader_epoch.valid
    is_stale &= fresh.leader_epoch.values < old_epoch.values
    mask = unseen | waits | is_stale
    old_leader = before.leader.take(old_row)
    both, same = leader.valid & old_leader.valid, leader.values == old_leader.values
    # The leader answered, and no broker said who is in sync: that is as it was said under this leader.
    is_isr_older = ~fresh.context.isr_reported_us.valid & both & same
    is_isr_older &= fresh.leader_epoch.values == old_epoch.values
    if not (mask | is_isr_older).any():
        return fresh
    # An ISR under a leader contains that leader.
    is_isr_reported = unseen & both & same & fresh.isr.holds(leader)
    combined = _with_older(fresh, before, mask, isr_from=(mask & ~is_isr_reported) | is_isr_older)
    context = combined.context.succeeded(
        mask & both & ~same & fresh.isr.valid,
        fresh.context.isr_reported_us,
        was_in_sync=fresh.isr.holds(old_leader),
    )
    return replace(combined, context=context)


def _is_answered(fresh: LastObservations, old_epoch: Column, ends: EpochEnds) -> Bools:
    """Mark the rows whose older epoch's end was answered in this round.

    The rows of a snapshot come first in the memory, so that their numbers are the same.
    """
    rows = np.arange(len(fresh.partitions), dtype=np.int64)
    mask: Bools = ends.find(rows, old_epoch) >= 0
    return mask


def _with_older(
    fresh: LastObservations,
    before: LastObservations,
    unseen: Bools,
    *,
    isr_from: Bools | None = None,
) -> LastObservations:
    """Take the marked rows from the older observations, and their ISR or that of the rows `isr_from`."""
    old_row = matching_rows(fresh.partitions, before.partitions)
    rows = len(before.partitions) + np.arange(len(fresh.partitions), dtype=np.int64)
    places = np.where(unseen, old_row, rows)  # among the older rows, then the fresh ones
    of_sync = places if isr_from is None else np.where(isr_from, old_row, rows)
    leaderless = np.where(fresh.context.leaderless_epoch.valid, rows, places)

    both = before.joined(fresh)
    return replace(
        both.take(places),
        partitions=fresh.partitions,
        isr=both.isr.take(of_sync),
        elr=both.elr.take(of_sync),
        context=both.context.take_by_source(places, of_sync, leaderless),
    )


def microseconds(timestamp: datetime) -> int:
    """Return a time as microseconds since 1970-01-01 UTC."""
    return round(timestamp.timestamp() * SECOND_US)
