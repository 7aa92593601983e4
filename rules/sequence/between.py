"""Whether a leader change came between the last accepted sequence and the rejected batch.

Each answer is True, False or None (not known). Offsets order events in one log; broker ids order only
what a broker wrote while another one led; clocks order the rest, as far as they agree.
"""

from __future__ import annotations

from rules.facts.episodes import LeaderChange
from rules.facts.rejections import Rejection
from rules.facts.times import CLOCKS_AGREE_US
from rules.sequence.log_entries import last_of
from rules.sequence.numbers import NO_BATCH, last_sequence


def lies_between(change: LeaderChange, rejection: Rejection) -> bool:
    """Whether a change certainly came after the last sequence and before the rejection."""
    return (
        is_after_append(change, rejection) is True
        and is_before_rejection(change, rejection) is True
    )


def may_lie_between(change: LeaderChange, rejection: Rejection) -> bool:
    """Whether a change may have come after the last sequence and before the rejection."""
    answers = (is_after_append(change, rejection), is_before_rejection(change, rejection))
    return False not in answers


def appended_in(rejection: Rejection) -> int | None:
    """Return the leader epoch in which the last batch was appended, where it is known."""
    last = last_of(rejection)
    return None if last is None else last.leader_epoch


def is_after_append(change: LeaderChange, rejection: Rejection) -> bool | None:
    """Whether the last sequence was appended before the change."""
    appended = appended_in(rejection)
    if appended is not None and appended >= change.leader_epoch:
        return False
    if _is_marked_since(rejection, change):
        return None
    if appended is not None:
        return True
    if change.epoch_end is None or rejection.offset is None:
        return None
    if rejection.offset <= change.epoch_end:
        return True  # the log of the rejecting leader had nothing of the new epoch yet
    nothing_from = rejection.nothing_from
    return True if nothing_from is not None and nothing_from <= change.epoch_end else None


def _is_marked_since(rejection: Rejection, change: LeaderChange) -> bool:
    """Whether the new leader wrote a marker: the missing batches were sent before it, or after it."""
    marker = rejection.marker
    is_first = last_sequence(rejection) == NO_BATCH
    return is_first and marker is not None and marker.leader_epoch >= change.leader_epoch


def is_before_rejection(change: LeaderChange, rejection: Rejection) -> bool | None:
    """Whether the batch was rejected after the change."""
    if _is_since(rejection, change.seen_us):
        return True
    if _is_shorter(rejection, change):
        return False
    leader, before = change.leader, change.leader_before
    if leader is None or before is None or leader == before:
        return None
    if rejection.broker_id == before:
        return False
    return True if rejection.broker_id == leader and _led_by_another(rejection, change) else None


def _is_shorter(rejection: Rejection, change: LeaderChange) -> bool:
    """Whether the rejecting leader's log was shorter than the new leader's was from the beginning."""
    if rejection.offset is None or change.epoch_end is None:
        return False
    return rejection.offset < change.epoch_end


def _led_by_another(rejection: Rejection, change: LeaderChange) -> bool:
    """Whether another broker led just before the change: the present leader may have led earlier, too."""
    appended = appended_in(rejection)
    if appended is not None and appended == change.leader_epoch_before:
        return True
    return change.last_observation_us is not None and _is_since(
        rejection, change.last_observation_us
    )


def _is_since(rejection: Rejection, timestamp_us: int) -> bool:
    first = rejection.first_us
    return first is not None and first >= timestamp_us + CLOCKS_AGREE_US
