"""The fault matrix, the textbook loss: 24 records are gone, and three services have seen it happen.

One reads everything, one no logs, one no partition. Injected once, all tests observe it; the last one
changes what is true.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rules.facts.identity import TopicPartition
from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import Prepared, SequenceTruth, prepare_sequence
from service.sandbox.workloads.raw_producer import SequencedProducer
from tests.faults.matrix import Matrix, assert_reported
from tests.integration.outside import only
from tests.integration.serve.served import ROOT, end_processes, plain_environment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


@dataclass(frozen=True)
class Textbook:
    """The loss, as long as it is there, and the two that see one side alone."""

    prepared: Prepared[SequenceTruth]
    truth: SequenceTruth
    without_logs: Matrix
    without_offsets: Matrix


@pytest.fixture(scope="module")
def half_blind(cluster: Sandbox, short_folder: Path) -> Iterator[tuple[Matrix, Matrix]]:
    """Start a service that reads no logs, and one that sees no partition."""
    folders = [short_folder / "offsets", short_folder / "logs"]
    with ExitStack() as undo:
        for folder in folders:
            folder.mkdir()
            undo.callback(end_processes, folder / "data")
        with ThreadPoolExecutor() as threads:
            begun = (
                threads.submit(Matrix, cluster, folders[0], reads_logs=False),
                threads.submit(Matrix, cluster, folders[1], topics="nothing"),
            )
        matrices = (begun[0].result(), begun[1].result())
        for matrix in matrices:
            undo.callback(matrix.served.kill)
        yield matrices


@pytest.fixture(scope="module")
def textbook(
    cluster: Sandbox, matrix: Matrix, half_blind: tuple[Matrix, Matrix]
) -> Iterator[Textbook]:
    without_logs, without_offsets = half_blind
    with prepare_sequence("sequence-loss", cluster) as prepared:
        matrix.await_watched(prepared.topic)
        without_logs.await_watched(prepared.topic)
        without_offsets.served.wait_rounds(2)
        truth = prepared.inject()
        yield Textbook(prepared, truth, without_logs, without_offsets)


def explained(log: Path, topic: str) -> list[dict[str, Any]]:
    """Return what the command says of a topic by a broker's log alone, without any cluster."""
    command = [sys.executable, "-m", "service", "sequence", "explain", str(log), "-o", "json"]
    done = subprocess.run(
        command, cwd=ROOT, env=plain_environment(), capture_output=True, check=False, timeout=180
    )
    assert done.stdout, done.stderr
    return [event for event in json.loads(done.stdout) if event["topic"] == topic]


def test_the_textbook_loss_says_24(matrix: Matrix, textbook: Textbook) -> None:
    truth = textbook.truth
    assert_reported(matrix, truth)
    episode = only(truth)
    assert (episode.incoming_sequence, episode.current_sequence, episode.gap) == (27, 2, 24)
    [event] = matrix.episodes(truth.topic)
    assert (event["lost_from"], event["lost_to"], event["lost_offsets"]) == (13, 37, 24)


def test_offsets_alone_tell_the_loss_and_nothing_of_a_producer(textbook: Textbook) -> None:
    without_logs, topic = textbook.without_logs, textbook.truth.topic
    without_logs.await_breach(topic, "committed_records_lost")
    assert without_logs.episodes(topic) == []
    assert "sequence_gap_loss" not in without_logs.breaches(topic)


def test_logs_alone_suspect_the_loss_and_wake_nobody(textbook: Textbook) -> None:
    without_offsets, topic = textbook.without_offsets, textbook.truth.topic
    without_offsets.served.wait_rounds(3)
    [event] = without_offsets.episodes(topic)
    assert event["phase"] == Phase.SUSPECTED
    assert (event["incoming_sequence"], event["gap"]) == (27, 24)
    assert event["needed_evidence"] is not None
    pages = [
        finding
        for finding in without_offsets.served.findings()
        if finding["severity"] == "critical"
    ]
    assert [finding for finding in pages if finding["labels"].get("topic") == topic] == []


def test_a_log_file_alone_is_explained_as_a_suspected_loss(
    cluster: Sandbox, textbook: Textbook
) -> None:
    log = cluster.log_directory(only(textbook.truth).broker_id) / "server.log"
    [said] = explained(log, textbook.truth.topic)
    assert (said["class"], said["phase"]) == (SequenceClass.LOSS, Phase.SUSPECTED)
    assert (said["gap"], said["lost_offsets"]) == (24, None)


def test_the_loss_is_refuted_when_its_client_sends_after_all(
    matrix: Matrix, textbook: Textbook
) -> None:
    truth, episode = textbook.truth, only(textbook.truth)
    assert_reported(matrix, truth)
    producer = SequencedProducer(
        cluster=textbook.prepared.run.cluster,
        producer_id=episode.producer_id,
        producer_epoch=episode.producer_epoch,
    )
    producer.send(TopicPartition(truth.topic, 0), 3, 24)  # what it had been told to be safe
    matrix.await_breach(truth.topic, "sequence_gap_reordering")
    [finding] = matrix.breaches(truth.topic)["sequence_gap_loss"]
    assert (finding["reason"], finding["severity"]) == ("refuted", "info")
    [finding] = matrix.breaches(truth.topic)["committed_records_lost"]
    assert finding["severity"] == "critical", "the partition has lost them once"
