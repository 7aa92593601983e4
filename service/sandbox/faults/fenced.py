"""Owners of a transactional id that lose it: to a second instance, or to their timeout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rules.errors import SandboxError
from rules.facts.transaction_log import Cut
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.open_transaction import begin_open, transaction_truth
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RejectedError
from service.sandbox.workloads.raw_producer import RawProducer

FENCED: Final = frozenset({"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})


def make_second_instance(run: FaultRun) -> Truth:
    """Begin a second producer of the same transactional id in the first one's transaction."""
    where = run.prepare_topic()
    first, second = run.producer(), run.producer()
    start = begin_open(run, first, where)
    second.begin()
    run.await_release(where, first, start)
    return _truth(run, first, start, cut=Cut.SECOND_INSTANCE, new_epoch=second.producer_epoch)


def make_timeout_fence(run: FaultRun) -> Truth:
    """Let a living owner exceed its timeout, and then go on as if nothing had happened."""
    where = run.prepare_topic()
    owner = run.producer()
    start = begin_open(run, owner, where)
    run.await_release(where, owner, start)
    producers = {producer.producer_id: producer for producer in run.cluster.producers(where)}
    epoch = producers[owner.producer_id].producer_epoch  # of the abort marker
    return _truth(run, owner, start, cut=Cut.TIMEOUT, new_epoch=epoch)


def _truth(run: FaultRun, owner: RawProducer, start: int, *, cut: Cut, new_epoch: int) -> Truth:
    _require_fenced(run, owner)
    return transaction_truth(
        run,
        owner,
        start,
        rule="producer_fenced",
        ends="it is over: the transaction is aborted, and its owner was rejected",
        cut=cut,
        fencing_epoch=new_epoch,
    )


def _require_fenced(run: FaultRun, owner: RawProducer) -> None:
    """Let the old owner try all it can; a broker that takes anything of it is no fault at all."""
    attempts: dict[str, Callable[[], object]] = {
        "write": lambda: owner.produce(run.where, 1),
        "commit": lambda: owner.end(commit=True),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except RejectedError as rejected:
            if rejected.error in FENCED:
                continue
            raise
        raise SandboxError(f"{owner.transactional_id} was to be fenced, and could {what}")
