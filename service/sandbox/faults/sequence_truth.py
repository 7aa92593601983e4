"""The truth of a fault about sequences: what brokers rejected, and what became of the records.

A gap counts records, an offset range counts offsets; ends are exclusive, as everywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rules.facts.broker_log import SequenceForm
from rules.facts.identity import BrokerId, TopicId
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.faults.fault_run import Client
from service.sandbox.faults.loss_truth import LossTruth, PartitionTruth


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
    loss: LossTruth | None = None  # None: no leader changed
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
            "was_unclean": None if self.loss is None else self.loss.was_unclean,
            "lost_offsets": 0 if self.loss is None else self.loss.lost_offsets,
            "partitions": [] if self.loss is None else self.loss.document()["partitions"],
            "ends": self.ends,
            "undo": list(self.undo),
        }
