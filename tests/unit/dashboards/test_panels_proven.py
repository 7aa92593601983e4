"""Every query of a panel is asked of a real Prometheus, and every fault is shown or has a reason not to be."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Final

import pytest

from service.sandbox.faults import FAULTS
from tests.faults import panels
from tests.integration.serve import busy_panels
from tests.integration.serve.claims import EXPRESSIONS, Claim, with_choice

ROOT: Final = Path(__file__).parents[3]
BUSY: Final = "tests/integration/serve/test_prometheus.py"
ASSERTED_IN: Final = {
    "panels.TRANSACTIONS": "tests/integration/test_faults.py",
    "panels.LOSSES": "tests/integration/serve/test_losses.py",
    "panels.SEQUENCES": "tests/faults/matrix.py",
    "busy_panels.STOPPED": BUSY,
    "busy_panels.FAILING": BUSY,
    "busy_panels.KILLED": BUSY,
}
CLAIMS: Final[tuple[tuple[Claim[Any], ...], ...]] = (
    *panels.TRANSACTIONS.values(),
    *panels.LOSSES.values(),
    *panels.SEQUENCES.values(),
    busy_panels.STOPPED,
    busy_panels.FAILING,
    busy_panels.KILLED,
)
CLAIMED: Final = {claim.query for claims in CLAIMS for claim in claims}


def test_every_claim_is_about_a_query_that_there_is() -> None:
    assert set(EXPRESSIONS) >= CLAIMED


def test_what_the_busy_service_does_not_answer_is_claimed_elsewhere() -> None:
    assert busy_panels.NOT_ANSWERED <= CLAIMED


def test_every_fault_has_values_on_panels_or_a_reason_for_none() -> None:
    shown = [*panels.TRANSACTIONS, *panels.LOSSES, *panels.SEQUENCES]
    assert sorted([*shown, *panels.WITHOUT_VALUES]) == sorted(FAULTS)


@pytest.mark.parametrize(("table", "path"), ASSERTED_IN.items())
def test_every_table_is_asserted(table: str, path: str) -> None:
    source = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    used = {
        ast.unparse(node)
        for node in ast.walk(source)
        if isinstance(node, (ast.Attribute, ast.Name))
    }
    assert {table, "assert_shown"} <= used


def test_a_choice_is_put_in_the_place_of_its_variable_and_all_in_that_of_the_others() -> None:
    expression = 'sum(rate(m{cluster=~"$cluster", topic=~"$topic"}[$__rate_interval]))'
    chosen = 'sum(rate(m{cluster=~".+", topic=~"orders"}[1m]))'
    assert with_choice(expression, {"topic": "orders"}) == chosen
    assert with_choice('m{topic="$topic"}', {"topic": "orders"}) == 'm{topic="orders"}'
