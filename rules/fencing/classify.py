"""Classifies a fencing episode by its evidence; the first class that the evidence proves counts.

| transactions | what fenced                   | what is left of it                                        |
|--------------|-------------------------------|-----------------------------------------------------------|
| v1           | second instance, open         | abort with epoch e + 1, then initialised with e + 2       |
| v2           | second instance, open         | the same, as where the owner aborts and starts again      |
| v1           | second instance, nothing open | initialised with e + 1                                    |
| v2           | second instance, nothing open | the same: e is the epoch that the last end left           |
| both         | timeout                       | abort with epoch e + 1, after the timeout                 |
| v1           | the owner itself (KIP-360)    | abort with epoch e, then initialised with e + 1           |
| v2           | the owner itself              | every end has epoch e + 1, and nothing is initialised     |

No record says whether the older instance still lives: that shows only where its requests are rejected. Under
verification (KIP-890) its writes leave no line in a broker's log: only counters and the request log have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from rules.facts.fencing import (
    FencedRequests,
    FencingClass,
    FencingEpisode,
    FencingReason,
    FencingVerdict,
    RejectionSource,
    Takeover,
)
from rules.facts.times import CLOCKS_AGREE_US, MICROSECOND
from rules.facts.transaction_log import Cut

# Two instances that fence each other start again at once; ordinary restarts are rarer.
FIGHT_WINDOW: Final = timedelta(minutes=10)
FIGHT_TAKEOVERS: Final = 3  # within it; two may be a restart that went wrong
FIGHT_REJECTIONS: Final = 2
PRODUCE: Final = "Produce"
_WINDOW_US: Final = FIGHT_WINDOW // MICROSECOND


def classify(episode: FencingEpisode) -> FencingVerdict:
    """Return the class of an episode, and what decides it."""
    steps = (_fight, _zombie, _timeout, _late, _unexplained, _taken_over)
    for step in steps:
        verdict = step(episode)
        if verdict is not None:
            return verdict
    return FencingVerdict(class_=FencingClass.HANDOVER, reason=FencingReason.NOTHING_REJECTED)


def _fight(episode: FencingEpisode) -> FencingVerdict | None:
    """Two instances take the id in turns, or it is taken repeatedly while older ones are rejected."""
    others = _of_others(episode.takeovers)
    if _alternate(episode, others):
        return _verdict(FencingClass.INSTANCES_FIGHTING, FencingReason.INSTANCES_ALTERNATE)
    cutting = _densest([each for each in others if is_cutting(episode, each)])
    rejected = sum(each.count for each in _rejected_within(episode, cutting))
    if len(cutting) >= FIGHT_TAKEOVERS and rejected >= FIGHT_REJECTIONS:
        return _verdict(FencingClass.INSTANCES_FIGHTING, FencingReason.TAKEOVERS_AND_REJECTIONS)
    return None


def _alternate(episode: FencingEpisode, takeovers: Sequence[Takeover]) -> bool:
    """Whether the request log names an instance that took the id back, each time with a transaction open.

    Without one it may be a failover and its return, or what Kafka Connect fences before it starts tasks.
    """
    named = [each for each in takeovers if each.instance is not None]
    for place in range(len(named) - 2):
        first, second, third = named[place : place + 3]
        identities = [each.instance and each.instance.identity for each in (first, second, third)]
        is_soon = third.at_us - first.at_us <= _WINDOW_US
        is_cut = is_cutting(episode, second) and is_cutting(episode, third)
        if is_soon and is_cut and identities[0] == identities[2] != identities[1]:
            return True
    return False


def _densest(takeovers: Sequence[Takeover]) -> list[Takeover]:
    """Return the most takeovers that lie within one window."""
    best: list[Takeover] = []
    for last in takeovers:
        within = [each for each in takeovers if 0 <= last.at_us - each.at_us <= _WINDOW_US]
        best = within if len(within) >= len(best) else best
    return best


def _rejected_within(
    episode: FencingEpisode, takeovers: Sequence[Takeover]
) -> Iterable[FencedRequests]:
    """Yield what was rejected after the first of these takeovers."""
    if not takeovers:
        return
    since = takeovers[0].at_us - CLOCKS_AGREE_US
    yield from (each for each in episode.requests if each.last_us >= since)


def _zombie(episode: FencingEpisode) -> FencingVerdict | None:
    for each in episode.requests:
        reason = _older_instance(episode, each)
        if reason is not None:
            is_sure = reason is not FencingReason.OWN_EPOCH_OR_SECOND_INSTANCE
            class_ = FencingClass.ZOMBIE if is_sure else FencingClass.UNDETERMINED
            return _verdict(class_, reason)
    return None


def _older_instance(episode: FencingEpisode, each: FencedRequests) -> FencingReason | None:
    """Return why a rejected request is an older instance's; None: it need not be."""
    takeovers = [
        takeover
        for takeover in episode.takeovers
        if takeover.is_own is not True and _was_before(takeover, each, _slack_us(episode, each))
    ]
    if not takeovers:
        return None
    if each.source is RejectionSource.COUNTER:
        return _by_counter(episode, takeovers)
    if each.producer_epoch is None:
        return _by_instance(takeovers[-1], each)
    newer = [
        takeover
        for takeover in takeovers
        if each.producer_id in (None, takeover.producer_id)
        and takeover.producer_epoch > each.producer_epoch
    ]
    # A client that raises its own epoch waits for its other requests to the coordinator, not for batches.
    is_late = each.request == PRODUCE
    if newer and is_late and all(takeover.is_own is None for takeover in newer):
        return FencingReason.OWN_EPOCH_OR_SECOND_INSTANCE
    return FencingReason.OLDER_EPOCH_REJECTED if newer else None


def _by_instance(newest: Takeover, each: FencedRequests) -> FencingReason | None:
    """Return the reason if another client was rejected than the one that was initialised last."""
    if newest.instance is None or each.instance is None:
        return None
    is_same = newest.instance.identity == each.instance.identity
    return None if is_same else FencingReason.OTHER_INSTANCE_REJECTED


def _by_counter(episode: FencingEpisode, takeovers: Sequence[Takeover]) -> FencingReason | None:
    """Return the reason if nothing else explains what was counted: no timeout, nothing of its own."""
    if any(cut.cut is Cut.TIMEOUT for cut in episode.cuts):
        return None
    if all(takeover.is_own is None for takeover in takeovers):
        return FencingReason.OWN_EPOCH_OR_SECOND_INSTANCE
    return FencingReason.COUNTED_AFTER_TAKEOVER


def _was_before(takeover: Takeover, each: FencedRequests, slack_us: int) -> bool:
    """Whether a takeover was made when a request was rejected, or so long after the last of them."""
    if each.current_epoch is not None and each.current_epoch >= takeover.producer_epoch:
        return True
    return takeover.at_us <= each.last_us + slack_us


def _slack_us(episode: FencingEpisode, each: FencedRequests) -> int:
    """Return by how much a takeover may seem later than a request that was rejected for it.

    A batch is rejected by a leader, whose clock is not the coordinator's. Where a timeout fenced the owner
    already, the takeover has to be the earlier one for certain.
    """
    if each.source is RejectionSource.COUNTER:
        return CLOCKS_AGREE_US
    is_explained = any(cut.cut is Cut.TIMEOUT for cut in episode.cuts)
    return -CLOCKS_AGREE_US if is_explained and each.request == PRODUCE else 0


def _timeout(episode: FencingEpisode) -> FencingVerdict | None:
    """What was cut last was cut by the coordinator; a later restart is an event of its own."""
    if episode.cuts and episode.cuts[-1].cut is Cut.TIMEOUT:
        return _verdict(FencingClass.COORDINATOR_TIMEOUT, FencingReason.TIMEOUT_OVER)
    return None


def _late(episode: FencingEpisode) -> FencingVerdict | None:
    """All that was rejected is of an epoch that the same producer has left, or of no transaction."""
    if not episode.requests:
        return None
    if episode.is_idempotent:
        return _verdict(FencingClass.LATE_BATCH, FencingReason.NO_TRANSACTIONS)
    if all(_is_of_own_abort(episode, each) for each in episode.requests):
        return _verdict(FencingClass.LATE_BATCH, FencingReason.OWN_EPOCH_RAISED)
    return None


def _is_of_own_abort(episode: FencingEpisode, each: FencedRequests) -> bool:
    if each.source is RejectionSource.COUNTER:
        return False
    aborted = {*episode.aborted_epochs, *episode.aborted_by_owner}
    if each.producer_epoch is not None:
        return each.producer_epoch in aborted
    return each.request == PRODUCE and bool(aborted) and not _of_others(episode.takeovers)


def _unexplained(episode: FencingEpisode) -> FencingVerdict | None:
    if not episode.requests:
        return None
    if episode.transactional_id is not None:
        return _verdict(FencingClass.UNDETERMINED, FencingReason.NO_TAKEOVER_SEEN)
    if episode.producer_id is not None:
        return _verdict(FencingClass.UNDETERMINED, FencingReason.PRODUCER_NOT_KNOWN)
    return _verdict(FencingClass.UNDETERMINED, FencingReason.NOT_ATTRIBUTED)


def _taken_over(episode: FencingEpisode) -> FencingVerdict | None:
    """Nothing was rejected: restarts, as far as is seen."""
    others = _of_others(episode.takeovers)
    cutting = [each for each in others if is_cutting(episode, each)]
    if len(_densest(cutting)) >= FIGHT_TAKEOVERS:
        return _verdict(FencingClass.UNDETERMINED, FencingReason.REPEATED_TAKEOVERS)
    if any(cut_of(episode, each) is None for each in others):
        return _verdict(FencingClass.UNDETERMINED, FencingReason.OWNER_OR_SECOND_INSTANCE)
    return None


def is_cutting(episode: FencingEpisode, takeover: Takeover) -> bool:
    """Whether a takeover aborted an open transaction, or may have."""
    return cut_of(episode, takeover) is not False


def cut_of(episode: FencingEpisode, takeover: Takeover) -> bool | None:
    """Return whether a takeover aborted an open transaction; None: its owner may have done so.

    The epoch of the transaction is two below the one that was given. Where the coordinator's requests
    are read, an abort that its owner did not request was the takeover's.
    """
    if takeover.is_cut is not None:
        return takeover.is_cut
    if takeover.producer_epoch - 2 in episode.aborted_by_owner:
        return False
    return True if takeover.instance is not None and episode.has_request_log else None


def count_cuts(episode: FencingEpisode) -> int | None:
    """Return the transactions that were cut: those of the log, and those that only the request log shows.

    With transactions v2 the records of a takeover that aborted a transaction are those of an abort by its owner:
    None where nothing shows who aborted, and no other one was cut.
    """
    shown = [cut_of(episode, each) for each in episode.takeovers if each.is_cut is None]
    count = episode.cut_count + sum(cut is True for cut in shown)
    return None if None in shown and not count else count


def _of_others(takeovers: Iterable[Takeover]) -> list[Takeover]:
    """Return the takeovers that a producer did not make itself, as far as is known."""
    return [each for each in takeovers if each.is_own is False]


def _verdict(class_: FencingClass, reason: FencingReason) -> FencingVerdict:
    return FencingVerdict(class_=class_, reason=reason)
