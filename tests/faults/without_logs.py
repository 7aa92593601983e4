"""What a watcher without logs has to find of a fault: losses by offsets, rejections by a counter.

A loss is found with its range all the same. A rejection is suspected by broker and time: nothing is
missing where leaders prove it, or it is not known; it never wakes anybody up by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from rules.facts.suspicions import BreakKind, Suspicion, SuspicionOutcome
from service.runtime.clock import wait_until
from service.sandbox.faults import SequenceTruth
from tests.integration.counting import Counting

SEEN_SECONDS: Final = 90.0
LOST: Final = "committed_records_lost"
SUSPECTED: Final = "OUT_OF_ORDER_SEQUENCE_NUMBER"
NOT_LOST: Final = {
    SuspicionOutcome.NOTHING_MISSING,
    SuspicionOutcome.CLEAN_NOT_PROVEN,
    SuspicionOutcome.LEADER_CHANGED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspicionMark:
    """The counts that were known before a fault."""

    counting: Counting
    counts: dict[str, int]

    @classmethod
    def of(cls, counting: Counting | None) -> SuspicionMark:
        """Note what is counted, once the watcher has seen the topics that are there."""
        assert counting is not None
        counting.wait_rounds()
        counts = {one.id: one.count for one in counting.suspicions.values()}
        return cls(counting=counting, counts=counts)

    def assert_suspected(self, truth: SequenceTruth) -> None:
        """Assert that each rejection is suspected on its broker, and a loss found with its range."""
        counting = self.counting
        brokers = {int(episode.broker_id) for episode in truth.episodes}
        for broker in brokers:
            lines = sum(one.lines for one in truth.episodes if int(one.broker_id) == broker)
            wait_until(partial(self._has_counted, broker, lines), timeout_seconds=SEEN_SECONDS)
            assert self._has_counted(broker, lines), counting.said()
        for lost in truth.lost:
            wait_until(
                lambda: bool(counting.breaches(truth.topic, LOST)), timeout_seconds=SEEN_SECONDS
            )
            [finding, *_] = counting.breaches(truth.topic, LOST)
            certain = finding.evidence["certain_from"], finding.evidence["certain_to"]
            assert certain == (lost.lost_from, lost.committed_to), (certain, counting.said())
        if not truth.lost:
            assert counting.pages(truth.topic) == set(), counting.said()
            for suspicion in self._new():
                assert not suspicion.brokers or suspicion.outcome in self._expected(suspicion)

    def assert_producer_met_it(self, truth: SequenceTruth) -> None:
        """Assert that the leader's log shows who met a loss: a new epoch over the change, from there on."""
        [episode] = truth.episodes
        met = (episode.producer_id, episode.current_sequence, episode.offset, BreakKind.NEW_EPOCH)

        def is_shown() -> bool:
            return met in {
                (one.producer_id, one.last_sequence, one.next_offset, one.kind)
                for suspicion in self._new()
                if suspicion.outcome is SuspicionOutcome.LOSS_REPORTED
                for partition in suspicion.partitions
                if partition.name.topic == truth.topic
                for one in partition.breaks
                if one.is_over_change
            }

        assert wait_until(is_shown, timeout_seconds=SEEN_SECONDS), self.counting.said()

    def _expected(self, suspicion: Suspicion) -> set[SuspicionOutcome]:
        """Return what may be said: a loss of an earlier fault is still the broker's for an hour."""
        earlier = {SuspicionOutcome.LOSS_REPORTED} if suspicion.partition_count > 1 else set()
        return NOT_LOST | earlier

    def _new(self) -> list[Suspicion]:
        found = self.counting.suspicions.values()
        return [one for one in found if one.count > self.counts.get(one.id, 0)]

    def _has_counted(self, broker: int, lines: int) -> bool:
        counted = sum(
            one.count - self.counts.get(one.id, 0)
            for one in self._new()
            if one.brokers == (broker,) and one.error == SUSPECTED
        )
        return counted >= lines
