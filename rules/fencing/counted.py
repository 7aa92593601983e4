"""Relates what brokers only count to the one transactional id that it can be about.

A counter names a request and an error, never a producer. Rises wait for one round, so that log lines of
the same time are there: what a line or the request log shows is not counted again. What remains belongs
to an episode only where exactly one transactional id was taken over, or timed out, within the hour, and
no owner's own abort explains it: a batch of it that comes late is rejected likewise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from rules.facts.fencing import (
    CountedRise,
    FencedRequests,
    FencingEpisode,
    FencingMemory,
    RejectionSource,
)
from rules.facts.gap import GapScope
from rules.facts.last_observation import microseconds
from rules.facts.scrapes import RequestErrors, Scrapes
from rules.facts.snapshot import Snapshot
from rules.facts.times import CLOCKS_AGREE_US, MICROSECOND
from rules.fencing.classify import PRODUCE
from rules.fencing.gathered import Gathered, add_requests

ERRORS: Final = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})
OF_TRANSACTIONS: Final = frozenset(
    {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"}
)
OF_BATCHES: Final = frozenset({PRODUCE, "AddPartitionsToTxn"})
ZOMBIE_WITHIN: Final = timedelta(hours=1)  # after a takeover: a process that was frozen or cut off
LATE_FOR: Final = timedelta(minutes=2)  # as long as a client sends a batch (delivery.timeout.ms)
MAX_WAITING: Final = 200  # rises of one round
_LATE_US: Final = LATE_FOR // MICROSECOND
_WITHIN_US: Final = ZOMBIE_WITHIN // MICROSECOND


def list_rises(
    scrapes: Scrapes, before: FencingMemory
) -> tuple[tuple[CountedRise, ...], dict[str, int]]:
    """Return the rises since the last round, and up to when each endpoint is judged."""
    judged = dict(before.counted_us)
    rises: list[CountedRise] = []
    for errors in scrapes.request_errors:
        if errors.error in ERRORS and (
            errors.request == PRODUCE or errors.request in OF_TRANSACTIONS
        ):
            until = before.counted_us.get(errors.endpoint, 0)
            rises += _rises_after(errors, until)
            latest = [microseconds(rise.until) for rise in errors.counted.rises]
            judged[errors.endpoint] = max((*latest, judged.get(errors.endpoint, 0)))
    present = {endpoint.name for endpoint in scrapes.endpoints}
    return tuple(rises[:MAX_WAITING]), {
        name: until for name, until in judged.items() if name in present or not present
    }


def _rises_after(errors: RequestErrors, until_us: int) -> Iterable[CountedRise]:
    for rise in errors.counted.rises:
        if microseconds(rise.until) > until_us:
            yield CountedRise(
                request=errors.request,
                error=errors.error,
                since_us=microseconds(rise.since),
                until_us=microseconds(rise.until),
                count=rise.count or 1,
            )


def attribute(gathered: Gathered, waiting: Sequence[CountedRise]) -> None:
    """Add the rises of the round before to the episode that they can only be about."""
    own_aborts_us = _own_aborts_us(gathered) if waiting else []
    is_read = gathered.snapshot.transaction_log.is_read  # else there may be other takeovers
    for rise in waiting:
        if _is_explained(gathered, rise) or _may_be_idempotent(gathered.snapshot, rise):
            continue
        is_known = is_read and not _may_be_late(own_aborts_us, rise)
        candidates = [each for each in gathered.open.values() if _may_be_about(each, rise)]
        requests = FencedRequests(
            source=RejectionSource.COUNTER,
            request=rise.request,
            error=rise.error,
            first_us=rise.since_us,
            last_us=rise.until_us,
            count=rise.count,
        )
        only = candidates[0] if is_known and len(candidates) == 1 else None
        add_requests(gathered, None if only is None else only.transactional_id, None, requests)


def _is_explained(gathered: Gathered, rise: CountedRise) -> bool:
    """Whether lines show requests that were rejected so at that time."""
    since, until = rise.since_us - CLOCKS_AGREE_US, rise.until_us + CLOCKS_AGREE_US
    return any(
        each.source is not RejectionSource.COUNTER
        and each.first_us <= until
        and each.last_us >= since
        and (each.request == rise.request or each.source is RejectionSource.REQUEST_LOG)
        for episode in gathered.open.values()
        for each in episode.requests
    )


def _may_be_idempotent(snapshot: Snapshot, rise: CountedRise) -> bool:
    """Whether a late batch of an idempotent producer may be what was counted, which is harmless.

    Its leader logs a line: where all lines are read and there is none, it was a transaction's.
    """
    if rise.request != PRODUCE:
        return False
    has_gap = any(gap.scope is GapScope.BROKER_LOG for gap in snapshot.gaps)
    return not snapshot.broker_log.is_read or has_gap


def _own_aborts_us(gathered: Gathered) -> list[int]:
    """Return when owners aborted their transactions, ascending.

    An abort that an initialisation followed at once may be a newer instance's, and explains nothing.
    """
    taken = {
        (episode.transactional_id, each.producer_epoch - 1)
        for episode in gathered.open.values()
        for each in episode.takeovers
    }
    return sorted(
        each.ended_us
        for each in gathered.aborts
        if (each.transactional_id, each.marker_epoch) not in taken
    )


def _may_be_late(own_aborts_us: Sequence[int], rise: CountedRise) -> bool:
    """Whether it may be a batch of a transaction that its owner has aborted, which is harmless.

    The leader asks the coordinator about it (KIP-890), so that both count it.
    """
    if rise.request not in OF_BATCHES:
        return False
    first = bisect_left(own_aborts_us, rise.since_us - _LATE_US)
    is_any = first < len(own_aborts_us)
    return is_any and own_aborts_us[first] <= rise.until_us + CLOCKS_AGREE_US


def _may_be_about(episode: FencingEpisode, rise: CountedRise) -> bool:
    if episode.transactional_id is None:
        return False
    until = rise.until_us + CLOCKS_AGREE_US
    times = [each.at_us for each in episode.takeovers if each.is_own is not True]
    times += [each.ended_us for each in episode.cuts]
    return any(rise.since_us - _WITHIN_US <= at <= until for at in times)
