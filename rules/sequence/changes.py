"""What is remembered of leader changes, for rejections that come after them.

A rejection follows a change within seconds to minutes. A change that was not clean is kept for an hour
and then only counts as a break of the watch: from then on "only clean changes" cannot be said.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.broker_log import SequenceRejected, UncleanChange, partition_of
from rules.facts.column import Bools, Column
from rules.facts.episodes import ChangeKind, LeaderChange, SequenceMemory, joined_changes
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.last_observation import microseconds
from rules.facts.leaderships import Leaderships
from rules.facts.loss_memory import ReportedLoss
from rules.facts.snapshot import Snapshot
from rules.loss.changes import Changes
from rules.loss.election import Election, may_be_unclean
from rules.loss.proof import Proof, proofs
from rules.view import View

CHANGE_KEPT: Final = timedelta(hours=1)  # far longer than a client tries again
CHANGES_KEPT: Final = 1000  # partitions; a cluster that loses a broker changes many at once

Kept = dict[TopicPartition, tuple[LeaderChange, ...]]


def advance_changes(view: View, before: SequenceMemory) -> tuple[Kept, Leaderships]:
    """Return the changes that are remembered, and since when each partition is watched."""
    changes = Changes.of(view)
    watch = _watched(view, before.leaderships, changes)
    found = dict(before.changes)
    if changes is not None and len(changes.rows):
        for proof in proofs(view):
            _add(found, proof.name, _of_proof(proof, microseconds(view.now)))
    for event in view.snapshot.broker_log.events:
        if isinstance(event, UncleanChange):
            _add_line(found, view, event)
    for loss in view.memory.losses.reported:
        _settle(found, loss, microseconds(view.now))
    if not found:
        return found, watch
    return _forgotten(found, watch, _refusing(view.snapshot, before), microseconds(view.now))


def _settle(found: Kept, loss: ReportedLoss, now_us: int) -> None:
    """Take what the log of an old leader told when it came back, also of a change that seemed clean."""
    if loss.lost_to is None or loss.reported_us <= now_us - CHANGE_KEPT // timedelta(
        microseconds=1
    ):
        return
    is_committed = (loss.committed_to or 0) > loss.epoch_end
    exact = LeaderChange(
        leader_epoch=loss.leader_epoch,
        kind=ChangeKind.LOST if is_committed else ChangeKind.NOT_KNOWN,
        leader=_broker(loss.leader),
        leader_before=_broker(loss.leader_before),
        leader_epoch_before=loss.leader_epoch_before,
        last_observation_us=loss.last_observation_us,
        epoch_end=loss.epoch_end,
        lost_from=loss.epoch_end,
        lost_to=loss.lost_to,
        seen_us=loss.reported_us,
    )
    _add(found, loss.name, exact)


def _add(found: Kept, name: TopicPartition, change: LeaderChange | None) -> None:
    if change is not None:
        found[name] = joined_changes(found.get(name, ()), (change,))


def _of_proof(proof: Proof, now_us: int) -> LeaderChange | None:
    certain = proof.certain
    if certain is not None:
        kind = ChangeKind.LOST
    elif proof.election is Election.CLEAN:
        return None
    else:
        is_unclean = proof.election is Election.UNCLEAN
        kind = ChangeKind.UNCLEAN if is_unclean else ChangeKind.NOT_KNOWN
    return LeaderChange(
        leader_epoch=proof.leader_epoch,
        kind=kind,
        leader=_broker(proof.leader),
        leader_before=_broker(proof.before.leader),
        leader_epoch_before=proof.before.leader_epoch,
        last_observation_us=proof.before.observed_at_us,
        epoch_end=proof.epoch_end,
        lost_from=None if certain is None else certain.start,
        lost_to=None if certain is None else certain.end,
        seen_us=now_us,
    )


def _add_line(found: Kept, view: View, event: UncleanChange) -> None:
    """Take what the controller wrote; one of its two lines names neither topic nor epoch."""
    if event.topic is None or event.leader_epoch is None:
        return
    name, partitions = TopicPartition(event.topic, event.partition), view.snapshot.partitions
    row = partitions.index.row(event.topic, event.partition)
    known = None if row is None else partitions.topic_id(row)
    if None not in (known, event.topic_id) and known != event.topic_id:
        return  # of an older topic of that name
    change = LeaderChange(
        leader_epoch=event.leader_epoch,
        kind=_kind_of_line(view, event, event.leader_epoch),
        leader=event.leader,
        leader_before=event.leader_before,
        leader_epoch_before=None,
        last_observation_us=None,
        epoch_end=None,
        lost_from=None,
        lost_to=None,
        seen_us=microseconds(view.now),
    )
    _add(found, name, change)


def _kind_of_line(view: View, event: UncleanChange, leader_epoch: int) -> ChangeKind:
    """Tell an election of the last known leader apart: it loses nothing while its machine lives."""
    if event.is_of_last_known or _led_at_last_observation(view, event, leader_epoch):
        return ChangeKind.NOT_KNOWN
    return ChangeKind.UNCLEAN


def _led_at_last_observation(view: View, event: UncleanChange, leader_epoch: int) -> bool:
    """Whether who was elected led at the last observation before; of a later one that says nothing."""
    if view.before is None or event.topic is None:
        return False
    observations = view.before.observations
    row = observations.partitions.index.row(event.topic, event.partition)
    observation = None if row is None else observations[row]
    return (
        observation is not None
        and observation.leader_epoch < leader_epoch
        and observation.leader == event.leader
    )


def _broker(number: int | None) -> BrokerId | None:
    return None if number is None else BrokerId(number)


# ------------------------------------------------------------------ since when it is watched
def _watched(view: View, before: Leaderships, changes: Changes | None) -> Leaderships:
    """Return the leaderships one round later; what a round does not see is kept."""
    known = view.memory.partitions
    old, rows = before.over(known), len(known)
    epoch = view.snapshot.offsets.leader_epoch.padded(rows)
    is_new = epoch.valid & ~old.epoch.valid
    is_later = epoch.valid & old.epoch.valid & (epoch.values > old.epoch.values)
    taken = is_new | is_later
    began = is_new | _uncompared(is_later, changes) | _untellable(rows, changes)
    if before.partitions is known and not (taken | began).any():
        return before
    now = microseconds(view.now)
    return Leaderships(
        partitions=known,
        epoch=_over(old.epoch, taken, epoch),
        since_us=_over(old.since_us, taken, Column.known(np.full(rows, now, np.int64))),
        watched_from=_over(old.watched_from, began, epoch),
        clean_from=_over(old.clean_from, began | _uncertain(rows, changes), epoch),
    )


def _uncompared(is_later: Bools, changes: Changes | None) -> Bools:
    """Mark the partitions whose leader changed, and of which no observation before is complete enough.

    Nobody is asked what such a change left.
    """
    found = is_later.copy()
    if changes is not None:
        found[changes.rows] = False
    return found


def _untellable(rows: int, changes: Changes | None) -> Bools:
    """Mark the partitions whose new leader knows nothing of the older epoch: it may have lost all."""
    found = np.zeros(rows, np.bool_)
    if changes is not None and len(changes.rows):
        end = changes.view.snapshot.epoch_ends.end_offset.take(changes.place)
        found[changes.rows[~changes.waiting & ~end.valid]] = True
    return found


def _uncertain(rows: int, changes: Changes | None) -> Bools:
    """Mark the partitions whose leader changed where elections may be unclean.

    An ISR may shrink and its leader die between two observations, and the change then seems clean.
    """
    found = np.zeros(rows, np.bool_)
    if changes is not None and len(changes.rows):
        found[changes.rows[may_be_unclean(changes)]] = True
    return found


def _over(old: Column, mask: Bools, new: Column) -> Column:
    return Column(np.where(mask, new.values, old.values), np.where(mask, new.valid, old.valid))


def _refusing(snapshot: Snapshot, before: SequenceMemory) -> frozenset[TopicPartition | None]:
    """Return the partitions with open episodes, and those of which one begins in this round."""
    lines = (event for event in snapshot.broker_log.events if isinstance(event, SequenceRejected))
    return frozenset([*(name for name, _ in before.open), *map(partition_of, lines)])


def _forgotten(
    found: Kept, watch: Leaderships, refusing: Container[TopicPartition | None], now_us: int
) -> tuple[Kept, Leaderships]:
    """Forget the oldest changes, and begin the watch of their partitions anew behind them."""
    oldest = now_us - CHANGE_KEPT // timedelta(microseconds=1)
    kept = {
        name: tuple(change for change in changes if change.seen_us > oldest)
        for name, changes in _chosen(found, refusing).items()
    }
    gone = {
        name: max(change.leader_epoch for change in changes)
        for name, changes in found.items()
        if (left := kept.get(name, ())) != changes
        for changes in [tuple(change for change in changes if change not in left)]
    }
    return {name: left for name, left in kept.items() if left}, _begun_anew(watch, gone)


def _chosen(
    found: Mapping[TopicPartition, tuple[LeaderChange, ...]],
    refusing: Container[TopicPartition | None],
) -> Kept:
    """Return what is kept of too many: where batches are rejected, what is lost, then the newest."""
    if len(found) <= CHANGES_KEPT:
        return dict(found)

    def worth(name: TopicPartition) -> tuple[bool, bool, int]:
        is_lost = any(one.kind is ChangeKind.LOST for one in found[name])
        return name in refusing, is_lost, max(one.seen_us for one in found[name])

    chosen = sorted(found, key=worth, reverse=True)[:CHANGES_KEPT]
    return {name: found[name] for name in chosen}


def _begun_anew(watch: Leaderships, gone: Mapping[TopicPartition, int]) -> Leaderships:
    rows = {row: epoch for name, epoch in gone.items() if (row := watch.row(name)) is not None}
    if not rows:
        return watch
    values = watch.watched_from.values.copy()
    places = np.array(list(rows), np.int64)
    values[places] = np.maximum(values[places], np.array(list(rows.values()), np.int64))
    return replace(watch, watched_from=Column(values, watch.watched_from.valid))
