"""A healthy pipeline under brokers that restart one after the other, observed by metrics and without logs.

Nothing is suspected, and no leader is asked anything that a round without metrics does not ask.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from rules.verdict import Verdict
from service.runtime.clock import wait_until
from service.sandbox.cluster import processes
from service.sandbox.cluster.admin import SandboxAdmin
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.cluster.processes import Liveness
from tests.integration.conftest import MakeReader, assert_heals
from tests.integration.counting import CLOSE, metrics_settings
from tests.integration.scrape_watching import watching
from tests.integration.watching import Watch, told

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

BROKERS = (1, 2, 3)
SHUTDOWN_SECONDS = 120
SEQUENCES = ("sequence_gap_loss", "sequence_gap_reordering", "sequence_gap_undetermined")
LOSSES = ("committed_records_lost", "records_possibly_lost", "unclean_leader_election")


@contextmanager
def producing(servers: str, topic: str) -> Iterator[list[str]]:
    """Write records idempotently until the block ends; give the errors that the application was told."""
    errors: list[str] = []
    stopping = threading.Event()
    producer = Producer({
        "bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5, "log_level": 2,
    })  # fmt: skip

    def note(error: object, _: object) -> None:
        if error is not None:
            errors.append(str(error))

    def run() -> None:
        while not stopping.wait(0.005):
            producer.produce(topic, b"record", on_delivery=note)
            producer.poll(0)
        producer.flush(60)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        stopping.set()
        thread.join()


def test_a_rolling_restart_suspects_nothing_and_asks_nothing_more(
    faults: Sandbox, make_reader: MakeReader, admin: SandboxAdmin
) -> None:
    topic, heals = "healthy-pipeline", make_reader()
    admin.create_topic(topic, partitions=6, replication=3)
    with (
        watching(**metrics_settings(faults), timeout_seconds=10.0) as scrapes,
        producing(faults.bootstrap_servers, topic) as errors,
    ):
        counting = Watch(make_reader(), scrapes=scrapes.scrapes, reads_transactions=False)
        plain = Watch(make_reader(), reads_transactions=False)
        for watch in (counting, plain):
            watch.round()
            watch.round()
        assert wait_until(lambda: len(scrapes.scrapes().request_errors) > 0, timeout_seconds=60)
        for broker in BROKERS:
            shut_down(faults, broker)
            for watch in (counting, plain):
                watch.round()
            faults.start(broker)
            for watch in (counting, plain):
                watch.round()
            assert_heals(heals)
        for watch in (counting, plain):
            watch.round()
            watch.round()
    assert errors == []
    assert_quiet(counting)
    assert apis(counting) == apis(plain)
    memory = counting.rounds[-1].view.memory.suspicions if counting.rounds[-1].view else None
    assert memory is not None
    assert memory.addresses, "the brokers' counters were read"


def shut_down(faults: Sandbox, broker: int) -> None:
    """Stop a broker in order: it hands its partitions over."""
    process = faults.state.node(broker).process
    assert process is not None
    processes.terminate(process)
    assert wait_until(
        lambda: processes.liveness(process) is Liveness.DEAD, timeout_seconds=SHUTDOWN_SECONDS
    ), f"broker {broker} did not shut down"


def apis(watch: Watch) -> set[str]:
    """Return the APIs that rounds used."""
    return {
        name
        for made in watch.rounds
        for name in (made.snapshot.report.requests if made.snapshot else ())
    }


def assert_quiet(watch: Watch) -> None:
    """Assert that nothing was suspected, asked or reported of sequences, and nobody woken up."""
    assert not apis(watch) & set(CLOSE), told(watch.rounds)
    for made in watch.rounds:
        assert made.view is not None
        assert made.view.memory.suspicions.suspicions == (), told(watch.rounds)
        for judgement in made.judged.judgements:
            if judgement.rule.rule_id in SEQUENCES:
                found = list(judgement.findings(Verdict.BREACH, Verdict.UNKNOWN))
                assert found == [], told(watch.rounds)
            if judgement.rule.rule_id in LOSSES:
                assert list(judgement.findings(Verdict.BREACH)) == [], told(watch.rounds)
