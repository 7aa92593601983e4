"""A transaction that is decided and cannot end: a partition does not take its marker.

Only one of the partition's two replicas is in sync, and it may not write alone
(`min.insync.replicas=2`). The coordinator, which is a third broker, has written its decision and
sends the marker again and again: hundreds of log lines per second on both brokers.
"""

from __future__ import annotations

from functools import partial

from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.sandbox.cluster.readiness import await_condition, listed_brokers
from service.sandbox.faults.fault_run import RECORDS_BEFORE, SETTLE_SECONDS, FaultRun
from service.sandbox.faults.open_transaction import HELD, begin_held, transaction_truth
from service.sandbox.faults.replicas import choose_pair
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RejectedError
from service.sandbox.workloads.raw_producer import RawProducer, append_plain


def make_stuck_marker(run: FaultRun) -> Truth:
    """Commit a transaction while the partition's follower is paused."""
    producer = run.producer()
    pair = choose_pair(run)
    leader, follower = pair.leader, pair.follower
    where = _make_topic(run, leader, follower)
    start = begin_held(run, producer, where)
    run.undo.callback(run.await_release, where, producer, start)
    run.sandbox.pause(follower)
    run.undo.callback(run.sandbox.resume, follower)
    settle = partial(await_condition, seconds=SETTLE_SECONDS)
    settle(
        lambda: run.cluster.placed(where).isr == {leader},
        f"broker {follower} is still in sync on {where}",
    )
    settle(  # what it led is led by others from here on
        lambda: follower not in listed_brokers(run.sandbox.broker_address(leader)),
        f"broker {follower} is still registered",
    )
    _decide(producer)
    decided = TransactionState.PREPARE_COMMIT
    settle(
        lambda: getattr(run.cluster.listed(producer.transactional_id), "state", None) == decided,
        f"{producer.transactional_id} did not become {decided}",
    )
    return transaction_truth(
        run,
        producer,
        start,
        hold_class=TransactionClass.PREPARE_COMMIT,
        rule="transaction_marker_stuck",
        also=(*HELD, "partition_under_min_isr"),
        ends=f"when broker {follower} goes on, and is in sync again",
        undo=run.command("resume", str(follower)),
    )


def _decide(producer: RawProducer) -> None:
    """Commit, unless the coordinator has the decision already.

    On Kafka 3.3.2 an ISR that shrinks makes the coordinator load its log again. A decision that it
    writes meanwhile counts, is answered with NOT_COORDINATOR, and is rejected when it is sent again.
    """
    try:
        producer.end(commit=True)
    except RejectedError as rejected:
        if rejected.error != "CONCURRENT_TRANSACTIONS":
            raise


def _make_topic(run: FaultRun, leader: BrokerId, follower: BrokerId) -> TopicPartition:
    where = run.where
    if run.cluster.topic(where.topic):
        raise SandboxError(
            f"topic {where.topic} is there already: stuck-marker makes one with two replicas"
        )
    if run.options.topic is None:
        run.undo.callback(run.remove_topic, where.topic)
    assignment = [[leader, follower]] * (where.partition + 1)
    run.admin.create_topic(where.topic, assignment=assignment, configs={"min.insync.replicas": "2"})
    append_plain(run.cluster, where, RECORDS_BEFORE)
    return where
