"""How the present leaders were elected, from the last observations, the settings and the logs.

A clean election elects a replica of the ISR. The leader epoch rises by one with each election, and each
time the partition loses its leader: a direct clean election is a single step. An ISR may shrink and grow
again without any step; the ISR just before an election is known only from a recent observation. A new
leader that was not in sync at the last observation may have joined the ISR since, or have got the
partition by a reassignment: then the election is not known, rather than unclean.

More evidence: the controllers' log lines, or their absence; a completed reassignment, which waits for the
ISR; and, where nothing that was observed is missing, either another replica that was in sync before and
still is (an unclean election leaves the leader alone), or a new leader that has records from after the
ISR was read. A partition with a single replica has nobody to lose records to. Where unclean elections
are forbidden, a direct change is clean. The log lines of a leader about its ISR are better than an
observation: the leader may fail before the next one.
Source: KIP-101 (leader epochs), KIP-455 (reassignments), KIP-966 (ELR); tested on real brokers.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rules.facts.broker_log import IsrUpdated, UncleanChange
from rules.facts.column import Bools, Int64s
from rules.facts.last_observation import microseconds
from rules.facts.times import CLOCKS_AGREE_US, MICROSECOND
from rules.loss.changes import Changes
from rules.loss.controllers import LineRows, is_read_since
from rules.loss.out_of_sync import (
    FRESH,
    is_sole_replica_gone,
    was_left_out_without_leader,
)


class Election(StrEnum):
    """How the present leader was elected."""

    CLEAN = "clean"  # it was in sync: nothing that was committed can be missing
    UNCLEAN = "unclean"  # a controller logged it as such
    NOT_KNOWN = "not_known"  # too much happened unobserved


ELECTIONS: Final = tuple(Election)
E = TypeVar("E", UncleanChange, IsrUpdated)
STALLED: Final = timedelta(seconds=5)  # far below Kafka's replica.lag.time.max.ms, 30 s


def elections_of(changes: Changes) -> NDArray[np.int8]:
    """Return for each change the place of its election in `ELECTIONS`."""
    view, before = changes.view, changes.before
    may, stalled = _may_be_allowed(changes), is_watermark_stalled(changes)
    steps = changes.epochs - changes.old_epochs
    in_sync = before.isr.holds(changes.leaders) | before.elr.holds(changes.leaders)
    joined, left_out, _ = _written_isr(changes)
    in_sync |= joined
    is_own = changes.are_own
    was_alone = stalled | (before.isr.lengths <= 1)
    is_old = _age_us(changes) > FRESH // MICROSECOND
    own_unknown = is_own & may & ((steps > 2) | ((steps > 1) & (was_alone | is_old)))
    sync_unknown = ~is_own & in_sync & may & ((steps > 1) | stalled | is_old)
    outside_unknown = ~is_own & ~in_sync & (may | (steps > 1))
    not_known = own_unknown | sync_unknown | outside_unknown | (left_out & ~is_own & may)
    not_known &= is_old | stalled | ~_is_explained(changes, not_known)
    not_known |= was_seen_out_of_sync(changes, may)
    unclean, last_known = _logged_unclean(changes)
    not_known &= ~is_read_since(view, before)
    not_known |= last_known | (unclean & is_own)
    not_known &= ~_is_only_replica(changes)
    elections = np.where(
        not_known, ELECTIONS.index(Election.NOT_KNOWN), ELECTIONS.index(Election.CLEAN)
    )
    elections[unclean & ~is_own] = ELECTIONS.index(Election.UNCLEAN)
    return elections.astype(np.int8)


def is_unclean_if_lost(changes: Changes) -> Bools:
    """Mark the changes that were unclean if what was committed is missing after them."""
    before, leader = changes.before, changes.leaders
    in_sync = before.isr.holds(leader) | before.elr.holds(leader)
    mask: Bools = ~changes.are_own & ~in_sync & _is_allowed(changes)
    return mask


def is_contradicted_directly(changes: Changes) -> Bools:
    """Mark the changes that log lines, or a time without a leader, show not to be clean."""
    unclean, last_known = _logged_unclean(changes)
    _, _, is_against = _written_isr(changes)
    mask: Bools = unclean | last_known | is_against
    mask |= _may_be_allowed(changes) & was_left_out_without_leader(changes)
    return mask


def is_contradicted_by_metadata(changes: Changes) -> Bools:
    """Mark the changes whose new leader was out of sync in metadata; with a slow leader that may be wrong."""
    return was_seen_out_of_sync(changes, _may_be_allowed(changes))


def was_seen_out_of_sync(changes: Changes, may: Bools) -> Bools:
    """Mark the changes in `may` whose new leader was out of sync in the metadata before."""
    mask: Bools = may & was_left_out_without_leader(changes)
    alone = may & is_sole_replica_gone(changes)
    return mask | (alone & ~_was_reassigned(changes)) if alone.any() else mask


def may_be_unclean(changes: Changes) -> Bools:
    """Mark the changes of topics that allow unclean elections, or may allow them."""
    may: Bools = _may_be_allowed(changes) & ~_is_only_replica(changes)
    return may


def _logged_unclean(changes: Changes) -> tuple[Bools, Bools]:
    """Mark the changes that a controller logged as unclean, and those to the last known leader.

    Controllers log the election of the last known leader as unclean too; it loses nothing unless its
    machine failed.
    """
    unclean, last_known = (np.zeros(len(changes.rows), np.bool_) for _ in range(2))
    before, now = changes.before.leader, changes.epochs
    for event, _, place in _list_lines(changes, UncleanChange):
        if event.leader_epoch is None or event.leader == before[place]:
            continue
        is_within = changes.old_epochs[place] < event.leader_epoch <= now[place]
        (last_known if event.is_of_last_known else unclean)[place] |= is_within
    return unclean, last_known


def _written_isr(changes: Changes) -> tuple[Bools, Bools, Bools]:
    """Mark the changes by the ISR that the old leader logged last, since the last observation.

    Three results: an ISR with the new leader, one without it, and one that no clean change can follow.
    Where another broker led in between, the new leader may have joined the ISR then; a leader that was
    alone in the ISR has no other clean successor than itself.
    """
    joined, left_out, alone = (np.zeros(len(changes.rows), np.bool_) for _ in range(3))
    updates = _list_lines(changes, IsrUpdated)
    leader, before = changes.leaders, changes.before.leader
    observed_at = changes.before.observed_at_us.values
    for event, read_us, place in sorted(updates, key=_written_us):
        if event.origin.broker_id not in (None, before[place]):
            continue
        at = _written_us((event, read_us, place)) + CLOCKS_AGREE_US
        if before[place] in event.isr and min(read_us, at) >= observed_at[place]:
            joined[place] = leader[place] in event.isr
            left_out[place] = not joined[place]
            alone[place] = left_out[place] and len(event.isr) == 1
    return joined, left_out, alone | (left_out & changes.are_direct)


def _list_lines(changes: Changes, kind: type[E]) -> list[tuple[E, int, int]]:
    """Return the log lines of a kind, remembered ones first: when each was read, and of which change."""
    view = changes.view
    lines = view.losses_before.lines
    events = [(line.event, line.read_us) for line in lines if isinstance(line.event, kind)]
    now = microseconds(view.now)
    events += [(line, now) for line in view.snapshot.broker_log.events if isinstance(line, kind)]
    if not events:
        return []
    place_of: dict[int | None, int] = {
        row: place for place, row in enumerate(changes.rows.tolist())
    }
    rows = LineRows.of(view.snapshot.partitions)
    return [
        (event, read_us, place)
        for event, read_us in events
        if (place := place_of.get(rows.row(event))) is not None
    ]


def _written_us(update: tuple[IsrUpdated, int, int]) -> int:
    """Return when a line was written; for a line without a time, when it was read."""
    event, read_us, _ = update
    return read_us if event.origin.at is None else microseconds(event.origin.at)


def _is_only_replica(changes: Changes) -> Bools:
    """Mark the changes of partitions with one replica whose leader is the same broker as before."""
    replicas = changes.view.snapshot.partitions.replicas.take(changes.rows)
    mask: Bools = changes.are_own & replicas.valid & (replicas.lengths == 1)
    return mask


def _is_explained(changes: Changes, mask: Bools) -> Bools:
    """Mark the changes in `mask` that a reassignment, or the present ISR, explains as clean."""
    is_explained = np.zeros(len(mask), np.bool_)
    places = np.flatnonzero(mask).astype(np.int64)
    if len(places):
        some = changes.take(places)
        is_trusted = (_has_other_in_sync(some) | _has_followed(some)) & some.all_there
        is_explained[places] = _was_reassigned(some) | is_trusted
    return is_explained


def _has_other_in_sync(changes: Changes) -> Bools:
    """Mark where another replica of the ISR of the last observation is in sync with the new leader.

    The former leader does not count: it is the one that may have failed, and returned since.
    """
    partitions, rows = changes.view.snapshot.partitions, changes.rows
    isr = changes.before.isr
    mask = np.zeros(len(rows), np.bool_)
    now, owner = partitions.isr.take(rows), isr.row_of_value
    leader, before = changes.leaders, changes.before.leader
    is_other = (isr.values != leader.values[owner]) & (isr.values != before.values[owner])
    for row, broker in zip(owner[is_other].tolist(), isr.values[is_other].tolist(), strict=True):
        mask[row] |= broker in (now[row] or ())
    return mask


def _has_followed(changes: Changes) -> Bools:
    """Mark the direct changes before which the log grew after the ISR was read last.

    A new leader that has all of these records was fetching again from the leader that was alone then.
    """
    before, context = changes.before, changes.before.context
    then, last = context.high_watermark.values, before.high_watermark
    reported_at, observed_at = context.isr_reported_us, before.observed_at_us
    has_grown = then.valid & last.valid & (last.values > then.values)
    is_later = reported_at.valid & (observed_at.values > reported_at.values)
    mask: Bools = has_grown & changes.are_direct & is_later
    return mask


def _was_reassigned(changes: Changes) -> Bools:
    """Mark the changes that a reassignment explains: the old leader has no replica any more, or is in sync.

    A reassignment waits until all replicas that stay are in sync.
    """
    view, mask = changes.view, np.zeros(len(changes.rows), np.bool_)
    replicas = changes.before.context.replicas
    present = view.snapshot.partitions.replicas.take(changes.rows)
    isr = view.snapshot.partitions.isr.take(changes.rows)
    leader = changes.leaders
    before = changes.before.leader
    for place in np.flatnonzero(leader.valid & before.valid).tolist():
        is_new = replicas[place] is not None and leader[place] not in (replicas[place] or ())
        is_gone = before[place] not in (present[place] or ())
        mask[place] = is_gone or (is_new and before[place] in (isr[place] or ()))
    return mask


def _is_allowed(changes: Changes) -> Bools:
    """Mark the changes of topics that allowed unclean elections at the last observation, or do now.

    Both count, because an operator who finds a loss forbids them at once.
    """
    now = changes.view.snapshot.partitions.unclean_election_enabled.take(changes.rows)
    before = changes.before.context.unclean_election_enabled
    mask: Bools = (now.valid & (now.values == 1)) | (before.valid & (before.values == 1))
    return mask


def _may_be_allowed(changes: Changes) -> Bools:
    """Mark the changes of topics that allow unclean elections, or whose setting could not be read."""
    now = changes.view.snapshot.partitions.unclean_election_enabled.take(changes.rows)
    return _is_allowed(changes) | ~now.valid


def is_watermark_stalled(changes: Changes) -> Bools:
    """Mark the changes before which the high watermark was unchanged below the log end over two observations.

    The ISR may then shrink to the leader at any time. An observation in which the high watermark jumped,
    as it does when the ISR has shrunk, is newer than the remembered ISR.
    """
    before, context = changes.before, changes.before.context
    watermark, end = before.high_watermark, before.log_end_offset
    observed_at, reported_at = before.observed_at_us, context.isr_reported_us
    since, watermark_then = context.high_watermark.since_us, context.high_watermark.values
    is_ahead = ~end.valid | (end.values > watermark.values)
    same = watermark_then.valid & (watermark_then.values == watermark.values)
    still = since.valid & same & is_ahead & (since.values < observed_at.values)
    jumped = since.valid & watermark_then.valid & (watermark_then.values < watermark.values)
    jumped &= ~reported_at.valid | (since.values < reported_at.values)
    mask: Bools = still | jumped | ~end.valid
    return mask


def is_stalled_for_long(changes: Changes) -> Bools:
    """Mark the changes before which the high watermark, if unchanged, was so for 5 seconds or longer.

    A follower that has just joined the ISR holds the high watermark back for a short time.
    """
    since = changes.before.context.high_watermark.since_us
    observed_at = changes.before.observed_at_us
    mask: Bools = ~since.valid | (observed_at.values - since.values >= STALLED // MICROSECOND)
    return mask


def _age_us(changes: Changes) -> Int64s:
    observed_at = changes.before.observed_at_us
    return microseconds(changes.view.now) - observed_at.values
