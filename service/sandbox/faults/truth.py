"""The truth of a fault: what a monitor with full visibility has to find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rules.facts.fencing import FencingClass
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.transaction_log import Cut
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What a fault did to one partition; offsets as they are when it has been made."""

    fault: str
    where: TopicPartition
    rule: str  # that has to find it
    also: tuple[str, ...] = ()  # rules that its consequences lead to, where they last
    hold_class: TransactionClass | None = None  # None: it holds nothing back any more
    transactional_id: str | None  # None: no coordinator knows it
    coordinator: BrokerId | None
    coordinator_epoch: int | None
    state: TransactionState | None  # that the coordinator reports
    timeout: timedelta | None
    producer_id: int
    producer_epoch: int  # of the records of its transaction
    cut: Cut | None = None  # None: nobody was fenced
    fencing_epoch: int | None = None  # of the newer owner, or of the coordinator's abort
    fencing_class: FencingClass | None = None  # where brokers' logs show it; None: not all of it
    start_offset: int  # first of its transaction on this partition
    last_stable_offset: int
    high_watermark: int
    blocked_groups: tuple[str, ...] = ()  # they read up to the last stable offset
    ends: str  # when it is over, for a person
    undo: tuple[str, ...] = ()  # commands that end it; none: it is over

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON, in the order of the fields."""
        return {
            "fault": self.fault,
            "rule": self.rule,
            "also": list(self.also),
            "hold_class": self.hold_class,
            "topic": self.where.topic,
            "partition": self.where.partition,
            "transactional_id": self.transactional_id,
            "coordinator": self.coordinator,
            "coordinator_epoch": self.coordinator_epoch,
            "state": self.state,
            "timeout_seconds": None if self.timeout is None else self.timeout.total_seconds(),
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "cut": self.cut,
            "fencing_epoch": self.fencing_epoch,
            "fencing_class": self.fencing_class,
            "start_offset": self.start_offset,
            "last_stable_offset": self.last_stable_offset,
            "high_watermark": self.high_watermark,
            "blocked_groups": list(self.blocked_groups),
            "ends": self.ends,
            "undo": list(self.undo),
        }
