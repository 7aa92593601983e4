"""The truth of a fault about sequences: what brokers rejected, and what became of the records.

It is verified here: whether brokers wrote of a producer what the fault was to make, and what the log
keeps of it. A gap counts records, an offset range counts offsets; ends are exclusive, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rules.errors import SandboxError
from rules.facts.batches import BatchSeen
from rules.facts.broker_log import SequenceForm
from rules.facts.episode_transactions import TransactionOutcome
from rules.facts.identity import BrokerId, TopicId, TopicPartition
from rules.facts.rejections import SEQUENCES
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.fault_run import Client
from service.sandbox.faults.loss_truth import LossTruth, PartitionTruth
from service.sandbox.faults.sequence_lines import Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceEpisode:
    """What happened to one producer on one partition; the sequences are of the first line."""

    sequence_class: SequenceClass  # that has to be found
    partition: int
    client: Client
    form: SequenceForm
    producer_id: int
    producer_epoch: int  # of the rejected batches
    incoming_sequence: int
    current_sequence: int | None  # None: the form does not contain it
    gap: int | None  # records that are missing before; None: none, it is behind
    offset: int  # that the rejected batch would have got
    lines: int  # log records of rejections, two physical lines each
    broker_id: BrokerId  # that wrote them
    leader_epoch: int  # in which the batch was rejected
    # In which the batch before was appended; None: there is none of that epoch in the log.
    appended_epoch: int | None
    is_healed: bool  # whether the rejected batch was taken later, with the same producer epoch
    last_epoch: int | None  # the newest one of the producer's batches; None: nothing is left of it


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedTransactionTruth:
    """What became of the transaction in which a batch was rejected."""

    transactional_id: str
    outcome: TransactionOutcome
    producer_epoch: int  # while it was open
    marker_offset: int | None  # None: it is open


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceTruth:
    """What a fault did to one topic; the rules are those of a monitor that reads the logs."""

    fault: str
    topic: str
    topic_id: TopicId
    rule: str | None  # that has to find it; None: nothing is to be found
    also: tuple[str, ...] = ()  # further rules that have to find it
    silent: tuple[str, ...] = ()  # rules that would be wrong; those nowhere named may speak
    episodes: tuple[SequenceEpisode, ...] = ()  # none: no broker wrote of a rejection
    old_epoch_lines: int = 0  # log records of INVALID_PRODUCER_EPOCH, which are no gaps
    application_notified: bool = False  # whether the client gave up records and said so
    application_log: tuple[str, ...] = ()  # what librdkafka wrote into its application's log of it
    loss: LossTruth | None = None  # None: no leader changed
    transaction: RejectedTransactionTruth | None = None  # of faults about transactions
    ends: str  # when it is over, for a person
    undo: tuple[str, ...] = ()  # commands that bring the brokers back; none: they all run

    @property
    def lost(self) -> tuple[PartitionTruth, ...]:
        """The partitions that lost something."""
        partitions = () if self.loss is None else self.loss.partitions
        return tuple(partition for partition in partitions if partition.lost_offsets)

    def document(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "fault": self.fault,
            "rule": self.rule,
            "also": list(self.also),
            "silent": list(self.silent),
            "topic": self.topic,
            "topic_id": self.topic_id,
            "episodes": [asdict(episode) for episode in self.episodes],
            "old_epoch_lines": self.old_epoch_lines,
            "application_notified": self.application_notified,
            "application_log": list(self.application_log),
            "transaction": None if self.transaction is None else asdict(self.transaction),
            "was_unclean": None if self.loss is None else self.loss.was_unclean,
            "lost_offsets": 0 if self.loss is None else self.loss.lost_offsets,
            "partitions": [] if self.loss is None else self.loss.document()["partitions"],
            "ends": self.ends,
            "undo": list(self.undo),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What has to be seen of one producer; None where the client decides it."""

    sequence_class: SequenceClass
    client: Client = Client.RAW
    producer_epoch: int
    form: SequenceForm = SequenceForm.OUT_OF_ORDER
    rejected: tuple[int, ...] | None = None  # incoming sequences, in their order
    current_sequence: int | None = None
    is_healed: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What brokers logged and stored of one producer on one partition, when all is done."""

    rejections: Sequence[Rejection]  # in their order
    batches: Sequence[BatchSeen]  # in the leader's log, ascending by offset
    leader_epoch: int


def episode(where: TopicPartition, expected: Expected, seen: Seen) -> SequenceEpisode:
    """Put together what happened.

    Raises:
        SandboxError: it is not what was expected.
    """
    if not seen.rejections:
        raise SandboxError(f"no broker wrote that it rejected a batch for {where}")
    first = seen.rejections[0]
    outcome = SequenceEpisode(
        sequence_class=expected.sequence_class,
        partition=where.partition,
        client=expected.client,
        form=first.form,
        producer_id=first.producer_id,
        producer_epoch=expected.producer_epoch,
        incoming_sequence=first.incoming_sequence,
        current_sequence=first.current_sequence,
        gap=gap_of(first),
        offset=first.offset,
        lines=len(seen.rejections),
        broker_id=first.broker_id,
        leader_epoch=seen.leader_epoch,
        appended_epoch=_appended_epoch(seen.batches, first, expected.producer_epoch),
        is_healed=_is_healed(seen.batches, seen.rejections, expected.producer_epoch),
        last_epoch=max((batch.producer_epoch for batch in seen.batches), default=None),
    )
    _require(where, outcome, expected, seen)
    return outcome


def gap_of(rejection: Rejection) -> int | None:
    """Return how many records are missing before a batch; None when it is behind.

    Where nothing of the epoch was appended they are counted from sequence 0.
    """
    before = -1
    if rejection.form is SequenceForm.OUT_OF_ORDER and rejection.current_sequence is not None:
        before = rejection.current_sequence
    gap = (rejection.incoming_sequence - before - 1) % SEQUENCES
    return gap if gap < SEQUENCES // 2 else None


def _holds(batch: BatchSeen, sequence: int) -> bool:
    return (sequence - batch.base_sequence) % SEQUENCES < batch.record_count


def _appended_epoch(
    batches: Sequence[BatchSeen], first: Rejection, producer_epoch: int
) -> int | None:
    if first.current_sequence is None or first.form is not SequenceForm.OUT_OF_ORDER:
        return None
    epochs = [
        batch.leader_epoch
        for batch in batches
        if batch.producer_epoch == producer_epoch and _holds(batch, first.current_sequence)
    ]
    return epochs[0] if epochs else None


def _is_healed(
    batches: Sequence[BatchSeen], rejections: Sequence[Rejection], producer_epoch: int
) -> bool:
    """Whether every rejected batch lies behind the offset where it was rejected."""
    return all(
        any(
            batch.producer_epoch == producer_epoch
            and batch.base_offset >= rejection.offset
            and _holds(batch, rejection.incoming_sequence)
            for batch in batches
        )
        for rejection in rejections
    )


def _require(
    where: TopicPartition, outcome: SequenceEpisode, expected: Expected, seen: Seen
) -> None:
    incoming = tuple(rejection.incoming_sequence for rejection in seen.rejections)
    checks = {
        "form": (
            expected.form,
            {rejection.form for rejection in seen.rejections} == {expected.form},
        ),
        "rejected sequences": (expected.rejected, expected.rejected in (None, incoming)),
        "sequence before": (
            expected.current_sequence,
            expected.current_sequence in (None, outcome.current_sequence),
        ),
        "healing": (expected.is_healed, expected.is_healed in (None, outcome.is_healed)),
    }
    for what, (value, is_so) in checks.items():
        if not is_so:
            raise SandboxError(f"{where}: {what} came otherwise, expected {value}: {outcome}")
