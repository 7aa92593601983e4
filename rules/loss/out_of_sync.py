"""Signs of an unclean election in the metadata of the rounds before a leader change.

Without any log there are two signs. Where the partition had no leader, only a replica that was then in the
ISR or the ELR can be elected cleanly, because an ISR grows only under a leader: the next leader epoch
belongs to one of them. And where metadata showed an ISR of one leader that had already failed, no other
replica can have joined it: that the leader did not answer in that round, and is not in sync with its
successor, distinguishes it from a leader that was briefly slow and handed over cleanly.
Source: KIP-966 (ELR); a leader that was killed under load, on real brokers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column
from rules.facts.times import MICROSECOND
from rules.loss.changes import Changes

FRESH: Final = timedelta(minutes=1)  # after longer a replica may have returned, and been elected


def was_left_out_without_leader(changes: Changes) -> Bools:
    """Mark the changes just after a time without a leader whose new leader was not electable cleanly."""
    context = changes.before.context
    leaderless = context.leaderless_epoch
    just_before = leaderless.valid & (leaderless.values > changes.old_epochs)
    just_before &= leaderless.values + 1 == changes.epochs
    mask: Bools = just_before & ~context.electable.holds(changes.leaders) & _is_other(changes)
    return mask


def is_sole_replica_gone(changes: Changes) -> Bools:
    """Mark the direct changes before which the old leader, alone in the ISR, did not answer any more."""
    before, reported_at = changes.before, changes.before.context.isr_reported_us
    observed_at = before.observed_at_us
    was_alone = (before.isr.lengths == 1) & before.isr.holds(before.leader)
    gave_no_answer = reported_at.valid & (reported_at.values > observed_at.values)
    may_be_elected = ~before.elr.valid | before.elr.holds(changes.leaders)
    mask: Bools = (
        was_alone & gave_no_answer & ~may_be_elected & changes.are_direct & _is_other(changes)
    )
    return mask & _is_gone_soon(changes, reported_at)


def _is_gone_soon(changes: Changes, reported_at: Column) -> Bools:
    """Mark where the old leader was not in sync with the new one soon after its ISR of one was read."""
    context = changes.before.context
    present = changes.view.snapshot.partitions.isr.take(changes.rows)
    is_back = present.holds(changes.before.leader)
    was_back, at = context.was_in_sync, context.succeeded_us
    is_in_sync = np.where(was_back.valid, was_back.values == 1, is_back)
    seen_at = np.where(at.valid, at.values, changes.now_us)
    is_soon = seen_at - reported_at.values <= FRESH // MICROSECOND
    mask: Bools = present.valid & ~is_in_sync & is_soon
    return mask


def _is_other(changes: Changes) -> Bools:
    """Mark where another broker leads than at the last observation."""
    leader, before = changes.leaders, changes.before.leader
    mask: Bools = leader.valid & before.valid & (leader.values != before.values)
    return mask
