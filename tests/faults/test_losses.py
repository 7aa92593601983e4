"""The fault matrix, what is lost or resembles it: brokers die, and clients go on.

Every class and number has to be right, and confirmed only with proof. Others than those who made a
fault observe it too: the textbook's is in test_textbook.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rules.facts.broker_log import SequenceForm
from rules.facts.episode_transactions import TransactionOutcome
from rules.facts.sequence_verdicts import SequenceClass
from rules.sequence.transaction_words import AFTER_LOSS
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import Client, prepare_sequence
from tests.faults.matrix import Matrix, assert_reported, inject, injected
from tests.faults.without_logs import SuspicionMark
from tests.integration.former_leaders import assert_lost, former_leaders
from tests.integration.outside import on_leader, only, values_on
from tests.kafka_release import TRANSACTIONS_V2

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"client": Client.JAVA, "transactional": True}, id="Java in a transaction"),
        pytest.param({"client": Client.LIBRDKAFKA}, id="librdkafka", marks=pytest.mark.variation),
        pytest.param(
            {"client": Client.LIBRDKAFKA, "transactional": True}, id="librdkafka in a transaction"
        ),
        pytest.param({"form": SequenceForm.NEW_EPOCH}, id="the start of an epoch"),
        pytest.param(
            {"form": SequenceForm.EXPECTED_ZERO},
            id="the start of a transaction",
            marks=TRANSACTIONS_V2,
        ),
        pytest.param({"old_leader_returns": True}, id="and the old leader truncates"),
    ],
)
def test_a_loss_is_reported_to_the_record(
    faults: Sandbox, matrix: Matrix, options: dict[str, Any], tmp_path: Path
) -> None:
    """And `log diff` finds the records in the copy of the broker that was killed."""
    is_v2 = options.get("form") is SequenceForm.EXPECTED_ZERO
    is_in_transaction = is_v2 or options.get("transactional", False)
    with (
        former_leaders(faults, tmp_path) as copies,
        injected(matrix, faults, "sequence-loss", options) as truth,
    ):
        for event in matrix.episodes(truth.topic):
            assert event["transactional"] is is_in_transaction
            assert event["transaction"] != TransactionOutcome.COMMITTED
            assert (AFTER_LOSS in event["check"]) == is_in_transaction
        for partition in truth.lost:
            assert_lost(copies, truth.topic, partition, is_open=is_in_transaction)


def test_java_loses_24_acknowledged_records_and_reports_nothing(
    faults: Sandbox, matrix: Matrix
) -> None:
    with prepare_sequence("sequence-loss", faults, client=Client.JAVA) as prepared:
        matrix.await_watched(prepared.topic)
        assert values_on(faults, prepared.topic) == [*range(27)]
        mark = SuspicionMark.of(matrix.counting)
        truth = prepared.inject()
        assert_reported(matrix, truth)
        mark.assert_suspected(truth)
        mark.assert_producer_met_it(truth)
        episode = only(truth)
        assert (episode.incoming_sequence, episode.current_sequence, episode.lines) == (27, 2, 1)
        assert (episode.gap, [partition.lost_offsets for partition in truth.lost]) == (24, [24])
        assert not truth.application_notified
        assert values_on(faults, truth.topic) == [0, 1, 2, 27, 28, 29, 30, 31]


def test_a_loss_and_a_reordering_at_once_are_distinguished(
    faults: Sandbox, matrix: Matrix, tmp_path: Path
) -> None:
    with (
        former_leaders(faults, tmp_path) as copies,
        injected(matrix, faults, "sequence-two-producers", {"batch": 2}) as truth,
    ):
        lost, reordered = truth.episodes
        assert (lost.sequence_class, lost.gap) == (SequenceClass.LOSS, 24)
        assert (reordered.sequence_class, reordered.gap) == (SequenceClass.REORDERING, 2)
        assert lost.producer_id != reordered.producer_id
        assert (lost.broker_id, lost.offset) == (reordered.broker_id, reordered.offset)
        assert values_on(faults, truth.topic) == [0, 1, 2, *range(8)]
        [partition] = truth.lost
        assert_lost(copies, truth.topic, partition)


@pytest.mark.parametrize(
    "client", [pytest.param(Client.RAW, marks=pytest.mark.variation), Client.LIBRDKAFKA]
)
def test_a_batch_that_is_given_up_during_a_clean_failover_is_no_gap(
    faults: Sandbox, matrix: Matrix, client: Client
) -> None:
    inject(matrix, faults, "sequence-delivery-timeout", {"client": client})


def test_a_batch_that_java_gives_up_comes_late_and_is_no_gap(
    faults: Sandbox, matrix: Matrix
) -> None:
    with injected(matrix, faults, "sequence-delivery-timeout", {"client": Client.JAVA}) as truth:
        assert (truth.episodes, truth.rule, truth.lost) == ((), None, ())
        assert truth.old_epoch_lines >= 1
        assert truth.application_notified
        values = values_on(faults, truth.topic)
        assert len(values) == 16  # the first batch, and the one that the client went on with
        [remembered] = on_leader(faults, truth)
        assert remembered.producer_epoch == 1
