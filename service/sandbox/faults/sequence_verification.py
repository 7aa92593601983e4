"""A transaction's second batch overtakes its first one while the leader waits for the coordinator.

Since Kafka 3.6 a leader asks the coordinator before it opens a transaction (KIP-890), and both
batches wait for the answer. The leader remembers the lower sequence, and rejects the higher one:
"earliest seen sequence", which can be nothing but a reordering.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.runtime.clock import pause
from service.sandbox.faults.fault_context import FaultContext
from service.sandbox.faults.sequence_check import Expected
from service.sandbox.faults.sequence_context import ExpectedRules, episode_of, sequence_truth
from service.sandbox.faults.sequence_names import Client
from service.sandbox.faults.sequence_truth import SequenceTruth
from service.sandbox.workloads.raw_cluster import RawCluster
from service.sandbox.workloads.raw_producer import Protocol
from service.sandbox.workloads.sequenced_producer import SequencedProducer

ARRIVAL_SECONDS: Final = (
    0.3  # until a request waits at the leader; the coordinator's session lasts 4
)


def overtake(context: FaultContext, rules: ExpectedRules) -> SequenceTruth:
    """Send both batches while the coordinator is paused, the later one first."""
    run, where = context.run, context.partitions[0]
    owner = run.producer(protocol=Protocol.V1)
    owner.begin()
    owner.add(where)
    with RawCluster(run.sandbox) as first, RawCluster(run.sandbox) as second:
        early, late = (
            SequencedProducer(
                cluster=cluster,
                producer_id=owner.producer_id,
                producer_epoch=owner.producer_epoch,
                transactional_id=owner.transactional_id,
            )
            for cluster in (first, second)
        )
        _send_both(context, early, late)
        early.send(where, run.options.records, run.options.batch)
    owner.end(commit=True)
    run.await_release(where, owner, 0)
    expected = Expected(
        sequence_class=SequenceClass.REORDERING,
        client=Client.RAW,
        producer_epoch=owner.producer_epoch,
        form=SequenceForm.EARLIEST_SEEN,
        rejected=(run.options.records,),
        current_sequence=0,
        is_healed=True,
    )
    episode = episode_of(context, where, owner.producer_id, expected)
    return sequence_truth(context, rules, [episode])


def _send_both(context: FaultContext, early: SequencedProducer, late: SequencedProducer) -> None:
    run, where = context.run, context.partitions[0]
    records, batch = run.options.records, run.options.batch
    coordinator = run.cluster.coordinator(run.new_name)
    with ThreadPoolExecutor(2) as pool:
        run.undo.callback(run.sandbox.resume, coordinator)
        run.sandbox.pause(coordinator)
        try:
            rejected = pool.submit(early.expect_rejection, where, records, batch)
            pause(ARRIVAL_SECONDS)
            taken = pool.submit(late.send, where, 0, records)
            pause(ARRIVAL_SECONDS)
        finally:
            run.sandbox.resume(coordinator)
        rejected.result()
        taken.result()
