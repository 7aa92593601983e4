"""Probes depend on what makes answers meaningful, never on Kafka or a database that goes away."""

from __future__ import annotations

import pytest

from service.metrics.totals import SelfMetrics
from service.rounds.latest import Latest, RoundOutcome, ServiceState
from service.rounds.persistence import PersistenceState, PersistenceStatus
from tests.factories import snapshot
from tests.unit.service.api.given import World, no_service_state, service_state


def test_livez_is_ok_before_anything_was_seen() -> None:
    answer = World(latest=Latest(no_service_state())).client().get("/livez")
    assert (answer.status_code, answer.text) == (200, "ok")


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (no_service_state(), 503),
        (service_state(persistence=PersistenceStatus()), 503),
        (service_state(rounds=0), 503),
        (service_state(), 200),
        (service_state(outcome=RoundOutcome.FAILED, snapshot=None, error="no broker"), 200),
        (
            service_state(
                persistence=PersistenceStatus(state=PersistenceState.WAITING, error="away")
            ),
            200,
        ),
        (
            service_state(
                persistence=PersistenceStatus(state=PersistenceState.REJECTED, error="full")
            ),
            200,
        ),
    ],
)
def test_ready_after_the_first_round_with_what_was_remembered(
    seen: ServiceState, status: int
) -> None:
    assert World(latest=Latest(seen)).client().get("/readyz").status_code == status


def test_readyz_lists_its_checks() -> None:
    client = World().client()
    assert client.get("/readyz").text == "ok"
    assert client.get("/readyz?verbose").text.splitlines() == [
        "[+]first-round-made ok",
        "[+]memory ok",
        "readyz check passed",
    ]
    unready = World(latest=Latest(service_state(persistence=PersistenceStatus()))).client()
    assert unready.get("/readyz").text.splitlines() == [
        "[+]first-round-made ok",
        "[-]memory failed: the stored memory could not be read yet",
        "readyz check failed",
    ]


@pytest.mark.parametrize(
    ("interval_seconds", "silent_seconds", "status"),
    [(15.0, 300, 200), (15.0, 301, 503), (60.0, 600, 200), (60.0, 601, 503)],
)
def test_a_process_whose_rounds_hang_is_not_alive(
    interval_seconds: float, silent_seconds: float, status: int
) -> None:
    now = [0.0]
    latest = Latest(service_state(interval_seconds=interval_seconds), monotonic=lambda: now[0])
    client = World(latest=latest).client()
    now[0] = silent_seconds
    answer = client.get("/livez")
    assert answer.status_code == status
    assert (status == 200) or f"for {silent_seconds} s" in answer.text


def test_what_a_hanging_round_left_is_not_news() -> None:
    now = [0.0]
    world = World(latest=Latest(service_state(), monotonic=lambda: now[0]))
    world.exposition.update(snapshot(), SelfMetrics(version="0.1.0"))
    client = world.client()
    assert "tidemark_kafka_brokers" in client.get("/metrics").text
    assert client.get("/api/v1/partitions").json()["is_current"]
    now[0] = 1000.0
    page = client.get("/metrics").text
    assert "tidemark_kafka_" not in page
    assert "tidemark_build_info" in page
    assert not client.get("/api/v1/partitions").json()["is_current"]
    assert client.get("/api/v1/status").json()["round"]["error"] == "no round has ended for 1000 s"
