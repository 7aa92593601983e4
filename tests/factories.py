"""Valid values with overrides: a test names only what it is about."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from collectors.translate import topic_id_of
from rules.facts.brokers import BrokerContact, ControllerState, Quorum
from rules.facts.change_events import ChangedSubject, ChangeEvent, ChangeEventKind
from rules.facts.column import Column, Int64s, Ragged
from rules.facts.configs import (
    Config,
    ConfigEntry,
    Configs,
    ConfigSource,
    FeatureLevels,
    TopicConfigs,
)
from rules.facts.epoch_ends import EpochEnds
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.identity import Broker, BrokerId, TopicId, TopicPartition, short_id
from rules.facts.last_observation import microseconds
from rules.facts.members import AssignmentBuilder, Member
from rules.facts.offsets import Offsets
from rules.facts.partitions import PartitionIndex, Partitions
from rules.facts.producers import OpenProducer, Producers
from rules.facts.snapshot import RoundReport, Snapshot
from rules.facts.transaction_log import EndedTransaction, Outcome, TransactionLog
from rules.facts.transactions import IdVisibility, Transaction, Transactions, TransactionState

NOON: Final = datetime(2025, 6, 2, 12, 0, tzinfo=UTC)
CLUSTER_ID: Final = "AAAAAAAAQACAAAAAAAAAAQ"


def ints(*values: int) -> Int64s:
    """Return an int64 array."""
    return np.array(values, np.int64)


def at(seconds: float) -> datetime:
    """Return the time so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def topic_id(name: str, *, creation: int = 0) -> TopicId:
    """Return the id of a topic; another `creation` of the same name has another id."""
    made = topic_id_of(uuid.uuid5(uuid.NAMESPACE_URL, f"{name}#{creation}"))
    if made is None:
        raise ValueError(name)
    return made


def broker(broker_id: int = 1, **overrides: Any) -> Broker:
    """Return a broker whose port tells its id."""
    base = Broker(broker_id=BrokerId(broker_id), host="127.0.0.1", port=9090 + broker_id)
    return replace(base, **overrides)


def partitions(counts: Mapping[str, int] | None = None, **overrides: Any) -> Partitions:
    """Return partitions that broker 1 leads in epoch 5, all three replicas in sync."""
    index = PartitionIndex.of({"orders": 3} if counts is None else counts)
    rows = len(index)
    base = Partitions(
        index=index,
        topic_ids=tuple(topic_id(name) for name in index.topics),
        internal=tuple(name.startswith("__") for name in index.topics),
        leader=Column.of([1] * rows),
        leader_epoch=Column.of([5] * rows),
        replicas=Ragged.of([(1, 2, 3)] * rows),
        isr=Ragged.of([(1, 2, 3)] * rows),
        elr=Ragged.of([()] * rows),
        last_known_elr=Ragged.of([()] * rows),
        min_insync_replicas=Column.of([2] * rows),
        unclean_election_enabled=Column.of([0] * rows),
    )
    return replace(base, **overrides)


def offsets(rows: int = 3, **overrides: Sequence[int | None]) -> Offsets:
    """Return offsets of quiet partitions: log start 0, all three ends at 100, epoch 5."""
    columns: dict[str, Sequence[int | None]] = {
        "log_start_offset": [0] * rows,
        "last_stable_offset": [100] * rows,
        "high_watermark": [100] * rows,
        "log_end_offset": [100] * rows,
        "leader_epoch": [5] * rows,
        "replica_log_end_offsets": [None] * (3 * rows),
    }
    return Offsets(**{name: Column.of(v) for name, v in (columns | overrides).items()})


def unseen_offsets(rows: int = 3) -> Offsets:
    """Return offsets of which nothing is known."""
    return unknown_offsets(rows, 3 * rows)


def group(group_id: str = "billing", **overrides: Any) -> Group:
    """Return a stable consumer group with one member, coordinated by broker 1."""
    base = Group(
        group_id=group_id,
        group_type=GroupType.CONSUMER,
        state="Stable",
        member_count=1,
        coordinator=BrokerId(1),
    )
    return replace(base, **overrides)


def member(member_id: str = "m-1", *partitions: int, **overrides: Any) -> Member:
    """Return a member of its own client that owns these partitions of the topic `orders`."""
    base = Member(
        member_id=member_id,
        client_id=f"client-of-{member_id}",
        host="10.0.0.7",
        instance_id=None,
        epoch=None,
        assignment=(("orders", partitions),),
    )
    return replace(base, **overrides)


def described(*members: Member, **overrides: Any) -> Group:
    """Return a stable KIP-848 group with these members, empty without any."""
    state = "Stable" if members else "Empty"
    return replace(group(members=members, member_count=len(members), state=state), **overrides)


def classic(*members: Member, **overrides: Any) -> Group:
    """Return the same as a classic group."""
    return described(*members, group_type=GroupType.CLASSIC, **overrides)


def commits(
    *entries: tuple[int, int, int],
    epochs: Sequence[int | None] | None = None,
    nothing_to_read: Sequence[int | None] | None = None,
    scan_failed: Sequence[bool] | None = None,
    reported_lag: Sequence[int | None] | None = None,
) -> Commits:
    """Return commits from (group position, row, committed offset)."""
    columns = np.array(entries, np.int64).reshape(-1, 3)
    absent: list[int | None] = [None] * len(entries)
    return Commits(
        group=columns[:, 0],
        row=columns[:, 1],
        committed_offset=columns[:, 2],
        committed_leader_epoch=Column.of(absent if epochs is None else epochs),
        nothing_to_read=Column.of(absent if nothing_to_read is None else nothing_to_read),
        scan_failed=np.array(scan_failed or [False] * len(entries), np.bool_),
        reported_lag=Column.of(absent if reported_lag is None else reported_lag),
        has_reported_lag=np.full(len(entries), reported_lag is not None),
    )


def gap(**overrides: Any) -> Gap:
    """Return a gap of one broker that did not answer."""
    base = Gap(
        what="offsets of 3 partitions (orders-0, orders-1, orders-2)",
        why="127.0.0.1:9091: no answer within 5.0 s",
        cause=GapCause.TIMEOUT,
        scope=GapScope.OFFSETS,
        broker_id=BrokerId(1),
    )
    return replace(base, **overrides)


def report(**overrides: Any) -> RoundReport:
    """Return the report of a quick round."""
    base = RoundReport(
        took_seconds=0.0125,
        phase_seconds={"cluster": 0.0021234567, "offsets": 0.01},
        requests={"Metadata": 1, "ListOffsets": 4},
        setup_requests={"ApiVersions": 1},
        duplicate_commits=0,
    )
    return replace(base, **overrides)


def transaction(transactional_id: str = "payments", **overrides: Any) -> Transaction:
    """Return a transaction of producer 7 that has been open for 5 s on orders-0, timeout 60 s."""
    base = Transaction(
        transactional_id=transactional_id,
        coordinator=BrokerId(2),
        producer_id=7,
        state=TransactionState.ONGOING,
        producer_epoch=3,
        timeout=timedelta(seconds=60),
        started_at=at(-5),
        partitions=frozenset({TopicPartition("orders", 0)}),
    )
    return replace(base, **overrides)


def transactions(*known: Transaction, **overrides: Any) -> Transactions:
    """Return all that every coordinator of a cluster without authorizer knows."""
    base = Transactions(
        known={entry.transactional_id: entry for entry in known},
        visibility=IdVisibility.NO_AUTHORIZER,
        is_complete=True,
        resolved=frozenset(),
    )
    return replace(base, **overrides)


def open_producer(**overrides: Any) -> OpenProducer:
    """Return producer 7 in epoch 3, whose transaction on the first partition begins at 90."""
    base = OpenProducer(
        row=0,
        producer_id=7,
        producer_epoch=3,
        coordinator_epoch=None,
        start_offset=90,
        last_record_at=at(-5),
    )
    return replace(base, **overrides)


def producers(
    *found: OpenProducer, rows: int = 3, observed: Sequence[int] | None = None
) -> Producers:
    """Return what the leaders of the rows in `observed` said, of those with a producer by default."""
    mask = np.zeros(rows, np.bool_)
    mask[[entry.row for entry in found] if observed is None else list(observed)] = True
    return Producers(observed=mask, open=found)


def epoch_ends(*told: tuple[int, int, int | None]) -> EpochEnds:
    """Return answers from (row, epoch asked about, end offset), in that order; None: no such epoch."""
    return EpochEnds(
        row=ints(*(row for row, _, _ in told)),
        epoch=ints(*(epoch for _, epoch, _ in told)),
        found_epoch=Column.of([None if end is None else epoch for _, epoch, end in told]),
        end_offset=Column.of([end for _, _, end in told]),
    )


def ended(**overrides: Any) -> EndedTransaction:
    """Return a transaction that producer 7 committed at noon after 5 s."""
    base = EndedTransaction(
        transactional_id="payments",
        producer_id=7,
        producer_epoch=3,
        outcome=Outcome.COMMITTED,
        started_at=at(-5),
        ended_at=NOON,
        timeout=timedelta(seconds=60),
        coordinator=BrokerId(2),
    )
    return replace(base, **overrides)


def quorum(leader: int | None, *, leader_epoch: int = 4) -> Quorum:
    """Return the quorum with an active controller; None: it could not be queried."""
    if leader is None:
        return Quorum()
    node = BrokerId(leader)
    return Quorum(state=ControllerState.ACTIVE, leader=node, leader_epoch=leader_epoch)


def change_event(topic: str = "orders", **overrides: Any) -> ChangeEvent:
    """Return the event of a topic that got three more partitions at noon."""
    base = ChangeEvent(
        id=short_id(topic),
        kind=ChangeEventKind.PARTITIONS_ADDED,
        seen_us=microseconds(NOON),
        since_us=microseconds(at(-15)),
        count=1,
        subjects=(ChangedSubject(topic=topic, before="3", after="6"),),
        topics=(topic,),
    )
    return replace(base, **overrides)


TOPIC_SETTINGS: Final = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
BROKER_SETTINGS: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.retention.minutes": "10080",
    "offsets.topic.num.partitions": "50",
    "offsets.topic.replication.factor": "3",
    "producer.id.expiration.ms": "86400000",
    "replica.fetch.max.bytes": "1048576",
    "transaction.max.timeout.ms": "900000",
    "transaction.partition.verification.enable": "true",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "50",
    "transaction.state.log.replication.factor": "3",
    "transactional.id.expiration.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
LEVELS: Final = {
    "eligible.leader.replicas.version": 1,
    "metadata.version": 27,
    "transaction.version": 2,
}


def config(
    settings: Mapping[str, str | None], source: ConfigSource = ConfigSource.DEFAULT
) -> Config:
    """Return settings that all come from the same source."""
    return Config(tuple(ConfigEntry(n, value, source) for n, value in sorted(settings.items())))


def feature_levels(**levels: int) -> FeatureLevels:
    """Return the levels of a new cluster of Kafka 4.1, with others for some features."""
    finalized = LEVELS | {name.replace("_", "."): level for name, level in levels.items()}
    supported = {name: (0, LEVELS.get(name, level)) for name, level in finalized.items()}
    return FeatureLevels(finalized=finalized, supported=supported, epoch=1)


def configs(placed: Partitions, listed: Sequence[Broker], **overrides: Any) -> Configs:
    """Return settings with which exactly-once can hold; the cluster's own topics are compacted."""
    own = config(TOPIC_SETTINGS | {"cleanup.policy": "compact"})
    base = Configs(
        topics=TopicConfigs(
            distinct=(config(TOPIC_SETTINGS), own),
            of_topic=np.array(placed.internal, np.int64),
        ),
        brokers={entry.broker_id: config(BROKER_SETTINGS) for entry in listed},
        features=feature_levels(),
    )
    return replace(base, **overrides)


def snapshot(**overrides: Any) -> Snapshot:
    """Return a complete observe a quiet cluster; offsets fit the partitions that are given."""
    placed: Partitions = overrides.get("partitions", partitions())
    rows = len(placed)
    listed: Sequence[Broker] = overrides.get("brokers", (broker(1), broker(2), broker(3)))
    base = Snapshot(
        cluster="default",
        cluster_id=CLUSTER_ID,
        taken_at=NOON,
        brokers=tuple(listed),
        partitions=placed,
        placement_complete=True,
        offsets=offsets(rows),
        followed=np.zeros(rows, np.bool_),
        groups=(),
        commits=Commits.none(),
        transactions=transactions(),
        producers=no_producers(rows),
        transaction_log=TransactionLog(is_read=True),
        epoch_ends=no_epoch_ends(),
        gaps=(),
        report=report(),
        contact=BrokerContact(answered=frozenset(entry.broker_id for entry in listed)),
        quorum=quorum(1),
        configs=configs(placed, listed),
    )
    built = replace(base, **overrides)
    owned = AssignmentBuilder().build(built.groups, placed.index)
    return replace(built, **({"assignments": owned} | overrides))


def unknown_offsets(rows: int, replica_rows: int) -> Offsets:
    """Return offsets of which nothing is known."""
    nothing = Column.absent(rows)
    return Offsets(
        log_start_offset=nothing,
        last_stable_offset=nothing,
        high_watermark=nothing,
        log_end_offset=nothing,
        leader_epoch=nothing,
        replica_log_end_offsets=Column.absent(replica_rows),
    )


def no_producers(rows: int) -> Producers:
    """Return the value for a round that queried no leader."""
    return Producers(observed=np.zeros(rows, np.bool_), open=())


def no_epoch_ends() -> EpochEnds:
    """Return no answers."""
    nothing, unknown = np.zeros(0, np.int64), Column.absent(0)
    return EpochEnds(row=nothing, epoch=nothing, found_epoch=unknown, end_offset=unknown)
