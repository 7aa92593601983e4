"""Lines in brokers' logs about rejected sequences and epochs, transactional producers, and lost records.

A line triggers an investigation and is never a verdict. Its time is by the broker's own clock, in the
time zone declared for the source; what a line does not contain is None. Source: the message texts of
Kafka 1.1 to 4.x, in its source code and on real brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from rules.facts.identity import BrokerId, TopicId, TopicPartition


class SequenceForm(StrEnum):
    """The forms of a rejection for OUT_OF_ORDER_SEQUENCE_NUMBER."""

    OUT_OF_ORDER = "out_of_order"  # incoming S, the last appended one is E
    EARLIEST_SEEN = "earliest_seen"  # incoming S, while an earlier one waits for its verification
    NEW_EPOCH = "new_epoch"  # a new producer epoch does not begin at 0
    # No state at all (transactions v2), or up to Kafka 2.0.0 no batch of this epoch: it must begin at 0.
    EXPECTED_ZERO = "expected_zero"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a line was read."""

    source: str  # the configured name of the file, or of the sender
    broker_id: BrokerId | None = None  # as the line says, else as declared for the source
    at: datetime | None = None  # aware, UTC, by the broker's clock


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceRejected:
    """A batch was rejected because its first sequence does not follow the last one."""

    origin: Origin
    form: SequenceForm
    producer_id: int | None  # absent in some forms before Kafka 2.2
    topic: str | None  # None: before Kafka 2.2, unless the previous line has it
    partition: int | None
    topic_id: TopicId | None = None  # from Kafka 4.1 on, by the line before
    offset: int | None  # that the batch would have got
    incoming_sequence: int  # S, int32
    # E, int32: the last sequence that the broker has; -1: none of this epoch. In the form
    # `earliest_seen` the earliest one that waits; None where the form does not contain it.
    current_sequence: int | None
    producer_epoch: int | None = None  # of the request; only in the form `new_epoch`
    current_epoch: int | None = None  # that the broker had; likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochRejected:
    """A batch was rejected because its producer epoch is an older one (INVALID_PRODUCER_EPOCH).

    Up to Kafka 4.1 the same line may be about a coordinator's marker; from 4.2 on those are left out.
    """

    origin: Origin
    producer_id: int | None
    topic: str | None
    partition: int | None
    offset: int | None
    producer_epoch: int  # of the request
    current_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOfNoPartition:
    """What a line has that is about no partition."""

    origin: Origin

    @property
    def topic(self) -> str | None:
        """Return None: it names no partition."""
        return None

    @property
    def partition(self) -> int | None:
        """Return None, likewise."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerInitialised(LineOfNoPartition):
    """A coordinator gave a producer id and epoch to whoever initialised a transactional id.

    Older epochs of the producer id are fenced from then on. The line does not name the instance.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionTimedOut(LineOfNoPartition):
    """A coordinator has aborted an open transaction because its timeout was over."""

    transactional_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerStarted(LineOfNoPartition):
    """The process of a broker has begun to start."""

    broker_id: BrokerId  # as the line says; its origin may be a whole machine


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientInstance:
    """A client as a broker's request log names it; a client chooses its id itself."""

    client_id: str
    host: str  # from which it is connected
    port: int  # of its own end: another connection has another one
    listener: str | None = None
    software: str | None = None  # name and version, by itself (KIP-511)

    @property
    def identity(self) -> tuple[str, str]:
        """Return what a connection that is made again has in common with the one before."""
        return self.client_id, self.host


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRequest(LineOfNoPartition):
    """A request of a producer in a broker's request log: initialised, ended, or rejected as fenced.

    A leader's answer to Produce has the transactional id and neither producer id nor epoch.
    """

    request: str  # Kafka's name of the API: InitProducerId
    error: str | None  # Kafka's name; None: it succeeded
    transactional_id: str | None
    producer_id: int | None = None
    # The epoch of the request; of a successful InitProducerId the one that was given.
    producer_epoch: int | None = None
    is_commit: bool | None = None  # EndTxn alone
    is_own_epoch: bool = (
        False  # InitProducerId of a producer that names its epoch to raise it (KIP-360)
    )
    instance: ClientInstance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLine:
    """What every line about one partition contains."""

    origin: Origin
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrShrunk(PartitionLine):
    """A leader requests that the controller remove replicas from the ISR.

    The request changes nothing by itself: until the controller has accepted it, the leader goes on
    waiting for those replicas. A leader that was frozen sends it too, long after another was elected.
    """

    isr_before: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    high_watermark: int | None
    log_end_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrUpdated(PartitionLine):
    """A leader received the ISR from the controller; from then on only these replicas acknowledge.

    A controller that fences a broker removes it from the ISR without a request.
    """

    isr: tuple[BrokerId, ...]
    leader_epoch: int | None  # absent in one of the lines


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanChange:
    """The controller elected a replica that was not known to have everything.

    Also logged for an election of the last known leader, which loses nothing. One election is logged
    several times: with its decision, without the topic; by every controller that replays it; and again,
    with a later time, by a controller that starts and replays the metadata log. The topic id and the
    leader epoch identify it. Controllers with ZooKeeper log nothing.
    """

    origin: Origin
    topic: str | None  # one of the two lines names the topic id alone
    partition: int
    topic_id: TopicId | None
    leader: BrokerId | None
    leader_before: BrokerId | None = None
    leader_epoch: int | None = None  # the new one; absent in decisions before Kafka 4.1
    isr_before: tuple[BrokerId, ...] = ()
    elr_before: tuple[BrokerId, ...] = ()
    last_known_elr_before: tuple[BrokerId, ...] = ()

    @property
    def former_leaders(self) -> tuple[BrokerId, ...]:
        """Return the brokers of which one led last; empty where the line does not say.

        Where there was no leader just before, it was among those that were in sync or eligible.
        """
        if self.leader_before is not None:
            return (self.leader_before,)
        candidates = (*self.isr_before, *self.elr_before, *self.last_known_elr_before)
        return tuple(dict.fromkeys(broker for broker in candidates if broker != self.leader))

    @property
    def is_of_last_known(self) -> bool:
        """Whether the elected broker had all that was committed, as far as the controller knew.

        It loses nothing unless its machine crashed and its log's end was lost (KIP-966).
        """
        return self.leader in (*self.elr_before, *self.last_known_elr_before)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLoaded(PartitionLine):
    """A broker that starts has loaded the log of a partition, up to this end.

    Up to Kafka 2.5 also logged for a log that was just created.
    """

    topic_id: TopicId | None
    high_watermark: int | None  # before its checkpoint is read: where the log begins
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerStarted(PartitionLine):
    """A broker follows a leader; its own log ends at `log_end_offset`, before it truncates."""

    leader_epoch: int
    log_end_offset: int
    high_watermark: int | None
    leader: BrokerId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTruncated(PartitionLine):
    """A follower truncated its log to `offset`; no effect where its log ends before that."""

    offset: int
    # What the leader answered about the follower's last epoch; None: truncated for another reason, such
    # as the follower's own high watermark, which is ordinary, or no reason is logged (up to Kafka 3.0).
    epoch: int | None
    epoch_end: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkWentBack(PartitionLine):
    """A replica's high watermark was set back with its log: [offset, offset_before) is gone there.

    A hint: the range was committed as far as that replica knew. Followers that only adopt a lower high
    watermark from their new leader, as in ordinary failovers, are left out.
    """

    offset_before: int
    offset: int


LogEvent: TypeAlias = (
    SequenceRejected
    | EpochRejected
    | ProducerInitialised
    | TransactionTimedOut
    | ProducerRequest
    | BrokerStarted
    | IsrShrunk
    | IsrUpdated
    | UncleanChange
    | LogLoaded
    | FollowerStarted
    | LogTruncated
    | WatermarkWentBack
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSource:
    """The state of one source of log lines; counts are of this round."""

    name: str
    lines: int = 0
    unparsed: int = 0  # lines of the kinds above that could not be read
    lost_bytes: int | None = None  # deleted before they were read; None: not known
    last_line_at: datetime | None = None  # aware, UTC
    error: str | None = None  # why nothing, or not all, could be read
    unreadable: tuple[str, ...] = ()  # some of the unparsed lines, shortened, for a person
    # Controllers of a KRaft quorum that wrote some of these lines, each with the time of its last line.
    controllers: tuple[tuple[BrokerId, datetime], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrokerLog:
    """The lines of the brokers' logs that were read since the last round."""

    # False: no source is configured; nothing is known, which is not "nothing happened"
    is_read: bool
    events: tuple[LogEvent, ...] = ()  # in the order of each source
    sources: tuple[LogSource, ...] = ()
    # By feed, in the feed's own encoding.
    positions: Mapping[str, str] = field(default_factory=dict)
    is_behind: bool = False  # there is more to read than one round takes

    @classmethod
    def unread(cls) -> BrokerLog:
        """Return the value for a cluster whose logs are not read."""
        return cls(is_read=False)


def partition_of(event: LogEvent) -> TopicPartition | None:
    """Return the partition of an event; None where the line does not say, or is about none."""
    if event.topic is None or event.partition is None:
        return None
    return TopicPartition(event.topic, event.partition)
