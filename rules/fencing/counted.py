"""Relates what brokers only count to the one transactional id that it can be about.

A counter names a request and an error, never a producer. Rises wait for one round, so that log lines of
the same time are there: what a line or the request log shows is not counted again. What remains belongs
to an episode only where exactly one transactional id was taken over, or timed out, within the hour, and
no owner's own abort explains it: a batch of it that comes late is rejected likewise.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    if not waiting:
        return
    evidence = _Evidence.of(gathered)
    is_read = gathered.snapshot.transaction_log.is_read  # else there may be other takeovers
    for rise in waiting:
        if evidence.explains(rise) or _may_be_idempotent(gathered.snapshot, rise):
            continue
        is_known = is_read and not evidence.may_be_late(rise)
        requests = FencedRequests(
            source=RejectionSource.COUNTER,
            request=rise.request,
            error=rise.error,
            first_us=rise.since_us,
            last_us=rise.until_us,
            count=rise.count,
        )
        name = evidence.only_id(rise) if is_known else None
        add_requests(gathered, name, None, requests)


@dataclass(frozen=True, slots=True, eq=False)
class _Evidence:
    """What a round knows that may explain rises, in orders that make it quick to search for many."""

    logged: Sequence[FencedRequests]
    own_aborts_us: Sequence[int]  # ascending
    fenced_us: Sequence[int]  # ascending: takeovers and cuts, and of which ids they are
    fenced_ids: Sequence[str]

    @classmethod
    def of(cls, gathered: Gathered) -> _Evidence:
        """Gather it from the open episodes and the remembered aborts."""
        episodes = gathered.open.values()
        fenced = sorted(
            (at, episode.transactional_id)
            for episode in episodes
            if episode.transactional_id is not None
            for at in _fenced_us(episode)
        )
        return cls(
            logged=[
                each
                for episode in episodes
                for each in episode.requests
                if each.source is not RejectionSource.COUNTER
            ],
            own_aborts_us=_own_aborts_us(gathered),
            fenced_us=[at for at, _ in fenced],
            fenced_ids=[name for _, name in fenced],
        )

    def explains(self, rise: CountedRise) -> bool:
        """Whether lines show requests that were rejected so at that time."""
        since, until = rise.since_us - CLOCKS_AGREE_US, rise.until_us + CLOCKS_AGREE_US
        return any(
            each.first_us <= until
            and each.last_us >= since
            and (each.request == rise.request or each.source is RejectionSource.REQUEST_LOG)
            for each in self.logged
        )

    def may_be_late(self, rise: CountedRise) -> bool:
        """Whether it may be a batch of a transaction that its owner has aborted, which is harmless.

        The leader asks the coordinator about it (KIP-890), so that both count it.
        """
        if rise.request not in OF_BATCHES:
            return False
        first = bisect_left(self.own_aborts_us, rise.since_us - _LATE_US)
        is_any = first < len(self.own_aborts_us)
        return is_any and self.own_aborts_us[first] <= rise.until_us + CLOCKS_AGREE_US

    def only_id(self, rise: CountedRise) -> str | None:
        """Return the one id that was taken over, or timed out, within the hour; None: not exactly one."""
        first = bisect_left(self.fenced_us, rise.since_us - _WITHIN_US)
        end = bisect_right(self.fenced_us, rise.until_us + CLOCKS_AGREE_US)
        if first >= end or len(set(self.fenced_ids[first:end])) > 1:
            return None
        return self.fenced_ids[first]


def _fenced_us(episode: FencingEpisode) -> Iterator[int]:
    yield from (each.at_us for each in episode.takeovers if each.is_own is not True)
    yield from (each.ended_us for each in episode.cuts)


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
