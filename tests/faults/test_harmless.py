"""The fault matrix, what is harmless: every class and number right, and nobody is woken up.

Real brokers, real clients, and a service that reads the logs. Nothing here kills a broker.
"""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.broker_log import SequenceForm
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import Client, SequenceName, SequenceTruth
from tests.faults.matrix import PATIENCE_SECONDS, Matrix, assert_reported, inject, injected
from tests.kafka_release import PRODUCER_EXPIRATION, TRANSACTIONS_V2, VERIFICATION

ROUNDS = 2  # the one that reads the line, and the one that answers what it asks

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]

REORDERINGS = [
    pytest.param({"records": 3, "batch": 3}, id="the smallest"),
    pytest.param({}, id="with the gap of the textbook loss", marks=pytest.mark.variation),
    pytest.param({"client": Client.LIBRDKAFKA}, id="librdkafka raises its epoch"),
    pytest.param({"client": Client.JAVA}, id="Java keeps its epoch"),
    pytest.param({"client": Client.LIBRDKAFKA, "transactional": True}, id="librdkafka aborts"),
    pytest.param({"client": Client.JAVA, "transactional": True}, id="Java in a transaction"),
    pytest.param(
        {"form": SequenceForm.EXPECTED_ZERO},
        id="at the start of a transaction",
        marks=TRANSACTIONS_V2,
    ),
    pytest.param({"form": SequenceForm.NEW_EPOCH}, id="at the start of an epoch"),
    pytest.param({"form": SequenceForm.EARLIEST_SEEN}, id="earliest seen", marks=VERIFICATION),
]


@pytest.mark.parametrize("options", REORDERINGS)
def test_a_reordering_is_harmless(
    cluster: Sandbox, matrix: Matrix, options: dict[str, Any]
) -> None:
    with injected(matrix, cluster, "sequence-reordering", options) as truth:
        rounds = matrix.count_rounds_until_reported(truth.topic, "sequence_gap_reordering")
        assert rounds <= ROUNDS, matrix.episodes(truth.topic)
        [episode] = truth.episodes
        # A deleted topic tells nothing more; a client that gave up may begin anew after the first observations.
        assert_arrived(matrix, truth.topic, "arrived" if episode.is_healed else "newer_epoch")


def assert_arrived(matrix: Matrix, topic: str, arrival: str) -> None:
    """Assert that it is said whether the rejected batch came."""

    def is_said() -> bool:
        return [event["evidence"]["arrival"] for event in matrix.episodes(topic)] == [arrival]

    is_in_time = wait_until(is_said, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.3)
    assert is_in_time, matrix.episodes(topic)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("sequence-duplicate", {}, id="a duplicate that is remembered"),
        pytest.param("sequence-stale-retry", {}, id="a retry that is forgotten"),
        pytest.param("sequence-stale-retry", {"other_borders": True}, id="other batch borders"),
        pytest.param("sequence-stale-retry", {"resend": True}, id="sent again in a new epoch"),
        pytest.param("sequence-restart", {}, id="new epochs that begin above zero"),
        pytest.param(
            "sequence-state-expired",
            {},
            id="a producer that is forgotten",
            marks=PRODUCER_EXPIRATION,
        ),
    ],
)
def test_a_repetition_or_a_mistake_of_a_client_loses_nothing(
    cluster: Sandbox, matrix: Matrix, name: SequenceName, options: dict[str, Any]
) -> None:
    inject(matrix, cluster, name, options)


@TRANSACTIONS_V2
def test_a_forgotten_producer_is_reported_when_it_cannot_heal_any_more(
    matrix: Matrix, forgotten: SequenceTruth | None
) -> None:
    assert forgotten is not None
    assert_reported(matrix, forgotten, PATIENCE_SECONDS)
