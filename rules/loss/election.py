"""How present leaders came to lead, as far as the last looks and the settings tell.

A clean election has its winner among those in sync. The leader epoch rises by one with each election,
and with each moment without a leader: a direct clean one is a single step. An ISR may shrink, and
grow again, without any step; what it was just before an election is known only from a look that is
fresh. Where unclean elections are forbidden none of that matters. The log lines of controllers, and of
a leader whose ISR shrinks, say more than all of that: it may die before the next look.
Source: KIP-101 (leader epochs), KIP-966 (ELR); tried on real brokers.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rules.facts.broker_log import IsrUpdated, UncleanChange
from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.column import Bools, Column, Int64s, Ragged
from rules.facts.last_look import microseconds
from rules.facts.matching import matching_rows
from rules.loss.changes import Changes
from rules.loss.line_rows import LineRows


class Election(StrEnum):
    """How the present leader came to lead."""

    CLEAN = "clean"  # it was in sync: nothing that was committed can be missing
    UNCLEAN = "unclean"  # it was not in sync when last seen, and such an election is allowed
    NOT_KNOWN = "not_known"  # too much happened unseen


ELECTIONS: Final = tuple(Election)
FRESH: Final = timedelta(minutes=1)  # a look this old says little of the ISR at an election
ALLOWED, FORBIDDEN, UNREAD = 1, 0, -1  # unclean elections of a topic; unread: not to be known


def elections_of(changes: Changes) -> NDArray[np.int8]:
    """Return for each change the place of its election in `ELECTIONS`."""
    view, looks = changes.view, changes.looks
    leader = view.snapshot.partitions.leader.take(changes.rows)
    old_leader = looks.leader.take(changes.look_of_row)
    allowed, stood = _allowed(changes), _stood_still(changes)
    steps = view.snapshot.offsets.leader_epoch.values[changes.rows] - changes.old_epochs
    in_sync = _holds(looks.isr, changes.look_of_row, leader)
    in_sync |= _holds(looks.elr, changes.look_of_row, leader)
    is_own = leader.valid & old_leader.valid & (leader.values == old_leader.values)
    was_alone = stood | (looks.isr.take(changes.look_of_row).lengths <= 1)
    is_old = _age_us(changes) > FRESH // timedelta(microseconds=1)
    may = allowed != FORBIDDEN
    own_unknown = is_own & may & ((steps > 2) | ((steps > 1) & (was_alone | is_old)))
    sync_unknown = ~is_own & in_sync & may & ((steps > 1) | stood | is_old)
    outside = ~is_own & ~in_sync
    unclean = outside & (allowed == ALLOWED)
    outside_unknown = outside & ~unclean & ((allowed == UNREAD) | (steps > 1))
    found = np.full(len(changes.rows), ELECTIONS.index(Election.CLEAN), np.int8)
    found[own_unknown | sync_unknown | outside_unknown] = ELECTIONS.index(Election.NOT_KNOWN)
    found[unclean] = ELECTIONS.index(Election.UNCLEAN)
    told, last_known = _told(changes)
    found[told & ~is_own] = ELECTIONS.index(Election.UNCLEAN)
    found[told & is_own] = ELECTIONS.index(Election.NOT_KNOWN)
    doubted = last_known | (_left_out(changes) & ~is_own & may)
    found[doubted & (found == ELECTIONS.index(Election.CLEAN))] = ELECTIONS.index(
        Election.NOT_KNOWN
    )
    return found


def may_be_unclean(changes: Changes) -> Bools:
    """Mark the changes of topics whose elections may be unclean, as far as is known."""
    may: Bools = _allowed(changes) != FORBIDDEN
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
    before = changes.looks.leader.take(changes.look_of_row)
    now = view.snapshot.offsets.leader_epoch.values[changes.rows]
    for event in told:
        place = place_of.get(rows.row(event))
        if place is None or event.leader_epoch is None or event.leader == before[place]:
            continue
        is_within = changes.old_epochs[place] < event.leader_epoch <= now[place]
        (last_known if event.is_of_last_known else unclean)[place] |= is_within
    return unclean, last_known


def _left_out(changes: Changes) -> Bools:
    """Mark the changes before which the old leader wrote last, since the last look, of an ISR without
    the new leader.
    """
    found, view = np.zeros(len(changes.rows), np.bool_), changes.view
    now = microseconds(view.now)
    lines = () if view.before is None else view.before.losses.lines
    told = [(line.event, line.read_us) for line in lines if isinstance(line.event, IsrUpdated)]
    told += [(one, now) for one in view.snapshot.broker_log.events if isinstance(one, IsrUpdated)]
    if not told:
        return found
    place_of: dict[int | None, int] = {
        row: place for place, row in enumerate(changes.rows.tolist())
    }
    rows = LineRows.of(view.snapshot.partitions)
    leader = view.snapshot.partitions.leader.take(changes.rows)
    before = changes.looks.leader.take(changes.look_of_row)
    looked_at = changes.looks.looked_at_us.take(changes.look_of_row).values
    for event, read_us in sorted(told, key=_written_us):
        place = place_of.get(rows.row(event))
        if place is None or event.origin.broker_id not in (None, before[place]):
            continue
        at = _written_us((event, read_us)) + CLOCKS_AGREE_US
        if before[place] in event.isr and min(read_us, at) >= looked_at[place]:
            found[place] = leader[place] not in event.isr
    return found


def _written_us(told: tuple[IsrUpdated, int]) -> int:
    """Return when a line was written; one without a time was not written after it was read."""
    event, read_us = told
    return read_us if event.origin.at is None else microseconds(event.origin.at)


def _allowed(changes: Changes) -> Int64s:
    """Return whether unclean elections were allowed: as it was remembered, or as it is by now.

    Whoever finds a loss turns them off at once.
    """
    view = changes.view
    now = view.snapshot.partitions.unclean_election_enabled.take(changes.rows)
    before = Column.absent(len(changes.rows))
    if view.before is not None:
        old_rows = matching_rows(view.snapshot.partitions, view.before.partitions)
        before = view.before.partitions.unclean_election_enabled.take(old_rows[changes.rows])
    is_allowed = (now.valid & (now.values == 1)) | (before.valid & (before.values == 1))
    found: Int64s = np.where(is_allowed, ALLOWED, np.where(now.valid, FORBIDDEN, UNREAD))
    return found


def _stood_still(changes: Changes) -> Bools:
    """Mark where the high watermark stood below the log end over two looks, up to the last one.

    The ISR then shrinks to the leader at any moment. A light look that saw it jump after that, as it
    does when the ISR has shrunk, is newer than the ISR that is remembered.
    """
    before, view = changes.view.before, changes.view
    watermark = changes.looks.high_watermark.take(changes.look_of_row)
    end = changes.looks.log_end_offset.take(changes.look_of_row)
    looked_at = changes.looks.looked_at_us.take(changes.look_of_row)
    if before is None:
        return np.ones(len(changes.rows), np.bool_)
    rows = matching_rows(view.snapshot.partitions, before.partitions)[changes.rows]
    since = before.high_watermark.since_us.take(rows)
    stood_at = before.high_watermark.values.take(rows)
    is_ahead = ~end.valid | (end.values > watermark.values)
    same = stood_at.valid & (stood_at.values == watermark.values)
    still = since.valid & same & is_ahead & (since.values < looked_at.values)
    jumped = since.valid & stood_at.valid & (stood_at.values < watermark.values)
    jumped &= since.values < (before.taken_us or np.iinfo(np.int64).max)
    found: Bools = still | jumped | ~end.valid
    return found


def _age_us(changes: Changes) -> Int64s:
    looked_at = changes.looks.looked_at_us.take(changes.look_of_row)
    return microseconds(changes.view.now) - looked_at.values


def _holds(lists: Ragged, rows: Int64s, wanted: Column) -> Bools:
    """Mark the rows whose list holds the wanted value."""
    chosen = lists.take(rows)
    owner = chosen.row_of_value
    hit = wanted.valid[owner] & (chosen.values == wanted.values[owner])
    found = np.zeros(len(rows), np.bool_)
    found[owner[hit]] = True
    return found
