"""Remembers leader changes, for the rejections that follow them.

A rejection follows a change within seconds to minutes. A change that was not clean is kept for an hour;
afterwards the watch begins anew behind it, and "only clean changes" no longer covers the time before.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.broker_log import SequenceRejected, UncleanChange, partition_of
from rules.facts.column import Bools, Column
from rules.facts.episodes import ChangeKind, LeaderChange, SequenceMemory, merge_changes
from rules.facts.identity import TopicPartition, are_different
from rules.facts.last_observation import microseconds
from rules.facts.leaderships import Leaderships
from rules.facts.loss_memory import ReportedLoss
from rules.facts.snapshot import Snapshot
from rules.facts.times import MICROSECOND
from rules.facts.unchanged_since import either
from rules.loss.changes import Changes
from rules.loss.election import Election, may_be_unclean
from rules.loss.proof import Proof, list_proofs
from rules.view import View

CHANGE_KEPT: Final = timedelta(hours=1)  # far longer than a client retries
CHANGES_KEPT: Final = 1000  # partitions; a cluster that loses a broker changes many at once

RememberedChanges = dict[TopicPartition, tuple[LeaderChange, ...]]


def advance_changes(view: View, before: SequenceMemory) -> tuple[RememberedChanges, Leaderships]:
    """Return the remembered leader changes, and since which epoch each partition is watched."""
    changes = Changes.of(view)
    watch = _watch_leaderships(view, before.leaderships, changes)
    remembered = dict(before.changes)
    if changes is not None and len(changes.rows):
        for proof in list_proofs(view):
            _add(remembered, proof.name, _of_proof(proof, microseconds(view.now)))
    for event in view.snapshot.broker_log.events:
        if isinstance(event, UncleanChange):
            _add_line(remembered, view, event)
    for loss in view.memory.losses.reported:
        _add_returned_log(remembered, loss, microseconds(view.now))
    if not remembered:
        return remembered, watch
    return _forget_old_changes(
        remembered, watch, _list_rejecting(view.snapshot, before), microseconds(view.now)
    )


def _add_returned_log(remembered: RememberedChanges, loss: ReportedLoss, now_us: int) -> None:
    """Add the range that a former leader's log shows when it returns, also for a seemingly clean change."""
    if loss.lost_to is None or loss.reported_us <= now_us - CHANGE_KEPT // MICROSECOND:
        return
    is_committed = (loss.committed_to or 0) > loss.epoch_end
    exact = LeaderChange(
        leader_epoch=loss.leader_epoch,
        kind=ChangeKind.LOST if is_committed else ChangeKind.NOT_KNOWN,
        leader=loss.leader,
        leader_before=loss.leader_before,
        leader_epoch_before=loss.leader_epoch_before,
        last_observation_us=loss.last_observation_us,
        epoch_end=loss.epoch_end,
        lost_from=loss.epoch_end,
        lost_to=loss.lost_to,
        seen_us=loss.reported_us,
    )
    _add(remembered, loss.name, exact)


def _add(remembered: RememberedChanges, name: TopicPartition, change: LeaderChange | None) -> None:
    if change is not None:
        remembered[name] = merge_changes(remembered.get(name, ()), (change,))


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
        leader=proof.leader,
        leader_before=proof.before.leader,
        leader_epoch_before=proof.before.leader_epoch,
        last_observation_us=proof.before.observed_at_us,
        epoch_end=proof.epoch_end,
        lost_from=None if certain is None else certain.start,
        lost_to=None if certain is None else certain.end,
        seen_us=now_us,
    )


def _add_line(remembered: RememberedChanges, view: View, event: UncleanChange) -> None:
    """Add a change that the controller logged; one of its two lines names neither topic nor epoch."""
    if event.topic is None or event.leader_epoch is None:
        return
    name, partitions = TopicPartition(event.topic, event.partition), view.snapshot.partitions
    row = partitions.index.row(event.topic, event.partition)
    if row is not None and are_different(partitions.topic_id(row), event.topic_id):
        return  # of an older topic of that name
    change = LeaderChange(
        leader_epoch=event.leader_epoch,
        kind=_kind_of_line(view, event, event.leader_epoch),
        leader=event.leader,
        leader_before=event.leader_before,
        seen_us=microseconds(view.now),
    )
    _add(remembered, name, change)


def _kind_of_line(view: View, event: UncleanChange, leader_epoch: int) -> ChangeKind:
    """Return the kind of a logged change; electing the last known leader loses nothing unless it crashed."""
    if event.is_of_last_known or _led_at_last_observation(view, event, leader_epoch):
        return ChangeKind.NOT_KNOWN
    return ChangeKind.UNCLEAN


def _led_at_last_observation(view: View, event: UncleanChange, leader_epoch: int) -> bool:
    """Whether the elected broker already led, in an older epoch, at the last observation."""
    if view.before is None or event.topic is None:
        return False
    name = TopicPartition(event.topic, event.partition)
    observation = view.before.observations.of_partition(name)
    return (
        observation is not None
        and observation.leader_epoch < leader_epoch
        and observation.leader == event.leader
    )


def _watch_leaderships(view: View, before: Leaderships, changes: Changes | None) -> Leaderships:
    """Return the leaderships one round later; those that this round did not see are kept."""
    partitions = view.memory.partitions
    old, rows = before.over(partitions), len(partitions)
    epoch = view.snapshot.offsets.leader_epoch.padded(rows)
    is_new = epoch.valid & ~old.epoch.valid
    is_later = epoch.valid & old.epoch.valid & (epoch.values > old.epoch.values)
    taken = is_new | is_later
    began = is_new | _mark_uncompared(is_later, changes) | _mark_unanswered(rows, changes)
    if before.partitions is partitions and not (taken | began).any():
        return before
    now = microseconds(view.now)
    return Leaderships(
        partitions=partitions,
        epoch=either(taken, epoch, old.epoch),
        since_us=either(taken, Column.known(np.full(rows, now, np.int64)), old.since_us),
        watched_from=either(began, epoch, old.watched_from),
        clean_from=either(began | _mark_uncertain(rows, changes), epoch, old.clean_from),
    )


def _mark_uncompared(is_later: Bools, changes: Changes | None) -> Bools:
    """Mark the partitions whose leader changed and that have no complete earlier observation.

    The end of the older epoch is not queried for such a change.
    """
    mask = is_later.copy()
    if changes is not None:
        mask[changes.rows] = False
    return mask


def _mark_unanswered(rows: int, changes: Changes | None) -> Bools:
    """Mark the partitions whose new leader has nothing of the older epoch: it may have lost all."""
    mask = np.zeros(rows, np.bool_)
    if changes is not None:
        mask[changes.rows[changes.is_answered & ~changes.returned_end.valid]] = True
    return mask


def _mark_uncertain(rows: int, changes: Changes | None) -> Bools:
    """Mark the partitions whose leader changed while unclean elections were allowed.

    An ISR may shrink and its leader crash between two observations: the change then seems clean.
    """
    mask = np.zeros(rows, np.bool_)
    if changes is not None and len(changes.rows):
        mask[changes.rows[may_be_unclean(changes)]] = True
    return mask


def _list_rejecting(snapshot: Snapshot, before: SequenceMemory) -> frozenset[TopicPartition | None]:
    """Return the partitions with an open episode, or with a rejected batch in this round."""
    lines = (event for event in snapshot.broker_log.events if isinstance(event, SequenceRejected))
    return frozenset([*(name for name, _ in before.open), *map(partition_of, lines)])


def _forget_old_changes(
    remembered: RememberedChanges,
    watch: Leaderships,
    rejecting: Container[TopicPartition | None],
    now_us: int,
) -> tuple[RememberedChanges, Leaderships]:
    """Forget the oldest changes, and restart the watch of their partitions after them."""
    oldest = now_us - CHANGE_KEPT // MICROSECOND
    retained = {
        name: tuple(change for change in changes if change.seen_us > oldest)
        for name, changes in _choose_retained(remembered, rejecting).items()
    }
    gone = {
        name: max(change.leader_epoch for change in changes)
        for name, changes in remembered.items()
        if (recent := retained.get(name, ())) != changes
        for changes in [tuple(change for change in changes if change not in recent)]
    }
    return {name: recent for name, recent in retained.items() if recent}, _restart_watch(
        watch, gone
    )


def _choose_retained(
    remembered: Mapping[TopicPartition, tuple[LeaderChange, ...]],
    rejecting: Container[TopicPartition | None],
) -> RememberedChanges:
    """Return at most `CHANGES_KEPT` partitions: with rejections first, then with losses, then the newest."""
    if len(remembered) <= CHANGES_KEPT:
        return dict(remembered)

    def worth(name: TopicPartition) -> tuple[bool, bool, int]:
        is_lost = any(change.kind is ChangeKind.LOST for change in remembered[name])
        return name in rejecting, is_lost, max(change.seen_us for change in remembered[name])

    chosen = sorted(remembered, key=worth, reverse=True)[:CHANGES_KEPT]
    return {name: remembered[name] for name in chosen}


def _restart_watch(watch: Leaderships, gone: Mapping[TopicPartition, int]) -> Leaderships:
    rows = {row: epoch for name, epoch in gone.items() if (row := watch.row(name)) is not None}
    if not rows:
        return watch
    values = watch.watched_from.values.copy()
    places = np.array(list(rows), np.int64)
    values[places] = np.maximum(values[places], np.array(list(rows.values()), np.int64))
    return replace(watch, watched_from=Column(values, watch.watched_from.valid))
