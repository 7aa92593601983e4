"""Faults of sequences: the truth they print is what brokers wrote and what readers find.

It is looked at by others than those who made the fault: the literal lines of the brokers' logs, a
client library that reads the topic, and what leaders remember of the producers.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from rules.facts.broker_log import SequenceForm
from rules.facts.identity import TopicPartition as Place
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster import Sandbox
from service.sandbox.faults import (
    Client,
    SequenceEpisode,
    SequenceName,
    SequenceTruth,
    make_fault,
    prepare_sequence,
)
from service.sandbox.workloads.raw_cluster import ProducerOn, RawCluster

pytestmark = pytest.mark.integration

SOON = 60.0
KEPT = 10  # records that all replicas have before anything happens
EXCEPTION = "org.apache.kafka.common.errors.OutOfOrderSequenceException: "

Named = Callable[[str], str]


def values_on(cluster: Sandbox, topic: str) -> list[int]:
    """Return the records that can be read, committed or not, behind those of others."""
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": f"outside-{topic}",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    found: list[int] = []
    try:
        reader.assign([TopicPartition(topic, 0, KEPT)])
        while (message := reader.poll(SOON)) is not None and message.error() is None:
            found.append(int(message.value() or b""))
    finally:
        reader.close()
    return found


def lines_with(cluster: Sandbox, broker: int, text: str) -> int:
    """Count the physical lines of a broker's log that are exactly this."""
    files = cluster.log_directory(broker).glob("server.log*")
    return sum(file.read_text().splitlines().count(text) for file in files)


def on_leader(cluster: Sandbox, truth: SequenceTruth) -> list[ProducerOn]:
    """Ask the leader which producers it remembers."""
    with RawCluster(cluster) as brokers:
        return brokers.producers(Place(truth.topic, 0))


def only(truth: SequenceTruth) -> SequenceEpisode:
    [episode] = truth.episodes
    return episode


# ---------------------------------------------------------------------- nothing is lost
TEXTS = {
    SequenceForm.OUT_OF_ORDER: "Out of order sequence number for producer {id} at offset 13 in "
    "partition {topic}-0: 6 (incoming seq. number), 2 (current end sequence number)",
    SequenceForm.EARLIEST_SEEN: "Out of order sequence number for producer {id} at offset 10 in "
    "partition {topic}-0: 3 (incoming seq. number), 0 (earliest seen sequence)",
    SequenceForm.NEW_EPOCH: "Invalid sequence number for new epoch of producer {id}at offset 13 in "
    "partition {topic}-0: 1 (request epoch), 3 (seq. number), 0 (current producer epoch)",
    SequenceForm.EXPECTED_ZERO: "Invalid sequence number for producer {id} at offset 10 in "
    "partition {topic}-0: 3 (incoming seq. number). Expected sequence 0 for transactions v2 "
    "idempotent producer with no existing state.",
}


@pytest.mark.parametrize("form", SequenceForm)
def test_a_batch_that_comes_too_early_is_refused_once_and_taken_later(
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
        pytest.param(Client.LIBRDKAFKA, False, 1, id="librdkafka goes on in a new epoch"),
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
        assert not truth.told_application
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
        assert truth.told_application
        assert values_on(cluster, truth.topic)[-5:] == [*range(6, 11)]


def test_a_transaction_of_java_goes_on_after_a_reordering(cluster: Sandbox) -> None:
    with make_fault(
        "sequence-reordering", cluster, client=Client.JAVA, transactional=True
    ) as truth:
        told = only(truth)
        assert (told.is_healed, truth.told_application) == (True, False)
        assert told.producer_epoch == told.last_epoch


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
def test_any_other_repetition_is_refused_and_adds_nothing(
    cluster: Sandbox, options: dict[str, bool], end: int
) -> None:
    with make_fault("sequence-stale-retry", cluster, batch=2, **options) as truth:
        told = only(truth)
        assert (told.sequence_class, told.gap) == (SequenceClass.STALE_RETRY, None)
        assert (told.incoming_sequence, told.current_sequence) == (0, end)
        assert values_on(cluster, truth.topic) == [*range(end + 1)]


def test_a_refused_repetition_that_is_sent_in_a_new_epoch_is_there_twice(
    cluster: Sandbox,
) -> None:
    with make_fault("sequence-stale-retry", cluster, batch=2, resend=True) as truth:
        assert values_on(cluster, truth.topic) == [*range(12), 0, 1]
        assert only(truth).last_epoch == 1


def test_a_client_that_begins_its_epochs_above_zero_is_refused_for_ever(cluster: Sandbox) -> None:
    with make_fault("sequence-restart", cluster, batch=2) as truth:
        told = only(truth)
        assert (told.sequence_class, told.lines) == (SequenceClass.SEQUENCE_RESTART, 6)
        assert (told.producer_epoch, told.last_epoch) == (1, 0)
        assert values_on(cluster, truth.topic) == [0, 1]


def test_a_leader_that_has_forgotten_a_producer_takes_any_sequence(cluster: Sandbox) -> None:
    with make_fault("sequence-state-expired", cluster, batch=2) as truth:
        assert (truth.episodes, truth.rule) == ((), None)
        assert values_on(cluster, truth.topic) == [0, 1, 12345, 12346]


def test_with_transactions_v2_a_forgotten_producer_is_refused(cluster: Sandbox) -> None:
    form = SequenceForm.EXPECTED_ZERO
    with make_fault("sequence-state-expired", cluster, batch=2, form=form) as truth:
        told = only(truth)
        assert told.sequence_class is SequenceClass.PRODUCER_STATE_LOST
        assert (told.form, told.lines, told.is_healed) == (form, 3, False)
        assert on_leader(cluster, truth) == []
        assert values_on(cluster, truth.topic) == [0, 1]


# ---------------------------------------------------------------------- records are lost
def test_the_textbook_loss_by_its_command(faults: Sandbox, new_name: Named) -> None:
    topic = new_name("textbook")
    words = ("--dir", str(faults.directory), "--topic", topic, "-o", "json")
    command = [sys.executable, "-m", "service", "sandbox", "fault", "sequence-loss", *words]
    truth = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    [told] = truth["episodes"]
    assert (told["sequence_class"], truth["rule"]) == ("loss", "sequence_gap_loss")
    assert (told["incoming_sequence"], told["current_sequence"], told["gap"]) == (27, 2, 24)
    assert (truth["lost_offsets"], truth["was_unclean"]) == (24, True)
    assert (truth["partitions"][0]["lost_from"], truth["partitions"][0]["lost_to"]) == (13, 37)
    text = (
        f"Out of order sequence number for producer {told['producer_id']} at offset 13 in "
        f"partition {topic}-0: 27 (incoming seq. number), 2 (current end sequence number)"
    )
    assert lines_with(faults, told["broker_id"], EXCEPTION + text) == told["lines"] == 3
    assert values_on(faults, topic) == [0, 1, 2]
    [start] = truth["undo"]
    subprocess.run([sys.executable, "-m", "service", *shlex.split(start)[1:]], check=True)


def test_java_loses_24_acknowledged_records_and_tells_nobody(faults: Sandbox) -> None:
    with prepare_sequence("sequence-loss", faults, client=Client.JAVA) as prepared:
        assert values_on(faults, prepared.topic) == [*range(27)]
        truth = prepared.strike()
        told = only(truth)
        assert (told.incoming_sequence, told.current_sequence, told.lines) == (27, 2, 1)
        assert (told.gap, [one.lost_offsets for one in truth.lost]) == (24, [24])
        assert not truth.told_application
        assert values_on(faults, truth.topic) == [0, 1, 2, 27, 28, 29, 30, 31]


def test_a_batch_that_was_given_up_comes_late_and_is_no_gap(faults: Sandbox) -> None:
    with make_fault("sequence-delivery-timeout", faults, client=Client.JAVA) as truth:
        assert (truth.episodes, truth.rule, truth.lost) == ((), None, ())
        assert truth.old_epoch_lines >= 1
        assert truth.told_application
        kept = values_on(faults, truth.topic)
        assert len(kept) == 16  # the first batch, and the one that the client went on with
        [remembered] = on_leader(faults, truth)
        assert remembered.producer_epoch == 1


def test_two_producers_are_told_apart(faults: Sandbox) -> None:
    name: SequenceName = "sequence-two-producers"
    with make_fault(name, faults, batch=2) as truth:
        lost, reordered = truth.episodes
        assert (lost.sequence_class, lost.gap) == (SequenceClass.LOSS, 24)
        assert (reordered.sequence_class, reordered.gap) == (SequenceClass.REORDERING, 2)
        assert lost.producer_id != reordered.producer_id
        assert (lost.broker_id, lost.offset) == (reordered.broker_id, reordered.offset)
        assert values_on(faults, truth.topic) == [0, 1, 2, *range(8)]
