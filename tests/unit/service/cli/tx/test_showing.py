"""What `tidemark tx show` tells of one transactional id."""

from __future__ import annotations

import re
from typing import Self

import pytest

from collectors.wire.failure import Failure
from rules.errors import UnreachableError
from rules.facts.gap import GapCause
from rules.facts.identity import TopicPartition
from rules.facts.transactions import TransactionState
from service.cli.tx import showing, tables
from service.terminal.exit_codes import ExitCode
from tests.application_lines import fatal, problem
from tests.factories import (
    transaction,
)
from tests.schemas import validate
from tests.unit.service.api.application_errors.test_application_errors import client_of
from tests.unit.service.cli.app_api import AppApi
from tests.unit.service.cli.printing import at_terminal
from tests.unit.service.cli.tx.given import (
    EMPTY,
    HANGS,
    HELD,
    QUIET,
    RUNS,
    Rounds,
    text,
)


def shown(source: Rounds, name: str = "payments") -> showing.Shown:
    return showing.fetch(source, name)


def test_an_open_transaction_is_shown_by_partition_with_what_happens_next() -> None:
    found = shown(Rounds(RUNS, says=transaction()))
    said = text(showing.render(found))
    assert showing.exit_code(found) is ExitCode.OK
    assert "broker 2 says Ongoing" in said
    assert re.search(r"orders-0 +1 +90 +90 +100 +10 +yes +billing \(waits\), audit", said)
    assert "its coordinator aborts it when its timeout has passed" in said


@pytest.mark.parametrize("state", list(tables.ENDED))
def test_one_that_is_not_open_is_shown_too(state: TransactionState) -> None:
    ended = transaction(state=state, partitions=frozenset[TopicPartition]())
    found = shown(Rounds(QUIET, says=ended))
    said = text(showing.render(found))
    assert showing.exit_code(found) is ExitCode.OK
    assert said.startswith(f"{state}  payments")
    assert tables.ENDED[state] in said
    assert "running" not in said


def test_one_that_ended_while_we_observed_is_not_shown_as_open() -> None:
    ended = transaction(state=TransactionState.COMPLETE_COMMIT)
    assert shown(Rounds(RUNS, says=ended)).entries == ()


def test_one_that_began_while_we_observed_is_observed_at_again() -> None:
    found = shown(Rounds(QUIET, RUNS, says=transaction()))
    assert [entry.transactional_id for entry in found.entries] == ["payments"]


def test_an_id_that_nobody_knows_is_named_with_those_like_it() -> None:
    found = shown(Rounds(RUNS, says=None), "paymnts")
    assert showing.exit_code(found) is ExitCode.NOTHING_MATCHED
    [line] = showing.error(found)
    assert line == (
        "no coordinator knows transactional id 'paymnts'; open transactions have similar ids: payments"
    )


def test_the_beginning_of_an_id_with_an_open_transaction_suffices_for_a_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To a script, an id that has ended must not become that of another producer, with its repair."""
    ended = shown(Rounds(RUNS, says=None), "paym")
    assert showing.exit_code(ended) is ExitCode.NOTHING_MATCHED
    assert next(iter(showing.error(ended))).endswith("open transactions have similar ids: payments")
    at_terminal(monkeypatch)
    found = shown(Rounds(RUNS, says=None), "paym")
    assert found.transactional_id == "payments"
    assert list(showing.error(found)) == []
    assert [entry.transactional_id for entry in found.entries] == ["payments"]


def test_an_id_that_could_not_be_asked_for_is_not_said_to_be_absent() -> None:
    rejected = Failure(GapCause.NOT_AUTHORIZED, "needs DESCRIBE on TransactionalId")
    found = shown(Rounds(QUIET, says=rejected))
    assert showing.exit_code(found) is ExitCode.INCOMPLETE
    assert showing.document(found)["error"] == [
        "transactional id 'payments': needs DESCRIBE on TransactionalId"
    ]


def test_what_hangs_is_shown_under_its_idle_id() -> None:
    found = shown(Rounds(HELD, HANGS, says=EMPTY))
    said = text(showing.render(found))
    assert said.startswith("hanging  payments")
    assert "No transaction is open" not in said
    assert showing.document(found)["described"]["state"] == "Empty"
    validate("tx show", showing.document(found))


def test_what_applications_logged_about_its_producer_is_shown_if_a_service_is_queried() -> None:
    problems = [problem(fatal("payments")), problem(fatal("other"))]
    found = shown(Rounds(RUNS, says=transaction()))
    assert showing.document(found)["application_errors"] is None
    asked = showing.with_application_errors(found, lambda: ConnectedApi(client_of(*problems)))
    validate("tx show", showing.document(asked))
    [row] = showing.document(asked)["application_errors"]
    assert (row["id"], row["match"]) == (problems[0].id, "transactional_id")
    assert "PRODUCER_FENCED (same transactional id) of payments, once" in text(
        showing.render(asked)
    )
    assert showing.exit_code(asked) is ExitCode.OK


def test_a_service_that_is_away_leaves_what_the_cluster_says_and_is_named() -> None:
    def away() -> ConnectedApi:
        raise UnreachableError("http://x cannot be reached")

    asked = showing.with_application_errors(shown(Rounds(RUNS, says=transaction())), away)
    assert list(showing.error(asked)) == [
        "what applications logged is not known: http://x cannot be reached"
    ]
    assert showing.exit_code(asked) is ExitCode.INCOMPLETE
    assert "broker 2 says Ongoing" in text(showing.render(asked))


class ConnectedApi(AppApi):
    """An application that is asked like a service over the network."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
