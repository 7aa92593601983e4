"""What the metadata of the rounds before a change told of a winner that was not in sync.

Without any log two things tell of an unclean election. Where nobody led, only who was in sync or
eligible then can be elected cleanly, because an ISR grows under a leader alone: the next leader epoch is
of one of them. And where a leader that had died already was told to be alone in sync, nobody can have
come back beside it: that one gave no answer in that round, and is not in sync with its successor, tells
it from one that was slow briefly and handed over cleanly.
Source: KIP-966 (ELR); a leader that was killed under load, on real brokers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s, Ragged
from rules.facts.times import MICROSECOND
from rules.loss.changes import Changes

FRESH: Final = timedelta(minutes=1)  # within longer a replica may have come back, and been elected


def was_left_out_without_leader(changes: Changes) -> Bools:
    """Mark the changes just before which nobody led, and the new leader could not be elected cleanly."""
    context, rows = changes.observations.context, changes.observation_of_row
    told = context.leaderless_epoch.take(rows)
    just_before = told.valid & (told.values > changes.old_epochs)
    just_before &= told.values + 1 == _present_epochs(changes)
    mask: Bools = (
        just_before & ~holds(context.electable, rows, changes.leaders) & _is_other(changes)
    )
    return mask


def died_alone(changes: Changes) -> Bools:
    """Mark the direct changes before which the old leader, alone in sync, gave no answer any more."""
    observations, context, rows = (
        changes.observations,
        changes.observations.context,
        changes.observation_of_row,
    )
    reported_at, observed_at = (
        context.isr_reported_us.take(rows),
        observations.observed_at_us.take(rows),
    )
    old_leader, elr = observations.leader.take(rows), observations.elr.take(rows)
    was_alone = (observations.isr.take(rows).lengths == 1) & holds(
        observations.isr, rows, old_leader
    )
    gave_no_answer = reported_at.valid & (reported_at.values > observed_at.values)
    may_be_elected = ~elr.valid | holds(observations.elr, rows, changes.leaders)
    mask: Bools = (
        was_alone & gave_no_answer & ~may_be_elected & changes.are_direct & _is_other(changes)
    )
    return mask & _is_gone_soon(changes, reported_at)


def _is_gone_soon(changes: Changes, reported_at: Column) -> Bools:
    """Mark where the old leader was not in sync with the new one, soon after it was told to be alone."""
    context, rows = changes.observations.context, changes.observation_of_row
    present = changes.view.snapshot.partitions.isr
    is_back = holds(present, changes.rows, changes.observations.leader.take(rows))
    was_back, at = context.was_in_sync.take(rows), context.succeeded_us.take(rows)
    is_in_sync = np.where(was_back.valid, was_back.values == 1, is_back)
    seen_at = np.where(at.valid, at.values, changes.now_us)
    is_soon = seen_at - reported_at.values <= FRESH // MICROSECOND
    mask: Bools = present.take(changes.rows).valid & ~is_in_sync & is_soon
    return mask


def _is_other(changes: Changes) -> Bools:
    """Mark where another one leads than at the last observation."""
    leader, before = changes.leaders, changes.observations.leader.take(changes.observation_of_row)
    mask: Bools = leader.valid & before.valid & (leader.values != before.values)
    return mask


def _present_epochs(changes: Changes) -> Int64s:
    return changes.view.snapshot.offsets.leader_epoch.values[changes.rows]


def holds(lists: Ragged, rows: Int64s, wanted: Column) -> Bools:
    """Mark the rows whose list holds the wanted value."""
    chosen = lists.take(rows)
    owner = chosen.row_of_value
    hit = wanted.valid[owner] & (chosen.values == wanted.values[owner])
    found = np.zeros(len(rows), np.bool_)
    found[owner[hit]] = True
    return found
