"""Losses under a continuous acks=all load, injected at a random time; and over a kill -9 of Tidemark.

The whole service watches, light observations included. LOSS_RUNS sets how often (`make loss-long`).
"""

from __future__ import annotations

import logging
import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self

import pytest
from confluent_kafka import Producer

from service.runtime.clock import monotonic, pause, utc_now, wait_until
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import prepare_loss
from tests.folders import new_folder
from tests.integration.serve.served import Document, Served, Start

RUNS: Final = int(os.environ.get("LOSS_RUNS", "2"))
RUN_SECONDS: Final = 180.0
SETTLE_SECONDS: Final = 90.0
ROUND_SECONDS: Final = 2.0
LONGEST_AFTER_SHRINK: Final = 6.0
LEADER, FOLLOWER = 1, 2

pytestmark = [pytest.mark.integration, pytest.mark.timeout(RUNS * RUN_SECONDS + 240)]

logger = logging.getLogger(__name__)


@dataclass
class Load:
    """One producer that waits for all in-sync replicas, and what was acknowledged to it."""

    servers: str
    topic: str
    acknowledged: int = 0  # one beyond the highest offset
    stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.servers, "acks": "all", "linger.ms": 2, "retries": 0}
        )
        while not self.stopping.wait(0.002):
            producer.produce(self.topic, b"x" * 50, on_delivery=self._note)
            producer.poll(0)
        producer.purge()
        producer.flush(2)

    def _note(self, error: Any, message: Any) -> None:
        if error is None and not self.stopping.is_set():
            self.acknowledged = max(self.acknowledged, message.offset() + 1)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a short path that the server's unprivileged user may pass through."""
    made = new_folder()
    yield made
    shutil.rmtree(made)


def start_of(faults: Sandbox, folder: Path, topics: str) -> Start:
    return Start(
        bootstrap=faults.bootstrap_servers,
        directory=folder / "data",
        topics=topics,
        groups="none",
        interval=ROUND_SECONDS,
        settings={"KAFKA__REQUEST_TIMEOUT_SECONDS": "1"},
    )


def placed(served: Served, topic: str) -> Document:
    rows: list[Document] = served.document(f"/api/v1/partitions?topic={topic}")["items"]
    return rows[0] if rows else {}


def losses(served: Served, topic: str) -> list[Document]:
    """Return what is said of lost records of a topic, the certain ones first."""
    found = [
        finding
        for rule in ("committed_records_lost", "records_possibly_lost")
        for finding in served.findings(rule)
        if finding["labels"]["topic"] == topic
    ]
    return [finding for finding in found if finding["verdict"] == "breach"]


def await_losses(served: Served, topic: str) -> list[Document]:
    """Wait until something is said of lost records: nothing would say that none are."""
    is_reported = wait_until(lambda: bool(losses(served, topic)), timeout_seconds=SETTLE_SECONDS)
    assert is_reported, served.reported()
    return losses(served, topic)


def test_the_truth_lies_within_what_is_certain_possible_and_unknown(
    faults: Sandbox, folder: Path, new_name: Callable[[str], str]
) -> None:
    stem = new_name("risk")
    served = Served(start_of(faults, folder, f"{stem}.*"), folder / "serve.log").wait_ready()
    chance = random.Random(0)  # the same times in every run of the test
    try:
        for number in range(RUNS):
            after = chance.uniform(0.1, LONGEST_AFTER_SHRINK)
            inject_under_load(faults, served, f"{stem}-{number}", after)
    finally:
        served.stop()


def inject_under_load(faults: Sandbox, served: Served, topic: str, seconds: float) -> None:
    """Kill the leader so many seconds after its ISR has shrunk, and elect the stale follower."""
    admin = SandboxAdmin(faults.bootstrap_servers)
    settings = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    admin.create_topic(topic, assignment=[[LEADER, FOLLOWER]], configs=settings)
    assert wait_until(lambda: placed(served, topic).get("isr") is not None, timeout_seconds=180)
    with Load(faults.bootstrap_servers, topic) as load:
        assert wait_until(lambda: load.acknowledged > 100, timeout_seconds=180)
        pause(2 * ROUND_SECONDS)  # an ordinary life, which a round has seen
        faults.pause(FOLLOWER)
        stood = load.acknowledged
        assert wait_until(lambda: load.acknowledged > stood + 500, timeout_seconds=180), "no shrink"
        pause(seconds)
        injected = utc_now()
        faults.kill(LEADER)
        load.stopping.set()
        truth = load.acknowledged
    faults.resume(FOLLOWER)
    began = monotonic()
    found = await_losses(served, topic)[0]["evidence"]
    told = monotonic() - began
    end, certain, possible = (found[name] for name in ("epoch_end", "certain_to", "possible_to"))
    known = max(certain or end, possible or end)
    logger.info(
        "%s: killed %.1f s after the shrink; %d acknowledged records gone, %s certain, up to %d "
        "possible, unknown since %s; told after %.1f s",
        *(topic, seconds, truth - end, (certain or end) - end, known - end),
        *(found["unknown_since"], told),
    )
    assert truth > end, "nothing was lost: the test injected in vain"
    assert (certain or end) <= truth, "certain is only what is gone"
    assert datetime.fromisoformat(found["unknown_since"]) <= injected, (
        "an observation after it was dead"
    )
    faults.start(LEADER)
    in_sync = [LEADER, FOLLOWER]
    assert wait_until(
        lambda: sorted(placed(served, topic).get("isr") or ()) == in_sync, timeout_seconds=180
    )
    admin.delete_topic(topic)


def test_a_loss_while_tidemark_is_dead_is_found_when_it_is_back(
    faults: Sandbox, folder: Path
) -> None:
    with prepare_loss("committed-loss", faults) as prepared:
        start = start_of(faults, folder, prepared.topic)
        first = Served(start, folder / "first.log").wait_ready()
        first.wait_rounds(2)
        first.kill()
        truth = prepared.inject()
        [one] = truth.partitions
        second = Served(start, folder / "second.log").wait_ready()
        try:
            found = await_losses(second, truth.topic)[0]
            assert found["rule"] == "committed_records_lost"
            evidence = found["evidence"]
            certain = (evidence["certain_from"], evidence["certain_to"])
            assert certain == (one.lost_from, one.committed_to)
        finally:
            second.stop()
