"""A transaction that hangs: open on a partition, and no coordinator will ever end it.

Brokers since 3.7 ask the coordinator before they open a transaction on a partition (KIP-890).
With that check off on the leader, records written outside the producer's transaction open one
there, as a late request did on older brokers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from collectors.transactions import partition_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_CONFIGS
from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicPartition
from rules.transactions.classes import TransactionClass
from service.clock import wait_until
from service.sandbox.faults.open_transaction import HELD, Expected, open_truth
from service.sandbox.faults.stage import RECORDS, SETTLE_SECONDS, Stage
from service.sandbox.faults.truth import Truth
from service.sandbox.tools import run_quietly
from service.sandbox.workloads.raw_cluster import RawCluster, RefusedError, require
from service.sandbox.workloads.raw_producer import RawProducer

OFFSETS: Final = "__consumer_offsets"
VERIFICATION: Final = "transaction.partition.verification.enable"
# What a leader answers that still asks the coordinator, or asked one that knows nothing.
NOT_YET: Final = frozenset(
    {"TRANSACTION_ABORTABLE", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"}
)
TOOL: Final = "kafka-transactions.sh"
OF_BROKER: Final = 4  # ConfigResource.Type of the protocol
SET_FOR_ONE: Final = 2  # ConfigSource of the protocol: DYNAMIC_BROKER_CONFIG


def make_hanging(stage: Stage) -> Truth:
    """Open a transaction on the partition that its coordinator does not know of."""
    where = _offsets_partition(stage) if stage.options.offsets else stage.prepare_topic()
    producer = stage.producer()
    if stage.options.unlisted:
        producer.begin_unknown()
    else:
        producer.begin()
    with _unverified(stage, where):
        start = _write_outside(stage, producer, where)
    repair = (*_place(where), "--start-offset", str(start))
    stage.undo.callback(_repair, stage, producer, where, repair)
    stage.block_group(where, start)
    truth = open_truth(
        stage,
        producer,
        start,
        Expected(
            hold_class=TransactionClass.HANGING,
            rule="transaction_hanging",
            also=HELD,
            ends="never by itself",
            undo=stage.command("tool", TOOL, "abort", *repair),
        ),
    )
    return _unknown(truth) if stage.options.unlisted else truth


def _unknown(truth: Truth) -> Truth:
    """Leave out what belongs to a transactional id: the producer's is nowhere written."""
    return replace(
        truth,
        transactional_id=None,
        coordinator=None,
        coordinator_epoch=None,
        state=None,
        timeout=None,
    )


@contextlib.contextmanager
def _unverified(stage: Stage, where: TopicPartition) -> Iterator[None]:
    """Switch the leader's check off for the length of a block; then its own setting is back."""
    leader = stage.cluster.placed(where).leader
    before = _own_setting(stage.cluster, leader)
    try:
        stage.admin.set_broker_config(leader, {VERIFICATION: "false"})
        yield
    finally:
        _restore(stage, leader, before)


def _restore(stage: Stage, broker: BrokerId, value: str | None) -> None:
    """Set it back, and await that the broker has heard: it may be asked for its setting next."""
    stage.admin.set_broker_config(broker, {VERIFICATION: value})

    def is_back() -> bool:
        return _own_setting(stage.cluster, broker) == value

    if not wait_until(is_back, timeout_seconds=SETTLE_SECONDS):
        raise SandboxError(f"broker {broker} has not heard that {VERIFICATION} is back")


def _own_setting(cluster: RawCluster, broker: BrokerId) -> str | None:
    """Return what is set for this broker alone, at run time; None where nothing is."""

    def build(version: int) -> Any:
        resource = codec.message(DESCRIBE_CONFIGS, version, "DescribeConfigsResource")(
            resource_type=OF_BROKER, resource_name=str(broker), configuration_keys=(VERIFICATION,)
        )
        return codec.message(DESCRIBE_CONFIGS, version, "DescribeConfigsRequest")(
            resources=(resource,), include_synonyms=False, include_documentation=False
        )

    found = cluster.ask(broker, DESCRIBE_CONFIGS, build).results[0]
    require(f"settings of broker {broker}", found.error_code)
    own = [entry.value for entry in found.configs if int(entry.config_source) == SET_FOR_ONE]
    return own[0] if own else None


def _offsets_partition(stage: Stage) -> TopicPartition:
    """Return where the offsets of the fault's own group are kept; that is what suffers then."""
    count = len(stage.cluster.topic(OFFSETS))
    if not count:
        raise SandboxError(f"there is no {OFFSETS} yet: let a group commit something first")
    stage.options = replace(
        stage.options, topic=OFFSETS, partition=partition_of(stage.new_name, count)
    )
    return stage.where


def _write_outside(stage: Stage, producer: RawProducer, where: TopicPartition) -> int:
    """Write as soon as the leader has heard that it need not ask; return where that begins."""

    def append() -> int:
        if not stage.options.offsets:
            return producer.produce(where, RECORDS)
        producer.commit_offsets(stage.new_name, where, 0)
        [opened] = [
            one for one in stage.cluster.producers(where) if one.producer_id == producer.producer_id
        ]
        if opened.start_offset is None:
            raise SandboxError(f"nothing is open on {where}")
        return opened.start_offset

    return _as_soon_as_taken(append, where)


def _as_soon_as_taken(append: Callable[[], int], where: TopicPartition) -> int:
    offsets: list[int] = []

    def is_taken() -> bool:
        try:
            offsets.append(append())
        except RefusedError as refused:
            if refused.error not in NOT_YET:
                raise
        return bool(offsets)

    if not wait_until(is_taken, timeout_seconds=SETTLE_SECONDS):
        raise SandboxError(f"the leader of {where} still asks coordinators before it appends")
    return offsets[0]


def _place(where: TopicPartition) -> tuple[str, ...]:
    return "--topic", where.topic, "--partition", str(where.partition)


def _repair(
    stage: Stage, producer: RawProducer, where: TopicPartition, repair: tuple[str, ...]
) -> None:
    if stage.is_open(where, producer.producer_id):  # unless somebody did it already
        run_quietly(stage.sandbox, TOOL, ["abort", *repair])
