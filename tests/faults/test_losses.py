"""The fault matrix, what is lost or looks like it: brokers die, and clients go on.

Every class and number has to be right, and confirmed only with proof.
"""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.broker_log import SequenceForm
from rules.facts.identity import TopicPartition
from service.sandbox.cluster import Sandbox
from service.sandbox.faults import Client, prepare_sequence
from service.sandbox.workloads.sequenced_producer import SequencedProducer
from tests.faults.matrix import Matrix, assert_told, strike

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


def test_the_textbook_loss_says_24(faults: Sandbox, matrix: Matrix) -> None:
    truth = strike(matrix, faults, "sequence-loss", {})
    [told] = truth.episodes
    assert (told.incoming_sequence, told.current_sequence, told.gap) == (27, 2, 24)
    [event] = matrix.episodes(truth.topic)
    assert (event["lost_from"], event["lost_to"], event["lost_offsets"]) == (13, 37, 24)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"client": Client.JAVA}, id="Java"),
        pytest.param({"client": Client.JAVA, "transactional": True}, id="Java in a transaction"),
        pytest.param({"client": Client.LIBRDKAFKA}, id="librdkafka"),
        pytest.param(
            {"client": Client.LIBRDKAFKA, "transactional": True}, id="librdkafka in a transaction"
        ),
        pytest.param({"form": SequenceForm.NEW_EPOCH}, id="the start of an epoch"),
        pytest.param({"form": SequenceForm.EXPECTED_ZERO}, id="the start of a transaction"),
        pytest.param({"old_leader_returns": True}, id="and the old leader truncates"),
    ],
)
def test_a_loss_is_told_to_the_record(
    faults: Sandbox, matrix: Matrix, options: dict[str, Any]
) -> None:
    strike(matrix, faults, "sequence-loss", options)


def test_a_loss_is_refuted_when_its_client_sends_after_all(faults: Sandbox, matrix: Matrix) -> None:
    with prepare_sequence("sequence-loss", faults) as prepared:
        matrix.await_watched(prepared.topic)
        truth = prepared.strike()
        assert_told(matrix, truth)
        [told] = truth.episodes
        producer = SequencedProducer(
            cluster=prepared.stage.cluster,
            producer_id=told.producer_id,
            producer_epoch=told.producer_epoch,
        )
        producer.send(TopicPartition(truth.topic, 0), 3, 24)  # what it had been told to be safe
        matrix.await_breach(truth.topic, "sequence_gap_reordering")
        [finding] = matrix.breaches(truth.topic)["sequence_gap_loss"]
        assert (finding["reason"], finding["severity"]) == ("refuted", "info")
        [finding] = matrix.breaches(truth.topic)["committed_records_lost"]
        assert finding["severity"] == "critical", "the partition has lost them once"


def test_a_loss_and_a_reordering_at_once_are_told_apart(faults: Sandbox, matrix: Matrix) -> None:
    strike(matrix, faults, "sequence-two-producers", {})


@pytest.mark.parametrize("client", Client)
def test_a_batch_that_is_given_up_during_a_clean_failover_is_no_gap(
    faults: Sandbox, matrix: Matrix, client: Client
) -> None:
    strike(matrix, faults, "sequence-delivery-timeout", {"client": client})
