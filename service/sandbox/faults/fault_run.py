"""One run of a fault: its options, and the undo steps that it leaves behind."""

from __future__ import annotations

import contextlib
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from collectors.wire.api import DESCRIBE_CONFIGS
from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.episode_transactions import TransactionOutcome
from rules.facts.identity import BrokerId, TopicPartition
from service.runtime.clock import wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.layout import default_directory
from service.sandbox.cluster.readiness import await_condition
from service.sandbox.workloads.clients import ensure_topics
from service.sandbox.workloads.raw_cluster import RawCluster, require
from service.sandbox.workloads.raw_producer import Protocol, RawProducer, append_plain

RECORDS_BEFORE: Final = 5  # committed ones, so that a group has something behind it
RECORDS: Final = 3  # of the transaction
SETTLE_SECONDS: Final = 90.0
OF_BROKER: Final = 4  # ConfigResource.Type of the protocol
SET_FOR_ONE: Final = 2  # ConfigSource of the protocol: DYNAMIC_BROKER_CONFIG


def new_mark() -> str:
    """Return what no other run has in its names."""
    return uuid.uuid4().hex[:8]


class Client(StrEnum):
    """Who writes: single requests, or a client library as applications use it."""

    RAW = "raw"
    LIBRDKAFKA = "librdkafka"
    JAVA = "java"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOptions:
    """Choices of the caller; None leaves them to the fault."""

    topic: str | None = None  # None: a new one, removed when the fault is undone
    partition: int = 0
    timeout: timedelta | None = None  # transaction.timeout.ms
    offsets: bool = False  # hanging-transaction: of a group's offsets, on __consumer_offsets
    unlisted: bool = False  # hanging-transaction: by a producer that no coordinator knows
    records: int = 24  # per partition, that are lost or were written just before
    partitions: int = 1  # of the topic, all of them suffer
    batch: int = 8  # records at most in one batch, and in one transaction
    transactional: bool = False  # committed-loss: of whole transactions
    protocol: Protocol | None = None  # of those transactions; None: of the release's Java clients
    readers: bool = False  # a group had read to the end, and stays away
    old_leader_returns: bool = False  # else it stays dead until the fault is undone
    client: Client = Client.RAW  # of faults about sequences: who writes
    form: SequenceForm = SequenceForm.OUT_OF_ORDER  # likewise: how a broker rejects
    burst: bool = False  # sequence-loss: written just before the leader dies
    other_borders: bool = False  # sequence-stale-retry: the same records in another batch
    # sequence-in-transaction: what becomes of the transaction
    outcome: TransactionOutcome = TransactionOutcome.ABORTED
    resend: bool = False  # sequence-stale-retry: once more, in a new epoch


@dataclass(slots=True, kw_only=True)
class FaultRun:
    """The sandbox, the options, and the undoing so far: last step first."""

    sandbox: Sandbox
    options: FaultOptions
    cluster: RawCluster
    fault: str
    timeout: timedelta
    mark: str = field(default_factory=new_mark)
    groups: list[str] = field(default_factory=list)  # that wait behind the fault
    undo: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def admin(self) -> SandboxAdmin:
        """Administration of the sandbox."""
        return SandboxAdmin(self.sandbox.bootstrap_servers)

    @property
    def protocol(self) -> Protocol:
        """What the caller wants transactions to be written with, or the release's Java clients."""
        newest = Protocol.V2 if self.sandbox.state.release.has_transactions_v2 else Protocol.V1
        return self.options.protocol or newest

    @property
    def where(self) -> TopicPartition:
        """The partition that is to suffer."""
        return TopicPartition(self.options.topic or self.new_name, self.options.partition)

    @property
    def new_name(self) -> str:
        """A name of its own, for topics, groups and transactional ids."""
        return f"{self.fault}-{self.mark}"

    def producer(
        self, *, transactional_id: str | None = None, protocol: Protocol = Protocol.V1
    ) -> RawProducer:
        """Return a producer that has sent nothing yet."""
        return RawProducer(
            cluster=self.cluster,
            transactional_id=transactional_id or self.new_name,
            protocol=protocol,
            timeout=self.timeout,
        )

    def prepare_topic(self) -> TopicPartition:
        """Return the partition, with some committed records; a missing topic is created."""
        where = self.where
        if self.options.topic is None:
            self.undo.callback(self.remove_topic, where.topic)
        ensure_topics(self.sandbox.bootstrap_servers, where.topic, partitions=where.partition + 1)
        append_plain(self.cluster, where, RECORDS_BEFORE)
        return where

    def remove_topic(self, name: str) -> None:
        """Delete a topic that the fault made, if it is there."""
        if self.cluster.topic(name):
            self.admin.delete_topic(name)

    def block_group(self, where: TopicPartition, offset: int) -> None:
        """Make a group that read, and committed, up to the offset."""
        group = f"{self.new_name}-readers"
        self.cluster.commit(group, where, offset)
        self.undo.callback(self.admin.delete_group, group)
        self.groups.append(group)

    def await_release(self, where: TopicPartition, producer: RawProducer, start: int) -> None:
        """Wait until a transaction that began at `start` holds nothing back any more."""

        def is_released() -> bool:
            if self.is_open(where, producer.producer_id):
                return False
            return self.cluster.ends(where).last_stable_offset > start

        otherwise = f"{producer.transactional_id} is still open on {where}"
        await_condition(is_released, otherwise, seconds=SETTLE_SECONDS)

    def is_open(self, where: TopicPartition, producer_id: int) -> bool:
        """Whether a producer has a transaction open on the partition."""
        return any(
            producer.producer_id == producer_id and producer.start_offset is not None
            for producer in self.cluster.producers(where)
        )

    def take_back(self) -> None:
        """Undo every step, the last one first, as far as possible; give back the connections."""
        with self.cluster:
            self.undo.close()

    def command(self, *words: str) -> str:
        """Return a `tidemark sandbox` command for this sandbox, as one types it."""
        own = self.sandbox.directory
        where = [] if own == default_directory().absolute() else ["--dir", str(own)]
        if words[0] == "tool":  # all that follows the tool's name is the tool's
            return shlex.join(["tidemark", "sandbox", "tool", *where, *words[1:]])
        return shlex.join(["tidemark", "sandbox", *words, *where])


@contextlib.contextmanager
def changed_setting(run: FaultRun, broker: BrokerId, name: str, value: str) -> Iterator[None]:
    """Set one broker's setting for the length of a block; then restore it."""
    before = _own_setting(run.cluster, broker, name)
    try:
        run.admin.set_broker_config(broker, {name: value})
        yield
    finally:
        _restore(run, broker, name, before)


def _restore(run: FaultRun, broker: BrokerId, name: str, value: str | None) -> None:
    """Restore it, and wait until the broker reports it: the next request may read the setting."""
    run.admin.set_broker_config(broker, {name: value})

    def is_back() -> bool:
        return _own_setting(run.cluster, broker, name) == value

    if not wait_until(is_back, timeout_seconds=SETTLE_SECONDS):
        raise SandboxError(f"broker {broker} does not report {name} as restored")


def _own_setting(cluster: RawCluster, broker: BrokerId, name: str) -> str | None:
    """Return what is set for this broker alone, at run time; None where nothing is."""
    answer = cluster.ask(
        broker,
        DESCRIBE_CONFIGS,
        resources=[
            {
                "resource_type": OF_BROKER,
                "resource_name": str(broker),
                "configuration_keys": (name,),
            }
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    result = answer.results[0]
    require(f"settings of broker {broker}", result.error_code)
    own = [entry.value for entry in result.configs if int(entry.config_source) == SET_FOR_ONE]
    return own[0] if own else None
