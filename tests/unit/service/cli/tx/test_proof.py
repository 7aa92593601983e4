"""What `tidemark tx hanging` concludes: proof, doubt, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.gap import GapScope
from rules.facts.transactions import IdVisibility
from service.cli.tx import proof
from service.terminal.exit_codes import ExitCode
from tests.factories import (
    gap,
    transactions,
)
from tests.schemas import validate
from tests.unit.service.cli.tx.given import (
    HANGS,
    QUIET,
    RUNS,
    UNSEEN,
    text,
    twice,
)


def test_what_hangs_is_told_with_proof_and_repair() -> None:
    observed = twice(**HANGS)
    found = proof.conclude(observed)
    said = text(proof.render(found, is_secured=False))
    assert found.exit_code is ExitCode.HANGING
    for piece in (
        "HANGING  orders-0  payments",
        "broker 1 has it open from offset 90 on, from 2025-06-02 12:00:00 UTC",
        "broker 2 says Empty, and does not list this partition",
        "10 offsets (LSO 90, HWM 100)",
        "billing (waits), audit (30 offsets before it)",
        "abort --topic orders --partition 0 --start-offset 90\n",
        "1 transaction hangs (4 partitions seen).",
    ):
        assert piece in said


def test_a_producer_that_nobody_lists_hangs_because_no_id_is_hidden() -> None:
    known = transactions(resolved=frozenset({7}), visibility=IdVisibility.ACLS)
    observed = twice(**{**HANGS, "transactions": known})
    said = text(proof.render(proof.conclude(observed), is_secured=True))
    assert "none lists producer 7; the ACLs let us see every transactional id" in said
    assert "--start-offset 90 --command-config client.properties" in said


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        (UNSEEN, "again when that broker is back"),
        (
            {**HANGS, "transactions": transactions(visibility=IdVisibility.UNPROVEN)},
            "grant Tidemark DESCRIBE on every TransactionalId",
        ),
        (
            {**QUIET, "gaps": (gap(what="open transactions of orders-0", scope=GapScope.PRODUCERS),)},
            "open transactions of orders-0: 127.0.0.1:9091: no answer",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_never_said_to_be_well(
    observation: dict[str, Any], told: str
) -> None:
    observed = twice(**observation)
    found = proof.conclude(observed)
    said = text(proof.render(found, is_secured=False))
    assert found.exit_code is ExitCode.INCOMPLETE
    assert told in said
    assert "It is unknown whether a transaction hangs" in said
    assert "abort --topic" not in said
    assert proof.document(found)["complete"] is False


@pytest.mark.parametrize("observation", [QUIET, RUNS])
def test_nothing_hangs_only_where_all_was_seen(observation: dict[str, Any]) -> None:
    observed = twice(**observation)
    found = proof.conclude(observed)
    assert found.exit_code is ExitCode.OK
    assert text(proof.render(found, is_secured=False)).startswith("Nothing hangs (4 partitions")


def test_what_hangs_counts_more_than_what_was_not_seen() -> None:
    observed = twice(**HANGS, gaps=(gap(scope=GapScope.PRODUCERS),))
    found = proof.conclude(observed)
    assert found.exit_code is ExitCode.HANGING
    [row] = proof.document(found)["hanging"]
    validate("tx hanging", proof.document(found))
    assert row["repair"].endswith("--start-offset 90")
