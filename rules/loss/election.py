"""How present leaders came to lead, as far as the last observations and the settings tell.

A clean election has its winner among those in sync. The leader epoch rises by one with each election,
and with each time without a leader: a direct clean one is a single step. An ISR may shrink, and
grow again, without any step; what it was just before an election is known only from an observation that is
fresh. A winner that was not in sync at the last observation may have come back since, or have been given the
partition by a reassignment: that is not known, and no unclean election. Some things tell more: a
controller's own lines, or that it wrote none; a reassignment that is over, which waits for the ISR; and,
where nothing that was seen is missing, another replica that was in sync before and is so now, since an
unclean election leaves the leader alone, or that the winner has what came after the ISR was told. Who has the only replica has nobody to lose records to. Where unclean elections are forbidden a
direct change is clean. The log lines of a leader about its ISR say more than an observation: it may die before
the next one.
Source: KIP-101 (leader epochs), KIP-455 (reassignments), KIP-966 (ELR); tried on real brokers.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.broker_log import IsrUpdated, UncleanChange
from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.column import Bools, Int64s
from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.loss.changes import Changes
from rules.loss.controllers import is_read_since
from rules.loss.line_rows import LineRows
from rules.loss.out_of_sync import FRESH, died_alone, holds, was_left_out_without_leader


class Election(StrEnum):
    """How the present leader came to lead."""

    CLEAN = "clean"  # it was in sync: nothing that was committed can be missing
    UNCLEAN = "unclean"  # a controller wrote so
    NOT_KNOWN = "not_known"  # too much happened unseen


ELECTIONS: Final = tuple(Election)
STALLED: Final = timedelta(seconds=5)  # far below Kafka's replica.lag.time.max.ms, 30 s
ALLOWED, FORBIDDEN, UNREAD = 1, 0, -1  # unclean elections of a topic; unread: not to be known


def elections_of(changes: Changes) -> NDArray[np.int8]:
    """Return for each change the place of its election in `ELECTIONS`."""
    view, observations = changes.view, changes.observations
    leader = view.snapshot.partitions.leader.take(changes.rows)
    old_leader = observations.leader.take(changes.observation_of_row)
    allowed, stood = _allowed(changes), stood_still(changes)
    steps = view.snapshot.offsets.leader_epoch.values[changes.rows] - changes.old_epochs
    in_sync = holds(observations.isr, changes.observation_of_row, leader)
    in_sync |= holds(observations.elr, changes.observation_of_row, leader)
    joined, left_out, _ = _written_isr(changes)
    in_sync |= joined
    is_own = leader.valid & old_leader.valid & (leader.values == old_leader.values)
    was_alone = stood | (observations.isr.take(changes.observation_of_row).lengths <= 1)
    is_old = _age_us(changes) > FRESH // timedelta(microseconds=1)
    may = allowed != FORBIDDEN
    own_unknown = is_own & may & ((steps > 2) | ((steps > 1) & (was_alone | is_old)))
    sync_unknown = ~is_own & in_sync & may & ((steps > 1) | stood | is_old)
    outside_unknown = ~is_own & ~in_sync & (may | (steps > 1))
    not_known = own_unknown | sync_unknown | outside_unknown | (left_out & ~is_own & may)
    not_known &= is_old | stood | ~_is_explained(changes, not_known)
    not_known |= was_seen_out_of_sync(changes, may)
    told, last_known = _told(changes)
    observed_at = observations.observed_at_us.take(changes.observation_of_row).values
    not_known &= ~is_read_since(view, observed_at)
    not_known |= last_known | (told & is_own)
    not_known &= ~_is_only_replica(changes)
    found = np.where(
        not_known, ELECTIONS.index(Election.NOT_KNOWN), ELECTIONS.index(Election.CLEAN)
    )
    found[told & ~is_own] = ELECTIONS.index(Election.UNCLEAN)
    return found.astype(np.int8)


def is_unclean_if_lost(changes: Changes) -> Bools:
    """Mark the changes that were unclean if what was committed is missing after them."""
    observations, rows = changes.observations, changes.observation_of_row
    leader = changes.view.snapshot.partitions.leader.take(changes.rows)
    is_own = leader.valid & (leader.values == observations.leader.take(rows).values)
    in_sync = holds(observations.isr, rows, leader) | holds(observations.elr, rows, leader)
    mask: Bools = ~is_own & ~in_sync & (_allowed(changes) == ALLOWED)
    return mask


def contradicted_directly(changes: Changes) -> Bools:
    """Mark the changes of which lines, or a time without a leader, tell what a clean one does not leave."""
    told, last_known = _told(changes)
    _, _, is_against = _written_isr(changes)
    mask: Bools = told | last_known | is_against
    mask |= (_allowed(changes) != FORBIDDEN) & was_left_out_without_leader(changes)
    return mask


def contradicted_by_metadata(changes: Changes) -> Bools:
    """Mark the changes whose winner metadata told to be out of sync: of a slow leader that may be wrong."""
    return was_seen_out_of_sync(changes, _allowed(changes) != FORBIDDEN)


def was_seen_out_of_sync(changes: Changes, may: Bools) -> Bools:
    """Mark those of the changes that may be unclean whose winner the metadata before told to be out."""
    mask: Bools = may & was_left_out_without_leader(changes)
    alone = may & died_alone(changes)
    return mask | (alone & ~_was_reassigned(changes)) if alone.any() else mask


def may_be_unclean(changes: Changes) -> Bools:
    """Mark the changes of topics whose elections may be unclean, as far as is known."""
    may: Bools = (_allowed(changes) != FORBIDDEN) & ~_is_only_replica(changes)
    return may


def _told(changes: Changes) -> tuple[Bools, Bools]:
    """Mark the changes that a controller wrote to be unclean, and those of a last known leader.

    An election of the last known leader is called so too, and loses nothing while its machine lives.
    """
    unclean, last_known = (np.zeros(len(changes.rows), np.bool_) for _ in range(2))
    view = changes.view
    lines = () if view.before is None else view.before.losses.lines
    events = (*(line.event for line in lines), *view.snapshot.broker_log.events)
    told = [event for event in events if isinstance(event, UncleanChange)]
    if not told:
        return unclean, last_known
    place_of: dict[int | None, int] = {
        row: place for place, row in enumerate(changes.rows.tolist())
    }
    rows = LineRows.of(view.snapshot.partitions)
    before = changes.observations.leader.take(changes.observation_of_row)
    now = view.snapshot.offsets.leader_epoch.values[changes.rows]
    for event in told:
        place = place_of.get(rows.row(event))
        if place is None or event.leader_epoch is None or event.leader == before[place]:
            continue
        is_within = changes.old_epochs[place] < event.leader_epoch <= now[place]
        (last_known if event.is_of_last_known else unclean)[place] |= is_within
    return unclean, last_known


def _written_isr(changes: Changes) -> tuple[Bools, Bools, Bools]:
    """Mark the changes before which the old leader wrote last, since the last observation, of an ISR with the
    new leader, of one without it, and of one that no clean change can follow.

    Where another one led between, the new leader may have joined that one; whoever was alone in sync has
    no other clean successor than itself.
    """
    view = changes.view
    joined, left_out, alone = (np.zeros(len(changes.rows), np.bool_) for _ in range(3))
    now = microseconds(view.now)
    lines = () if view.before is None else view.before.losses.lines
    told = [(line.event, line.read_us) for line in lines if isinstance(line.event, IsrUpdated)]
    told += [(one, now) for one in view.snapshot.broker_log.events if isinstance(one, IsrUpdated)]
    if not told:
        return joined, left_out, alone
    place_of: dict[int | None, int] = {
        row: place for place, row in enumerate(changes.rows.tolist())
    }
    rows = LineRows.of(view.snapshot.partitions)
    leader = view.snapshot.partitions.leader.take(changes.rows)
    before = changes.observations.leader.take(changes.observation_of_row)
    observed_at = changes.observations.observed_at_us.take(changes.observation_of_row).values
    for event, read_us in sorted(told, key=_written_us):
        place = place_of.get(rows.row(event))
        if place is None or event.origin.broker_id not in (None, before[place]):
            continue
        at = _written_us((event, read_us)) + CLOCKS_AGREE_US
        if before[place] in event.isr and min(read_us, at) >= observed_at[place]:
            joined[place] = leader[place] in event.isr
            left_out[place] = not joined[place]
            alone[place] = left_out[place] and len(event.isr) == 1
    return joined, left_out, alone | (left_out & changes.are_direct)


def _written_us(told: tuple[IsrUpdated, int]) -> int:
    """Return when a line was written; one without a time was not written after it was read."""
    event, read_us = told
    return read_us if event.origin.at is None else microseconds(event.origin.at)


def _is_only_replica(changes: Changes) -> Bools:
    """Mark where who led leads again, and nobody else has a replica: there is no other history."""
    leader = changes.view.snapshot.partitions.leader.take(changes.rows)
    before = changes.observations.leader.take(changes.observation_of_row)
    is_own = leader.valid & before.valid & (leader.values == before.values)
    replicas = changes.view.snapshot.partitions.replicas.take(changes.rows)
    mask: Bools = is_own & replicas.valid & (replicas.lengths == 1)
    return mask


def _is_explained(changes: Changes, wanted: Bools) -> Bools:
    """Mark those of some changes that a reassignment explains, or the company of the new leader."""
    found = np.zeros(len(wanted), np.bool_)
    places = np.flatnonzero(wanted).astype(np.int64)
    if len(places):
        some = replace(
            changes,
            rows=changes.rows[places],
            observation_of_row=changes.observation_of_row[places],
            place=changes.place[places],
        )
        is_trusted = (_has_company(some) | _has_followed(some)) & some.all_there
        found[places] = _was_reassigned(some) | is_trusted
    return found


def _has_company(changes: Changes) -> Bools:
    """Mark where another replica that was in sync at the last observation is in sync with the new leader.

    Whoever led then does not count: it is the one that may have died, and come back since.
    """
    partitions, rows = changes.view.snapshot.partitions, changes.rows
    isr = changes.observations.isr.take(changes.observation_of_row)
    found = np.zeros(len(rows), np.bool_)
    now, owner = partitions.isr.take(rows), isr.row_of_value
    leader, before = (
        partitions.leader.take(rows),
        changes.observations.leader.take(changes.observation_of_row),
    )
    is_other = (isr.values != leader.values[owner]) & (isr.values != before.values[owner])
    for row, broker in zip(owner[is_other].tolist(), isr.values[is_other].tolist(), strict=True):
        found[row] |= broker in (now[row] or ())
    return found


def _has_followed(changes: Changes) -> Bools:
    """Mark the direct changes before which a light observation saw the log grow since the ISR was told.

    Who has all of that was fetching again from the leader that was alone then.
    """
    epochs, context = changes.view.snapshot.offsets.leader_epoch, changes.observations.context
    then = context.high_watermark.values.take(changes.observation_of_row)
    reported_at = context.isr_reported_us.take(changes.observation_of_row)
    last = changes.observations.high_watermark.take(changes.observation_of_row)
    observed_at = changes.observations.observed_at_us.take(changes.observation_of_row)
    has_grown = then.valid & last.valid & (last.values > then.values)
    is_direct = epochs.values[changes.rows] - changes.old_epochs == 1
    is_later = reported_at.valid & (observed_at.values > reported_at.values)
    mask: Bools = has_grown & is_direct & is_later
    return mask


def _was_reassigned(changes: Changes) -> Bools:
    """Mark where the replicas are others than before, and the old leader is gone from them, or still
    in sync: a reassignment waits until all that are to stay are in sync.
    """
    view, found = changes.view, np.zeros(len(changes.rows), np.bool_)
    replicas = changes.observations.context.replicas.take(changes.observation_of_row)
    present = view.snapshot.partitions.replicas.take(changes.rows)
    isr = view.snapshot.partitions.isr.take(changes.rows)
    leader = view.snapshot.partitions.leader.take(changes.rows)
    before = changes.observations.leader.take(changes.observation_of_row)
    for place in np.flatnonzero(leader.valid & before.valid).tolist():
        is_new = replicas[place] is not None and leader[place] not in (replicas[place] or ())
        is_gone = before[place] not in (present[place] or ())
        found[place] = is_gone or (is_new and before[place] in (isr[place] or ()))
    return found


def _allowed(changes: Changes) -> Int64s:
    """Return whether unclean elections were allowed: as it was remembered, or as it is by now.

    Whoever finds a loss turns them off at once.
    """
    now = changes.view.snapshot.partitions.unclean_election_enabled.take(changes.rows)
    before = changes.observations.context.unclean_election_enabled.take(changes.observation_of_row)
    is_allowed = (now.valid & (now.values == 1)) | (before.valid & (before.values == 1))
    found: Int64s = np.where(is_allowed, ALLOWED, np.where(now.valid, FORBIDDEN, UNREAD))
    return found


def stood_still(changes: Changes) -> Bools:
    """Mark the changes before which the high watermark stood below the log end over two observations, up to the last one.

    The ISR then shrinks to the leader at any time. A light observation that saw it jump after that, as it
    does when the ISR has shrunk, is newer than the ISR that is remembered.
    """
    context, rows = changes.observations.context, changes.observation_of_row
    watermark, end = (
        changes.observations.high_watermark.take(rows),
        changes.observations.log_end_offset.take(rows),
    )
    observed_at, reported_at = (
        changes.observations.observed_at_us.take(rows),
        context.isr_reported_us.take(rows),
    )
    unchanged = context.high_watermark.take(rows)
    since, stood_at = unchanged.since_us, unchanged.values
    is_ahead = ~end.valid | (end.values > watermark.values)
    same = stood_at.valid & (stood_at.values == watermark.values)
    still = since.valid & same & is_ahead & (since.values < observed_at.values)
    jumped = since.valid & stood_at.valid & (stood_at.values < watermark.values)
    jumped &= ~reported_at.valid | (since.values < reported_at.values)
    mask: Bools = still | jumped | ~end.valid
    return mask


def stood_for_long(changes: Changes) -> Bools:
    """Mark the changes before which that lasted, if it did at all: a follower that has just come back into
    the ISR holds the high watermark briefly.
    """
    since = changes.observations.context.high_watermark.take(changes.observation_of_row).since_us
    observed_at = changes.observations.observed_at_us.take(changes.observation_of_row)
    mask: Bools = ~since.valid | (observed_at.values - since.values >= STALLED // MICROSECOND)
    return mask


def _age_us(changes: Changes) -> Int64s:
    observed_at = changes.observations.observed_at_us.take(changes.observation_of_row)
    return microseconds(changes.view.now) - observed_at.values
