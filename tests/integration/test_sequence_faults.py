"""Faults of sequences: the truth they print is what brokers wrote and what readers find.

It is observed by others than those who made the fault: the literal lines of the brokers' logs, a
client library that reads the topic, and what leaders remember of the producers. Nothing is lost here:
at the losses that tests/faults strikes anyway it is observed so too, and at one made by its command.
"""

from __future__ import annotations

import pytest

from rules.facts.broker_log import SequenceForm
from rules.facts.episode_transactions import TransactionOutcome
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import Client, make_fault
from tests.integration.outside import EXCEPTION, lines_with, on_leader, only, values_on
from tests.kafka_release import (
    PRODUCER_EXPIRATION,
    TRANSACTIONS_V2,
    VERIFICATION,
    VERSION,
    numbers,
)

# tests/faults makes each of these faults too, and holds what is reported against its truth.
pytestmark = [pytest.mark.integration, pytest.mark.variation]

SPACE = "" if (3, 5) <= numbers(VERSION)[:2] <= (4, 3) else " "  # which Kafka forgot for a while
TEXTS = {
    SequenceForm.OUT_OF_ORDER: "Out of order sequence number for producer {id} at offset 13 in "
    "partition {topic}-0: 6 (incoming seq. number), 2 (current end sequence number)",
    SequenceForm.EARLIEST_SEEN: "Out of order sequence number for producer {id} at offset 10 in "
    "partition {topic}-0: 3 (incoming seq. number), 0 (earliest seen sequence)",
    SequenceForm.NEW_EPOCH: f"Invalid sequence number for new epoch of producer {{id}}{SPACE}at offset 13 in "
    "partition {topic}-0: 1 (request epoch), 3 (seq. number), 0 (current producer epoch)",
    SequenceForm.EXPECTED_ZERO: "Invalid sequence number for producer {id} at offset 10 in "
    "partition {topic}-0: 3 (incoming seq. number). Expected sequence 0 for transactions v2 "
    "idempotent producer with no existing state.",
}


@pytest.mark.parametrize(
    "form",
    [
        SequenceForm.OUT_OF_ORDER,
        SequenceForm.NEW_EPOCH,
        pytest.param(SequenceForm.EARLIEST_SEEN, marks=VERIFICATION),
        pytest.param(SequenceForm.EXPECTED_ZERO, marks=TRANSACTIONS_V2),
    ],
)
def test_a_batch_that_comes_too_early_is_rejected_once_and_taken_later(
    cluster: Sandbox, form: SequenceForm
) -> None:
    with make_fault("sequence-reordering", cluster, form=form, records=3, batch=3) as truth:
        told = only(truth)
        assert (told.sequence_class, told.form) == (SequenceClass.REORDERING, form)
        assert (told.gap, told.lines, told.is_healed) == (3, 1, True)
        text = TEXTS[form].format(id=told.producer_id, topic=truth.topic)
        assert lines_with(cluster, told.broker_id, EXCEPTION + text) == 1
        before = {SequenceForm.OUT_OF_ORDER: [0, 1, 2], SequenceForm.NEW_EPOCH: [0, 1, 2]}
        after = [3, 4, 5, 6, 7, 8] if form is SequenceForm.OUT_OF_ORDER else [0, 1, 2, 3, 4, 5]
        assert values_on(cluster, truth.topic) == [*before.get(form, []), *after]
        assert (truth.loss, truth.undo) == (None, ())


@pytest.mark.parametrize(
    ("client", "is_healed", "epoch"),
    [
        pytest.param(
            Client.LIBRDKAFKA,
            False,
            1,
            id="librdkafka goes on in a new epoch",
            marks=pytest.mark.smoke,
        ),
        pytest.param(Client.JAVA, True, 0, id="Java goes on in the same epoch"),
    ],
)
def test_a_client_library_heals_a_reordering_and_tells_nobody(
    cluster: Sandbox, *, client: Client, is_healed: bool, epoch: int
) -> None:
    with make_fault("sequence-reordering", cluster, client=client, records=5, batch=1) as truth:
        told = only(truth)
        assert (told.sequence_class, told.client) == (SequenceClass.REORDERING, client)
        assert (told.incoming_sequence, told.current_sequence, told.gap) == (2, 0, 1)
        assert (told.is_healed, told.last_epoch, told.appended_epoch) == (is_healed, epoch, 0)
        assert not truth.application_notified
        assert values_on(cluster, truth.topic) == [*range(6)]
        [remembered] = on_leader(cluster, truth)
        assert (remembered.producer_id, remembered.producer_epoch) == (told.producer_id, epoch)


def test_a_transaction_of_librdkafka_is_done_again_after_a_reordering(cluster: Sandbox) -> None:
    with make_fault(
        "sequence-reordering",
        cluster,
        client=Client.LIBRDKAFKA,
        transactional=True,
        records=5,
        batch=1,
    ) as truth:
        told = only(truth)
        assert (told.current_sequence, told.is_healed, told.last_epoch) == (0, False, 1)
        assert truth.application_notified
        assert values_on(cluster, truth.topic)[-5:] == [*range(6, 11)]


def test_a_transaction_of_java_goes_on_after_a_reordering(cluster: Sandbox) -> None:
    with make_fault(
        "sequence-reordering", cluster, client=Client.JAVA, transactional=True
    ) as truth:
        told = only(truth)
        assert (told.is_healed, truth.application_notified) == (True, False)
        assert told.producer_epoch == told.last_epoch


@pytest.mark.parametrize(
    ("outcome", "written", "visible"),
    [
        pytest.param(TransactionOutcome.COMMITTED, 9, 9, id="committed: all of it"),
        pytest.param(TransactionOutcome.ABORTED, 3, 0, id="aborted: nothing"),
        pytest.param(TransactionOutcome.FENCED, 3, 0, id="fenced: nothing"),
        pytest.param(TransactionOutcome.OPEN, 3, 0, id="open: nothing yet"),
    ],
)
def test_what_a_committed_reader_gets_of_the_transaction(
    cluster: Sandbox, outcome: TransactionOutcome, written: int, visible: int
) -> None:
    with make_fault(
        "sequence-in-transaction", cluster, outcome=outcome, records=3, batch=3
    ) as truth:
        assert truth.transaction is not None
        assert (truth.transaction.marker_offset is None) == (outcome is TransactionOutcome.OPEN)
        assert values_on(cluster, truth.topic) == [*range(written)]
        assert values_on(cluster, truth.topic, "read_committed") == [*range(visible)]


def test_one_of_the_last_five_batches_may_come_again_without_a_word(cluster: Sandbox) -> None:
    with make_fault("sequence-duplicate", cluster, batch=2) as truth:
        assert (truth.episodes, truth.rule) == ((), None)
        assert values_on(cluster, truth.topic) == [*range(10)]


@pytest.mark.parametrize(
    ("options", "end"),
    [
        pytest.param({}, 11, id="the sixth-last batch"),
        pytest.param({"other_borders": True}, 3, id="two batches as one"),
    ],
)
def test_any_other_repetition_is_rejected_and_adds_nothing(
    cluster: Sandbox, options: dict[str, bool], end: int
) -> None:
    with make_fault("sequence-stale-retry", cluster, batch=2, **options) as truth:
        told = only(truth)
        assert (told.sequence_class, told.gap) == (SequenceClass.STALE_RETRY, None)
        assert (told.incoming_sequence, told.current_sequence) == (0, end)
        assert values_on(cluster, truth.topic) == [*range(end + 1)]


def test_a_rejected_repetition_that_is_sent_in_a_new_epoch_is_there_twice(
    cluster: Sandbox,
) -> None:
    with make_fault("sequence-stale-retry", cluster, batch=2, resend=True) as truth:
        assert values_on(cluster, truth.topic) == [*range(12), 0, 1]
        assert only(truth).last_epoch == 1


def test_a_client_that_begins_its_epochs_above_zero_is_rejected_for_ever(cluster: Sandbox) -> None:
    with make_fault("sequence-restart", cluster, batch=2) as truth:
        told = only(truth)
        assert (told.sequence_class, told.lines) == (SequenceClass.SEQUENCE_RESTART, 6)
        assert (told.producer_epoch, told.last_epoch) == (1, 0)
        assert values_on(cluster, truth.topic) == [0, 1]


@PRODUCER_EXPIRATION
def test_a_leader_that_has_forgotten_a_producer_takes_any_sequence(cluster: Sandbox) -> None:
    with make_fault("sequence-state-expired", cluster, batch=2) as truth:
        assert (truth.episodes, truth.rule) == ((), None)
        assert values_on(cluster, truth.topic) == [0, 1, 12345, 12346]


@TRANSACTIONS_V2
def test_with_transactions_v2_a_forgotten_producer_is_rejected(cluster: Sandbox) -> None:
    form = SequenceForm.EXPECTED_ZERO
    with make_fault("sequence-state-expired", cluster, batch=2, form=form) as truth:
        told = only(truth)
        assert told.sequence_class is SequenceClass.PRODUCER_STATE_LOST
        assert (told.form, told.lines, told.is_healed) == (form, 3, False)
        assert on_leader(cluster, truth) == []
        assert values_on(cluster, truth.topic) == [0, 1]
