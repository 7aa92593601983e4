"""SIGTERM and Ctrl-C: the round that runs is finished and stored, and nothing is left behind."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import datetime

import pytest
from sqlalchemy import text

from service.rounds.persistence import NUMBERS
from service.runtime.clock import monotonic
from service.sandbox.cluster.cluster import Sandbox
from service.storage.database.engine import open_database
from service.storage.rounds import clusters
from tests.integration.serve.conftest import Serve
from tests.integration.serve.served import Document, Served, processes_of

pytestmark = pytest.mark.integration

LAST_SECONDS = 2.0  # what closing may take beyond the drain limit
BETWEEN_SECONDS = 3  # from round to round: long enough for pausing three brokers
MARGIN_SECONDS = 15.0  # a busy machine; a round that is waited for takes longer


@pytest.fixture
def slow_cluster(faults: Sandbox) -> Iterator[Sandbox]:
    """Let all brokers stand still from the time at which a test calls `pause`, until its end."""
    yield faults
    for broker in (1, 2, 3):
        faults.resume(broker)


def in_slow_round(serve: Serve, cluster: Sandbox, **settings: str) -> Served:
    """Start a service whose round takes three times as long as a broker may take.

    The brokers stand still between two rounds: one that has read them already would be stored as it is.
    """
    served = serve(settings=settings, interval=BETWEEN_SECONDS).wait_ready()
    served.wait_rounds(1)
    for broker in (1, 2, 3):
        cluster.pause(broker)
    served.wait_in_round()
    return served


def seconds_to_end(served: Served) -> float:
    began = monotonic()
    assert served.wait_end() == 0, served.reported()
    return monotonic() - began


def stored_round(served: Served) -> tuple[int, datetime]:
    """Return number and time of the round that was stored last."""
    database = open_database(None, served.start.directory)
    try:
        checkpoint = clusters.load_checkpoint(database.engine, 1)
        with database.engine.connect() as link:
            number = link.execute(text("SELECT last_round FROM cluster")).scalar_one()
            at = link.execute(text("SELECT taken_at FROM checkpoint")).scalar_one()
    finally:
        database.close()
    assert checkpoint is not None
    assert checkpoint.memory is not None
    assert number % NUMBERS == 0, "it was stored to its end"
    return number // NUMBERS, at


def ended(event: Document) -> datetime:
    return datetime.fromisoformat(event["time"])


def check_end(served: Served) -> Document:
    """Check what every orderly end leaves; return the last round."""
    names = [event["event"] for event in served.events()]
    assert names[-1] == "service_stopped"
    assert names.count("service_stopping") == 1
    assert not served.errors.read_text("utf-8")
    assert not processes_of(served.start.directory)
    return served.rounds()[-1]


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.variation)]
)
def test_the_round_under_way_is_finished_and_stored(
    serve: Serve, slow_cluster: Sandbox, number: signal.Signals
) -> None:
    served = in_slow_round(serve, slow_cluster, KAFKA__REQUEST_TIMEOUT_SECONDS="1.5")
    before = len(served.rounds())
    served.signal(number)
    served.wait_event("service_stopping")
    assert served.get("/livez").status_code == 200, "it answers to the last"
    assert served.wait_end() == 0, served.reported()
    last = check_end(served)
    assert (last["number"], last["outcome"]) == (before + 1, "failed")
    stopping = [event["event"] for event in served.events()].index("service_stopping")
    assert last in served.events()[stopping:]
    stored, at = stored_round(served)
    assert stored == last["number"]
    assert ended(served.rounds()[-2]) < at < ended(last)


def test_a_service_between_two_rounds_ends_at_once(serve: Serve) -> None:
    served = serve(interval=60).wait_ready()
    served.signal(signal.SIGTERM)
    assert seconds_to_end(served) < LAST_SECONDS + MARGIN_SECONDS
    assert check_end(served)["number"] == 1


def test_a_second_signal_leaves_the_round_undone(serve: Serve, slow_cluster: Sandbox) -> None:
    served = in_slow_round(serve, slow_cluster, KAFKA__REQUEST_TIMEOUT_SECONDS="9")
    before = len(served.rounds())
    served.signal(signal.SIGTERM)
    served.wait_event("service_stopping")
    served.signal(signal.SIGINT)
    assert seconds_to_end(served) < LAST_SECONDS + MARGIN_SECONDS
    assert check_end(served)["number"] == before
    assert [event["hurried"] for event in served.events("drain_limit_passed")] == [True]


def test_the_drain_limit_is_kept(serve: Serve, slow_cluster: Sandbox) -> None:
    served = in_slow_round(
        serve, slow_cluster, KAFKA__REQUEST_TIMEOUT_SECONDS="9", SERVICE__DRAIN_SECONDS="1"
    )
    before = len(served.rounds())
    served.signal(signal.SIGTERM)
    took = seconds_to_end(served)
    assert 1 <= took < 1 + LAST_SECONDS + MARGIN_SECONDS
    assert check_end(served)["number"] == before
    assert [event["hurried"] for event in served.events("drain_limit_passed")] == [False]


def test_a_signal_ends_a_start(serve: Serve) -> None:
    served = serve(makes_files=True)
    served.wait_event("service_starting")
    served.signal(signal.SIGTERM)
    assert served.wait_end() == 0, served.reported()
    names = [event["event"] for event in served.events()]
    assert names[-1] == "service_stopped"
    assert not processes_of(served.start.directory)
