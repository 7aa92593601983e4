"""The truth of a fault about lost records: what is gone, and what is not.

Offsets are counted, not records: markers take offsets too. Exclusive ends, as everywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicId
from service.sandbox.faults.rule_names import COMMITTED_LOST, UNCLEAN_ELECTION, UNREPLICATED_LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition as its leader reported it at one time."""

    leader: BrokerId
    leader_epoch: int
    isr: tuple[BrokerId, ...]  # ascending
    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTruth:
    """What a group had committed on one partition, which is above the log's end now."""

    group: str
    committed_offset: int
    leader_epoch: int | None  # that it committed along


@dataclass(frozen=True, slots=True, kw_only=True)
class LostTransaction:
    """A transaction whose commit was acknowledged, and whose records are gone on a partition."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    start_offset: int
    records: int  # its marker took one more offset


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTruth:
    """What happened to one partition, from just before the fault until all is done."""

    partition: int
    before: PartitionState
    after: PartitionState
    epoch_end: int  # where the leader after it ends the leader epoch before it
    lost_from: int | None  # None: nothing is gone
    lost_to: int | None
    groups: tuple[GroupTruth, ...] = ()
    transactions: tuple[LostTransaction, ...] = ()

    @property
    def lost_offsets(self) -> int:
        """How many offsets of the old log are gone."""
        if self.lost_from is None or self.lost_to is None:
            return 0
        return self.lost_to - self.lost_from

    @property
    def committed_to(self) -> int | None:
        """[lost_from, committed_to) were below the high watermark; None: none of them."""
        return self._lost_below(self.before.high_watermark)

    @property
    def visible_to(self) -> int | None:
        """[lost_from, visible_to) could be read by read_committed readers; None: none of them."""
        return self._lost_below(self.before.last_stable_offset)

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "partition": self.partition,
            "old_leader": self.before.leader,
            "old_leader_epoch": self.before.leader_epoch,
            "new_leader": self.after.leader,
            "new_leader_epoch": self.after.leader_epoch,
            "lost_from": self.lost_from,
            "lost_to": self.lost_to,
            "committed_to": self.committed_to,
            "visible_to": self.visible_to,
            "lost_offsets": self.lost_offsets,
            "epoch_end": self.epoch_end,
            "groups": [asdict(group) for group in self.groups],
            "transactions": [asdict(transaction) for transaction in self.transactions],
            "before": asdict(self.before),
            "after": asdict(self.after),
        }

    def _lost_below(self, offset: int) -> int | None:
        if self.lost_from is None or self.lost_to is None or offset <= self.lost_from:
            return None
        return min(offset, self.lost_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossTruth:
    """What a fault did to a topic; the rules are those of a monitor that observed before the fault."""

    fault: str
    topic: str
    topic_id: TopicId
    new_topic_id: TopicId  # another one only where the topic was created again
    rule: str | None  # that has to find it; None: nothing is to be found
    also: tuple[str, ...] = ()  # further rules that have to find it
    silent: tuple[str, ...] = ()  # rules that would be wrong; those nowhere named may speak
    was_unclean: bool  # whether the controller's log reports an unclean change
    partitions: tuple[PartitionTruth, ...]
    ends: str  # when it is over, for a person
    undo: tuple[str, ...] = ()  # commands that bring the brokers back; none: they all run

    @property
    def lost_offsets(self) -> int:
        """How many offsets are gone on all partitions."""
        return sum(partition.lost_offsets for partition in self.partitions)

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "fault": self.fault,
            "rule": self.rule,
            "also": list(self.also),
            "silent": list(self.silent),
            "topic": self.topic,
            "topic_id": self.topic_id,
            "new_topic_id": self.new_topic_id,
            "was_unclean": self.was_unclean,
            "lost_offsets": self.lost_offsets,
            "partitions": [partition.document() for partition in self.partitions],
            "ends": self.ends,
            "undo": list(self.undo),
        }


def require_agreement(
    truth: PartitionTruth, before: dict[int, bytes], after: dict[int, bytes]
) -> None:
    """Compare the claim with the records: what could be read before, and cannot be now."""
    log_start = truth.after.log_start_offset  # what was deleted on purpose is not lost
    gone = sorted(at for at, value in before.items() if at >= log_start and after.get(at) != value)
    claim = range(truth.lost_from or 0, truth.lost_to or 0)
    claimed = sorted(at for at in before if at in claim)
    if gone != claimed:
        raise SandboxError(
            f"partition {truth.partition}: the epoch's end shows {claimed or 'no'} lost offsets, "
            f"and reading shows {gone or 'none'}"
        )


def require_expected(truth: LossTruth) -> None:
    """Raise for a truth that is not the one that the fault was to make."""
    has_committed_loss = any(partition.committed_to is not None for partition in truth.partitions)
    happened = {
        COMMITTED_LOST: has_committed_loss,
        UNREPLICATED_LOST: truth.lost_offsets > 0 and not has_committed_loss,
        # With the same leader again only the controller knows: its log is its own.
        UNCLEAN_ELECTION: truth.was_unclean and _has_another_leader(truth),
    }
    expected = {truth.rule, *truth.also}
    for rule, has_happened in happened.items():
        if rule in (truth.silent if has_happened else expected):
            negation = "" if has_happened else "not "
            raise SandboxError(f"{truth.fault} came otherwise: {rule} would {negation}be right")
    if truth.lost_offsets and not all(partition.lost_offsets for partition in truth.partitions):
        raise SandboxError(f"{truth.fault} came otherwise: some partitions lost nothing")


def _has_another_leader(truth: LossTruth) -> bool:
    return any(partition.before.leader != partition.after.leader for partition in truth.partitions)
