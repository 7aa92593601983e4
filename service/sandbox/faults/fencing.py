"""Faults about fenced producers whose older instance goes on: a zombie, and two that fight.

Under verification (KIP-890) no broker logs a line about it. The request log of the brokers names who was
initialised and who was rejected, so it is switched on for as long as the fault is made.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from collectors.wire.api import Api
from rules.facts.fencing import FencingClass
from rules.facts.transaction_log import Cut
from service.sandbox.faults.fault_run import FaultRun
from service.sandbox.faults.transactions import begin_open, require_fenced, transaction_truth
from service.sandbox.faults.truth import Truth
from service.sandbox.workloads.raw_cluster import RawCluster, require

ALTER_CONFIGS: Final = Api(key=44, name="IncrementalAlterConfigs", oldest=1, newest=1, since="2.4")
OF_LOGGERS: Final = 8  # ConfigResource.Type of the protocol: BROKER_LOGGER
SET: Final = 0  # AlterConfigOp
REQUEST_LOGGER: Final = "kafka.request.logger"
TURNS: Final = 4  # of two instances: the first comes back once


@contextlib.contextmanager
def logged_requests(cluster: RawCluster) -> Iterator[None]:
    """Let all running brokers write their request log for the length of a block."""
    _set_level(cluster, "DEBUG")
    try:
        yield
    finally:
        _set_level(cluster, "INFO")


def _set_level(cluster: RawCluster, level: str) -> None:
    setting = {"name": REQUEST_LOGGER, "config_operation": SET, "value": level}
    for broker in cluster.running():
        resource = {
            "resource_type": OF_LOGGERS,
            "resource_name": str(broker),
            "configs": [setting],
        }
        answer = cluster.ask(broker, ALTER_CONFIGS, resources=[resource], validate_only=False)
        require(f"{REQUEST_LOGGER} of broker {broker}", answer.responses[0].error_code)


def make_zombie(run: FaultRun) -> Truth:
    """Let the older of two instances write and commit after the newer one was initialised."""
    where = run.prepare_topic()
    older, newer = (run.producer(protocol=run.protocol) for _ in range(2))
    with logged_requests(run.cluster):
        start = begin_open(run, older, where)
        newer.begin()
        run.await_release(where, older, start)
        epoch = newer.producer_epoch
        require_fenced(run, older)
        newer.add(where)
        newer.produce(where, 1)
        newer.end(commit=True)
    return transaction_truth(
        run,
        older,
        start,
        rule="producer_fenced",
        ends="it is over: the older instance was rejected, and the newer one has committed",
        cut=Cut.SECOND_INSTANCE,
        fencing_epoch=epoch,
        fencing_class=FencingClass.ZOMBIE,
    )


def make_fighting_instances(run: FaultRun) -> Truth:
    """Let two instances take a transactional id from each other, each with a transaction open."""
    where = run.prepare_topic()
    fenced, owner = (run.producer(protocol=run.protocol) for _ in range(2))
    with logged_requests(run.cluster):
        start = begin_open(run, owner, where)
        for _ in range(TURNS - 1):
            fenced, owner = owner, fenced
            owner.begin()
            run.await_release(where, fenced, start)
            require_fenced(run, fenced)
            owner.add(where)
            start = owner.produce(where, 1)
        epoch = owner.producer_epoch
        owner.end(commit=True)
    return transaction_truth(
        run,
        fenced,
        start,
        rule="producer_fenced",
        ends="it is over: the instance that took the id last has committed",
        cut=Cut.SECOND_INSTANCE,
        fencing_epoch=epoch,
        fencing_class=FencingClass.INSTANCES_FIGHTING,
    )
