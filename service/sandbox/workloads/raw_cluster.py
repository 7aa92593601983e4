"""Single requests to single brokers of a sandbox, over the collectors' own connections.

For what client libraries do by themselves or do not do at all. Every rejection is an error here: a
fault is made completely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar, get_args, get_type_hints

from collectors.security import Security
from collectors.session import Limits, Request, Session, address_of
from collectors.state_topic import partition_of
from collectors.translate import present, topic_id_of
from collectors.wire import codec
from collectors.wire.api import (
    CONSUMER,
    DESCRIBE_PRODUCERS,
    METADATA,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Api,
)
from collectors.wire.failure import Failure
from collectors.wire.pool import Pool
from rules.errors import SandboxError
from rules.facts.identity import TRANSACTION_STATE, Broker, BrokerId, TopicId, TopicPartition
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness

T = TypeVar("T")

ANSWER_SECONDS: Final = 45.0  # a busy machine
SETTLE_SECONDS: Final = 45.0
LATEST: Final = -1  # ListOffsets: the end of what the isolation level may read
OF_GROUP: Final = 0  # FindCoordinator: of which kind the key is
OF_TRANSACTION: Final = 1

# One version each: what a fault needs, on every Kafka that the sandbox runs.
LIST_OFFSETS: Final = Api(key=2, name="ListOffsets", oldest=7, newest=7, since="2.8")
OFFSET_COMMIT: Final = Api(key=8, name="OffsetCommit", oldest=8, newest=8, since="2.4")
FIND_COORDINATOR: Final = Api(key=10, name="FindCoordinator", oldest=4, newest=4, since="3.0")
LIST_TRANSACTIONS: Final = Api(key=66, name="ListTransactions", oldest=0, newest=0, since="3.0")

# Of a coordinator that was just elected, or still writes what it decided before.
TRANSIENT: Final = frozenset(
    {
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "NOT_ENOUGH_REPLICAS",  # said before anything is appended; a cluster that has just started
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
    }
)


class RejectedError(SandboxError):
    """A broker answered with an error; `error` is Kafka's name of it."""

    def __init__(self, what: str, error: str) -> None:
        super().__init__(f"{what}: {error}")
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Where a partition lives now."""

    leader: BrokerId
    leader_epoch: int
    replicas: tuple[BrokerId, ...]
    isr: frozenset[BrokerId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The two ends that readers of a partition see."""

    last_stable_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOn:
    """A producer as the leader of one partition knows it; the last two are None when absent."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int | None  # of its open transaction


@dataclass(frozen=True, slots=True)
class Listed:
    """A transactional id in its coordinator's list."""

    state: str  # Kafka's own word
    producer_id: int


class RawCluster:
    """A sandbox's brokers by id; close it, or use it as a block."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._brokers = {node.id: _broker(node.id, node.address) for node in sandbox.state.brokers}
        self._pool = Pool(Security())

    def ask(self, broker_id: int, api: Api, **fields: Any) -> Any:
        """Send one request with these fields, see `entity_of`; return the answer's entity.

        Raises:
            SandboxError: no answer, or none that can be read.
        """
        broker = self._brokers[broker_id]
        self._pool.connect([address_of(broker)], timeout_seconds=ANSWER_SECONDS)
        limits = Limits(request_seconds=ANSWER_SECONDS, round_seconds=ANSWER_SECONDS)
        session = Session(self._pool, limits=limits, brokers=(broker,))

        def encode(version: int) -> bytes:
            return codec.encode(
                entity_of(codec.message(api, version, f"{api.name}Request"), fields)
            )

        answer = session.exchange([Request(broker, api, encode)])[0].read()
        if isinstance(answer, Failure):
            raise SandboxError(f"{api.name}: {answer.why}")
        return answer

    def running(self) -> list[BrokerId]:
        """Return the brokers that are neither dead nor paused."""
        nodes = self._sandbox.status()
        ids = [status.node.id for status in nodes if status.liveness is Liveness.RUNNING]
        return [BrokerId(number) for number in ids if number in self._brokers]

    def any_running(self) -> BrokerId:
        """Return a broker for requests that any of them can answer."""
        running = self.running()
        if not running:
            raise SandboxError("no broker runs: tidemark sandbox status")
        return running[0]

    def topic(self, name: str, *, broker: BrokerId | None = None) -> list[Placed]:
        """Return the partitions of a topic in their order; empty when there is no such topic.

        `broker` chooses who answers: one that was paused until now still has old metadata.
        """
        return _partitions(self._topics(name, broker)[0])

    def topics(self, *, broker: BrokerId | None = None) -> dict[str, list[Placed]]:
        """Return the partitions of every topic, Kafka's own among them."""
        return {str(topic.name): _partitions(topic) for topic in self._topics(None, broker)}

    def topic_id(self, name: str) -> TopicId | None:
        """Return the id of a topic; None when there is no such topic."""
        return topic_id_of(self._topics(name, None)[0].topic_id)

    def placed(self, where: TopicPartition) -> Placed:
        """Return where a partition lives; raise when there is none, or no leader of it."""
        partitions = self.topic(where.topic)
        if not partitions:  # or the broker that answered has no metadata of it yet
            raise RejectedError(str(where), "UNKNOWN_TOPIC_OR_PARTITION")
        if where.partition >= len(partitions):
            raise SandboxError(
                f"there is no partition {where}: {where.topic} has {len(partitions)} partitions"
            )
        partition = partitions[where.partition]
        if partition.leader not in self._brokers:
            raise RejectedError(str(where), "LEADER_NOT_AVAILABLE")
        return partition

    def ends(self, where: TopicPartition) -> Ends:
        """Ask the leader for the last stable offset and the high watermark."""
        return Ends(
            last_stable_offset=self.offset(where, isolation_level=READ_COMMITTED),
            high_watermark=self.offset(where),
        )

    def offset(
        self,
        where: TopicPartition,
        broker_id: BrokerId | None = None,
        *,
        timestamp: int = LATEST,
        replica_id: int = CONSUMER,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> int:
        """Ask one broker, the leader unless another is named, for one offset (ListOffsets)."""
        target = self.placed(where).leader if broker_id is None else broker_id
        answer = self.ask(
            target,
            LIST_OFFSETS,
            replica_id=replica_id,
            isolation_level=isolation_level,
            topics=one_partition(where, timestamp=timestamp),
        )
        result = answer.topics[0].partitions[0]
        require(f"offsets of {where} on broker {target}", result.error_code)
        if result.offset < 0:
            raise RejectedError(f"offsets of {where} on broker {target}", "UNKNOWN_OFFSET")
        return int(result.offset)

    def producers(self, where: TopicPartition) -> list[ProducerOn]:
        """Ask the leader for the producers that it remembers on a partition."""
        topic = {"name": where.topic, "partition_indexes": (where.partition,)}
        answer = self.ask(self.placed(where).leader, DESCRIBE_PRODUCERS, topics=[topic])
        result = answer.topics[0].partitions[0]
        require(f"producers of {where}", result.error_code)
        return [_producer_on(producer) for producer in result.active_producers]

    def coordinator(self, key: str, kind: int = OF_TRANSACTION) -> BrokerId:
        """Return the coordinator of a transactional id or a group, once there is one."""

        def observe() -> BrokerId:
            answer = self.ask(
                self.any_running(), FIND_COORDINATOR, key_type=kind, coordinator_keys=(key,)
            )
            coordinator = answer.coordinators[0]
            require(f"coordinator of {key}", coordinator.error_code)
            return BrokerId(int(coordinator.node_id))

        return patiently(observe)

    def coordinator_epoch(self, transactional_id: str) -> int:
        """Return the leader epoch of the partition that holds the transactional id.

        A coordinator writes it into its markers (TransactionStateManager of the broker). The
        request goes to it: another broker may not have its latest epoch yet.
        """
        partitions = self.topic(TRANSACTION_STATE, broker=self.coordinator(transactional_id))
        return partitions[partition_of(transactional_id, len(partitions))].leader_epoch

    def listed(self, transactional_id: str) -> Listed | None:
        """Return how the coordinator lists a transactional id; None when it does not."""
        answer = self.ask(
            self.coordinator(transactional_id),
            LIST_TRANSACTIONS,
            state_filters=(),
            producer_id_filters=(),
        )
        require("transactions", answer.error_code)
        for transaction in answer.transaction_states:
            if transaction.transactional_id == transactional_id:
                return Listed(transaction.transaction_state, int(transaction.producer_id))
        return None

    def commit(
        self, group: str, where: TopicPartition, offset: int, *, leader_epoch: int | None = None
    ) -> None:
        """Commit an offset of a group without joining it.

        `leader_epoch` is that of the last record read, which clients commit along.
        """
        epoch = {} if leader_epoch is None else {"committed_leader_epoch": leader_epoch}
        topics = one_partition(where, committed_offset=offset, committed_metadata="", **epoch)

        def act() -> None:
            answer = self.ask(
                self.coordinator(group, OF_GROUP),
                OFFSET_COMMIT,
                group_id=group,
                member_id="",
                topics=topics,
            )
            require(f"commit of {group}", answer.topics[0].partitions[0].error_code)

        patiently(act)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _topics(self, name: str | None, broker: BrokerId | None) -> Any:
        """Ask for one topic, or for all of them."""
        answer = self.ask(
            self.any_running() if broker is None else broker,
            METADATA,
            topics=None if name is None else [{"topic_id": None, "name": name}],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        return answer.topics


def entity_of(message: Any, fields: Mapping[str, Any]) -> Any:
    """Return a message with these fields; where it has a list of parts, those are mappings too."""
    hints = get_type_hints(message)
    return message(
        **{
            name: tuple(entity_of(_part_of(hints[name]), part) for part in value)
            if isinstance(value, list)
            else value
            for name, value in fields.items()
        }
    )


def one_partition(where: TopicPartition, **fields: Any) -> list[dict[str, Any]]:
    """Return the `topics` of a request about one partition, with these fields of it."""
    partition = {"partition_index": where.partition, **fields}
    return [{"name": where.topic, "partitions": [partition]}]


def _part_of(hint: Any) -> Any:
    """Return the class of the parts in a list: X of `tuple[X, ...]`, which may be optional."""
    first = get_args(hint)[0]
    return _part_of(first) if get_args(first) else first


def require(what: str, code: Any) -> None:
    """Raise RejectedError unless the code is that of success."""
    if int(code) != codec.NO_ERROR:
        raise RejectedError(what, codec.error_name(int(code)))


def patiently(act: Callable[[], T], *, seconds: float = SETTLE_SECONDS) -> T:
    """Repeat `act` while it is rejected for a reason that passes; return what it returns."""
    results: list[T] = []
    rejections: list[RejectedError] = []

    def try_once() -> bool:
        try:
            results.append(act())
        except RejectedError as rejected:
            if rejected.error not in TRANSIENT:
                raise
            rejections.append(rejected)
        return bool(results)

    if not wait_until(try_once, timeout_seconds=seconds):
        raise rejections[-1]
    return results[0]


def _broker(number: int, address: str) -> Broker:
    host, _, port = address.rpartition(":")
    return Broker(broker_id=BrokerId(number), host=host, port=int(port))


def _partitions(topic: Any) -> list[Placed]:
    return [_placed(row) for row in sorted(topic.partitions, key=lambda row: row.partition_index)]


def _placed(row: Any) -> Placed:
    return Placed(
        leader=BrokerId(int(row.leader_id)),
        leader_epoch=int(row.leader_epoch),
        replicas=tuple(BrokerId(int(number)) for number in row.replica_nodes),
        isr=frozenset(BrokerId(int(number)) for number in row.isr_nodes),
    )


def _producer_on(row: Any) -> ProducerOn:
    return ProducerOn(
        producer_id=int(row.producer_id),
        producer_epoch=int(row.producer_epoch),
        coordinator_epoch=present(int(row.coordinator_epoch)),
        start_offset=present(int(row.current_txn_start_offset)),
    )
