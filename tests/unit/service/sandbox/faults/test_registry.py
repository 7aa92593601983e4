"""Which faults there are, and what is no fault."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import (
    FAULTS,
    Client,
    FaultOptions,
    LossName,
    SequenceName,
    Truth,
    begin_fault,
    make_fault,
    prepare_loss,
    prepare_sequence,
)

NOWHERE = Sandbox(Path("/nonexistent"))
TRUTH = Truth(
    fault="open-transaction",
    where=TopicPartition("orders", 2),
    rule="last_stable_offset_stuck",
    hold_class=TransactionClass.OPEN,
    transactional_id="billing",
    coordinator=BrokerId(1),
    coordinator_epoch=4,
    state=TransactionState.ONGOING,
    timeout=timedelta(seconds=2.5),
    producer_id=1000,
    producer_epoch=0,
    start_offset=5,
    last_stable_offset=5,
    high_watermark=8,
    blocked_groups=("readers",),
    ends="by itself",
    undo=("do this",),
)


def test_the_faults_are_those_of_the_documentation() -> None:
    text = (Path(__file__).parents[5] / "docs/sandbox-faults.md").read_text(encoding="utf-8")
    names = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert names == list(FAULTS)


def test_an_unknown_fault_names_those_there_are() -> None:
    with pytest.raises(SandboxError, match=r"no fault 'flood'.*open-transaction.*stuck-marker"):
        begin_fault("flood", NOWHERE, FaultOptions())


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("open-transaction", {"unlisted": True}, "does not take --unlisted"),
        ("open-transaction", {"records": 3}, "does not take --records"),
        ("committed-loss", {"partition": 1}, "does not take --partition"),
        ("committed-loss", {"timeout": timedelta(seconds=1)}, "does not take --timeout"),
        ("unreplicated-loss", {"transactional": True}, "does not take --transactional"),
        ("records-deleted", {"old_leader_returns": True}, "does not take --old-leader-returns"),
        ("sequence-loss", {"resend": True}, "does not take --resend"),
        ("sequence-stale-retry", {"burst": True}, "does not take --burst"),
        ("sequence-restart", {"client": Client.JAVA}, "does not take --client"),
        ("committed-loss", {"form": SequenceForm.NEW_EPOCH}, "does not take --form"),
        ("committed-loss", {"records": 0}, "needs at least 1 records"),
        ("double-failover", {"partitions": 0}, "needs at least 0 records, one partition"),
        ("double-failover", {"batch": 0}, "one record in a batch"),
    ],
)
def test_options_that_a_fault_would_not_heed_are_rejected(
    name: str, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(SandboxError, match=f"{name}.*{said}"):
        begin_fault(name, NOWHERE, FaultOptions(**options))


def test_a_double_failover_may_lose_nothing() -> None:
    with pytest.raises(SandboxError, match="no sandbox"):  # the options were taken
        begin_fault("double-failover", NOWHERE, FaultOptions(records=0))


def test_the_faults_in_two_steps_are_those_whose_name_tells_the_kind_of_truth() -> None:
    assert [fault.name for fault in FAULTS.values() if fault.prepare] == [
        *get_args(LossName),
        *get_args(SequenceName),
    ]


def test_a_fault_of_one_step_cannot_be_prepared() -> None:
    name: Any = "open-transaction"
    with pytest.raises(SandboxError, match="in one step"), prepare_loss(name, NOWHERE):
        pass
    with pytest.raises(SandboxError, match="nothing to wait for"):
        begin_fault(name, NOWHERE, FaultOptions(), wait=lambda _: None)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("sequence-reordering", {"transactional": True}, "needs --client librdkafka or java"),
        ("sequence-loss", {"transactional": True}, "needs --client librdkafka or java"),
        (
            "sequence-reordering",
            {"client": Client.JAVA, "form": SequenceForm.NEW_EPOCH},
            "makes --form new-epoch with --client raw alone",
        ),
        (
            "sequence-loss",
            {"client": Client.LIBRDKAFKA, "form": SequenceForm.EXPECTED_ZERO},
            "makes --form expected-zero with --client raw alone",
        ),
        (
            "sequence-loss",
            {"form": SequenceForm.EARLIEST_SEEN},
            "never leads to --form earliest-seen",
        ),
    ],
)
def test_choices_that_do_not_go_together_are_rejected(
    name: SequenceName, options: dict[str, Any], said: str
) -> None:
    with (
        pytest.raises(SandboxError, match=f"{name} {said}"),
        prepare_sequence(name, NOWHERE, **options),
    ):
        pass


def test_a_fault_needs_a_sandbox() -> None:
    with (
        pytest.raises(SandboxError, match="no sandbox in /nonexistent"),
        make_fault("open-transaction", NOWHERE),
    ):
        pass


def test_the_truth_is_plain_values() -> None:
    document = json.loads(json.dumps(TRUTH.document()))
    assert (document["topic"], document["partition"]) == ("orders", 2)
    assert document["timeout_seconds"] == pytest.approx(2.5)
    assert (document["hold_class"], document["state"]) == ("open", "Ongoing")
    assert (document["cut"], document["fencing_epoch"]) == (None, None)
    assert document["blocked_groups"] == ["readers"]
