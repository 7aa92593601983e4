"""The fault matrix with one side alone, over a restart, and of what nobody has looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.sandbox.cluster import Sandbox
from service.sandbox.faults import SequenceTruth, prepare_sequence
from tests.faults.matrix import PATIENCE_SECONDS, Matrix, assert_told
from tests.integration.serve.served import ROOT, end_processes, plain_environment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


def explained(log: Path, topic: str) -> list[dict[str, Any]]:
    """Return what the command says of a topic by a broker's log alone, without any cluster."""
    command = [sys.executable, "-m", "service", "sequence", "explain", str(log), "-o", "json"]
    done = subprocess.run(
        command, cwd=ROOT, env=plain_environment(), capture_output=True, check=False, timeout=60
    )
    assert done.stdout, done.stderr
    return [one for one in json.loads(done.stdout) if one["topic"] == topic]


@pytest.fixture
def half_blind(cluster: Sandbox, short_folder: Path) -> Iterator[tuple[Matrix, Matrix]]:
    """Start a service that reads no logs, and one that sees no partition."""
    folders = [short_folder / "offsets", short_folder / "logs"]
    with ExitStack() as undo:
        for folder in folders:
            folder.mkdir()
            undo.callback(end_processes, folder / "data")
        made = (
            Matrix(cluster, folders[0], reads_logs=False),
            Matrix(cluster, folders[1], topics="nothing"),
        )
        for one in made:
            undo.callback(one.served.kill)
        yield made


def test_one_side_alone_tells_what_it_can(
    faults: Sandbox, half_blind: tuple[Matrix, Matrix]
) -> None:
    without_logs, without_offsets = half_blind
    with prepare_sequence("sequence-loss", faults) as prepared:
        without_logs.await_watched(prepared.topic)
        without_offsets.served.wait_rounds(2)
        truth = prepared.strike()
        [told] = truth.episodes
        without_logs.await_breach(truth.topic, "committed_records_lost")
        assert without_logs.episodes(truth.topic) == []
        assert "sequence_gap_loss" not in without_logs.breaches(truth.topic)

        without_offsets.served.wait_rounds(3)
        [event] = without_offsets.episodes(truth.topic)
        assert event["phase"] == Phase.SUSPECTED
        assert (event["incoming_sequence"], event["gap"]) == (27, 24)
        assert event["settles"] is not None
        pages = [one for one in without_offsets.served.findings() if one["severity"] == "critical"]
        assert [one for one in pages if one["labels"].get("topic") == truth.topic] == []

        log = faults.log_directory(told.broker_id) / "server.log"
        [said] = explained(log, truth.topic)
        assert (said["class"], said["phase"]) == (SequenceClass.LOSS, Phase.SUSPECTED)
        assert (said["gap"], said["lost_offsets"]) == (24, None)


def test_a_loss_that_happens_while_the_service_is_down_is_told_after_its_start(
    faults: Sandbox, matrix: Matrix
) -> None:
    with prepare_sequence("sequence-loss", faults) as prepared:
        matrix.await_watched(prepared.topic)
        matrix.served.kill()
        truth = prepared.strike()
        matrix.restart()
        assert_told(matrix, truth)


def test_a_burst_between_two_looks_is_told_when_it_cannot_heal_any_more(
    matrix: Matrix, burst: SequenceTruth
) -> None:
    assert_told(matrix, burst, PATIENCE_SECONDS)
