"""Whether a change of leader came between the last accepted sequence and the refused batch.

Each answer is yes, no, or not known. Offsets order what one log holds; brokers' names order only
what they wrote while another one led; clocks order the rest, as far as they agree.
"""

from __future__ import annotations

from rules.facts.clocks import CLOCKS_AGREE_US
from rules.facts.episodes import LeaderChange
from rules.facts.refusals import Refusal
from rules.sequence.log_entries import last_of
from rules.sequence.numbers import NO_BATCH, last_sequence


def lies_between(change: LeaderChange, refusal: Refusal) -> bool:
    """Whether it is known that a change came after the last sequence, and before the refusal."""
    return is_after_append(change, refusal) is True and is_before_refusal(change, refusal) is True


def may_lie_between(change: LeaderChange, refusal: Refusal) -> bool:
    """Whether it is not excluded."""
    answers = (is_after_append(change, refusal), is_before_refusal(change, refusal))
    return False not in answers


def appended_in(refusal: Refusal) -> int | None:
    """Return the leader epoch in which the last batch was appended, where it is known."""
    last = last_of(refusal)
    return None if last is None else last.leader_epoch


def is_after_append(change: LeaderChange, refusal: Refusal) -> bool | None:
    """Whether the last sequence was appended before the change."""
    appended = appended_in(refusal)
    if appended is not None and appended >= change.leader_epoch:
        return False
    if _is_marked_since(refusal, change):
        return None
    if appended is not None:
        return True
    if change.epoch_end is None or refusal.offset is None:
        return None
    if refusal.offset <= change.epoch_end:
        return True  # the log of the refusing leader had nothing of the new epoch yet
    nothing_from = refusal.nothing_from
    return True if nothing_from is not None and nothing_from <= change.epoch_end else None


def _is_marked_since(refusal: Refusal, change: LeaderChange) -> bool:
    """Whether the new leader wrote a marker: what is missing was sent before it, or after it."""
    marker = refusal.marker
    is_first = last_sequence(refusal) == NO_BATCH
    return is_first and marker is not None and marker.leader_epoch >= change.leader_epoch


def is_before_refusal(change: LeaderChange, refusal: Refusal) -> bool | None:
    """Whether the batch was refused after the change."""
    if _is_since(refusal, change.seen_us):
        return True
    if _is_shorter(refusal, change):
        return False
    leader, before = change.leader, change.leader_before
    if leader is None or before is None or leader == before:
        return None
    if refusal.broker_id == before:
        return False
    return True if refusal.broker_id == leader and _led_by_another(refusal, change) else None


def _is_shorter(refusal: Refusal, change: LeaderChange) -> bool:
    """Whether the refusing leader's log was shorter than the new leader's was from the beginning."""
    if refusal.offset is None or change.epoch_end is None:
        return False
    return refusal.offset < change.epoch_end


def _led_by_another(refusal: Refusal, change: LeaderChange) -> bool:
    """Whether another broker led last before the refusal: who leads now may have led before, too."""
    appended = appended_in(refusal)
    if appended is not None and appended == change.leader_epoch_before:
        return True
    return change.last_look_us is not None and _is_since(refusal, change.last_look_us)


def _is_since(refusal: Refusal, moment_us: int) -> bool:
    first = refusal.first_us
    return first is not None and first >= moment_us + CLOCKS_AGREE_US
