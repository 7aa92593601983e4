"""A fault that is made by its command, and the truth that the command prints."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

from rules.facts.broker_log import SequenceForm
from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import Client, LossTruth, SequenceEpisode, SequenceTruth
from service.sandbox.faults.loss_truth import PartitionState, PartitionTruth
from tests.faults.matrix import Matrix
from tests.integration.serve.served import Document


def inject_by_command(matrix: Matrix, sandbox: Sandbox, topic: str, *options: str) -> SequenceTruth:
    """Lose records of a topic that the service comes to know meanwhile; a broker is down then."""
    words = ("--dir", str(sandbox.directory), "--topic", topic, "-o", "json", *options)
    command = [sys.executable, "-m", "service", "sandbox", "fault", "sequence-loss", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        matrix.await_watched(topic)
        assert process.poll() is None, "the service has seen the topic too late to see it change"
        output, _ = process.communicate()
    assert process.returncode == 0
    return truth_of(json.loads(output))


def undo_by_command(truth: SequenceTruth) -> None:
    """Start the broker that is down as the printed truth says."""
    [start] = truth.undo
    subprocess.run([sys.executable, "-m", "service", *shlex.split(start)[1:]], check=True)


def truth_of(printed: Document) -> SequenceTruth:
    """Return the truth of one topic that lost something; nothing printed is left out."""
    same: dict[str, Any] = {
        name: printed[name] for name in ("fault", "topic", "topic_id", "rule", "ends")
    } | {name: tuple(printed[name]) for name in ("also", "silent", "undo")}
    truth = SequenceTruth(
        **same,
        episodes=tuple(_episode(episode) for episode in printed["episodes"]),
        old_epoch_lines=printed["old_epoch_lines"],
        application_notified=printed["application_notified"],
        loss=LossTruth(
            **same,
            new_topic_id=printed["topic_id"],
            was_unclean=printed["was_unclean"],
            partitions=tuple(_partition(partition) for partition in printed["partitions"]),
        ),
    )
    assert json.loads(json.dumps(truth.document())) == printed
    return truth


def _episode(printed: Document) -> SequenceEpisode:
    named = {"sequence_class": SequenceClass, "client": Client, "form": SequenceForm}
    return SequenceEpisode(**printed | {name: kind(printed[name]) for name, kind in named.items()})


def _partition(printed: Document) -> PartitionTruth:
    return PartitionTruth(
        partition=printed["partition"],
        before=_state(printed["before"]),
        after=_state(printed["after"]),
        epoch_end=printed["epoch_end"],
        lost_from=printed["lost_from"],
        lost_to=printed["lost_to"],
    )


def _state(printed: dict[str, Any]) -> PartitionState:
    return PartitionState(**{**printed, "isr": tuple(printed["isr"])})
