"""Which faults there are, and what is no fault."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.transactions import TransactionState
from rules.transactions.classes import TransactionClass
from service.sandbox.cluster import Sandbox
from service.sandbox.faults import FAULTS, FaultOptions, Truth, begin_fault, make_fault

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
    told = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert told == list(FAULTS)


def test_an_unknown_fault_names_those_there_are() -> None:
    with pytest.raises(SandboxError, match=r"no fault 'flood'.*open-transaction.*stuck-marker"):
        begin_fault("flood", NOWHERE, FaultOptions())


def test_only_a_hanging_transaction_can_be_unlisted() -> None:
    with pytest.raises(SandboxError, match="only a hanging transaction"):
        begin_fault("open-transaction", NOWHERE, FaultOptions(unlisted=True))


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
