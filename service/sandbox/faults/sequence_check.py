"""Whether brokers wrote of a producer what a fault was to make, and what the log keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rules.errors import SandboxError
from rules.facts.batches import BatchSeen
from rules.facts.broker_log import SequenceForm
from rules.facts.identity import TopicPartition
from rules.facts.rejections import SEQUENCES
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.fault_run import Client
from service.sandbox.faults.sequence_lines import Rejection
from service.sandbox.faults.sequence_truth import SequenceEpisode


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
