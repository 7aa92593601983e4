"""What transactions cost, as a person reads it and as a script concludes from the exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest
from click.testing import CliRunner

from rules.facts.transaction_log import TransactionLog
from service.cli.server import listing
from service.cli.tx.command import command
from service.terminal.exit_codes import ExitCode
from tests.schemas import validate
from tests.unit.rules.transactions.cost_rounds import PLACES, observed, play, transactions_of
from tests.unit.service.api.given import client_of
from tests.unit.service.cli.app_api import AppApi

START: Final = observed()
BUSY: Final = observed(
    (1200, 0, 400, 0),
    transactions_of("payments", 600, took=0.25),
    transactions_of("a", 100, on=PLACES[2:]),
    transactions_of("b", 100, on=PLACES[2:]),
)
UNREAD: Final = START | {"transaction_log": TransactionLog.unread()}
PART: Final = observed((12, 0, 0, 0), transactions_of(), is_whole=False)
MANY: Final = observed(
    (999, 0, 0, 0), *(transactions_of(f"id-{number}", coordinator=1) for number in range(100))
)


def run(monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any], *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of `tx cost` on a service that observed this."""
    view = play(START, seen)
    api = AppApi(client_of(snapshot=view.snapshot, view=view, at=view.now))

    @contextmanager
    def served(_options: Mapping[str, Any], *, scope: str = "read") -> Iterator[AppApi]:
        assert scope == "read"
        yield api

    monkeypatch.setattr(listing, "client_of", served)
    result = CliRunner().invoke(command, ["cost", *arguments], standalone_mode=False)
    assert result.exception is None, result.output
    return result.return_value or 0, result.output


def test_ids_and_coordinators_are_lines_with_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(monkeypatch, BUSY, "-o", "wide")
    assert code == ExitCode.OK
    assert text.startswith("within the last 1.0 min\n")
    assert re.search(r"payments +10\.0 +1\.0 +- +1\.0 +50% +30\.0 +250\.0 ms +250 ms +2", text)
    assert re.search(r"\nb +1\.7 +1\.0 shared +- +1\.0 +50% ", text)
    assert re.search(r"\n2 +3 +13\.3 +250 ms +250 ms", text)


def test_the_document_has_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run(monkeypatch, PART, "-o", "json")
    document = json.loads(text)
    validate("tx cost", document)
    assert code == ExitCode.INCOMPLETE
    assert [row["transactional_id"] for row in document["transactional_ids"]] == ["payments"]


@pytest.mark.parametrize(
    ("seen", "code", "words"),
    [
        pytest.param(UNREAD, ExitCode.INCOMPLETE, "UNKNOWN: __transaction_state", id="not read"),
        pytest.param(START, ExitCode.OK, "no transaction has ended", id="none"),
        pytest.param(PART, ExitCode.INCOMPLETE, "these are at least so many", id="in part"),
        pytest.param(MANY, ExitCode.OK, "broker 1 coordinates twice as many", id="uneven"),
    ],
)
def test_what_is_missing_or_uneven_is_said(
    monkeypatch: pytest.MonkeyPatch, seen: dict[str, Any], code: ExitCode, words: str
) -> None:
    assert run(monkeypatch, seen)[0] == code
    assert words in run(monkeypatch, seen)[1]


def test_filters_that_match_nothing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "that matches the filters" in run(monkeypatch, START, "--coordinator", "9")[1]
