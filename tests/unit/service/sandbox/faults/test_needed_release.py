"""Which faults an older Kafka cannot show."""

from __future__ import annotations

import pytest

from rules.errors import SandboxError
from rules.facts.broker_log import SequenceForm
from service.sandbox.cluster.releases import Release
from service.sandbox.faults import FAULTS, FaultOptions
from service.sandbox.faults.needed_release import OF_FAULTS, needed_release, require_release
from service.sandbox.workloads.raw_producer import Protocol


@pytest.mark.parametrize(
    ("fault", "options", "needed"),
    [
        pytest.param("committed-loss", FaultOptions(), None, id="everywhere"),
        pytest.param("unreplicated-loss", FaultOptions(), "4.1", id="eligible replicas"),
        pytest.param(
            "committed-loss", FaultOptions(protocol=Protocol.V2), "4.0", id="transactions v2"
        ),
        pytest.param(
            "committed-loss", FaultOptions(protocol=Protocol.V1), None, id="transactions v1"
        ),
        pytest.param(
            "sequence-reordering",
            FaultOptions(form=SequenceForm.EARLIEST_SEEN),
            "3.6",
            id="a form of its line",
        ),
        pytest.param(
            "sequence-state-expired",
            FaultOptions(form=SequenceForm.EXPECTED_ZERO),
            "4.0",
            id="the newer of two",
        ),
    ],
)
def test_a_fault_needs_the_release_that_has_what_it_shows(
    fault: str, options: FaultOptions, needed: str | None
) -> None:
    assert needed_release(fault, options) == needed


@pytest.mark.parametrize(
    ("version", "is_rejected"), [("3.3.2", True), ("3.9.2", True), ("4.1.1", False)]
)
def test_an_older_kafka_is_rejected_with_the_one_that_is_needed(
    *, version: str, is_rejected: bool
) -> None:
    message = None
    try:
        require_release("unclean-without-loss", FaultOptions(), Release(version))
    except SandboxError as rejected:
        message = str(rejected)
    expected = f"unclean-without-loss so needs Kafka 4.1 or newer, and this sandbox runs {version}"
    assert message == (expected if is_rejected else None)


def test_what_is_named_is_a_fault() -> None:
    assert set(OF_FAULTS) <= set(FAULTS)
