"""What `tidemark tx show` adds of who fenced the producers of an id, from a running Tidemark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from rules.errors import UnreachableError
from service.cli.tx import fencing, showing
from service.terminal.exit_codes import ExitCode
from service.views.fencing import fencing_of
from tests.factories import transaction
from tests.schemas import validate
from tests.unit.rules.fencing.cases import CASES
from tests.unit.rules.fencing.rounds import only, play
from tests.unit.service.cli.tx.given import RUNS, Rounds, text

ROW = fencing_of(only(play(CASES["zombie-v1-request-log"].rounds))).to_row()


class Server:
    """Answers with one episode, or not at all."""

    def __init__(self, error: str | None = None) -> None:
        self.error = error
        self.queries: list[dict[str, Any]] = []

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        self.queries.append({"path": path, **query})
        if self.error is not None:
            raise UnreachableError(self.error)
        yield {"items": [ROW, {**ROW, "transactional_id": "other"}], "next": None}


def fetched(server: Server, monkeypatch: pytest.MonkeyPatch) -> fencing.FencingAnswer:
    @contextmanager
    def client(_options: object) -> Iterator[Server]:
        yield server

    monkeypatch.setattr(fencing, "client_of", client)
    return fencing.fetch_fencing({"server": "http://tidemark"}, "payments")


def shown(answer: fencing.FencingAnswer) -> showing.Shown:
    return replace(showing.fetch(Rounds(RUNS, says=transaction()), "payments"), fencing=answer)


def test_the_episodes_of_exactly_this_id_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    answer = shown(fetched(server, monkeypatch))
    assert server.queries == [{"path": "transactions/fencing", "transactional_id": "payments"}]
    said = text(showing.render(answer))
    assert said.count("fenced: zombie (older_epoch_rejected)") == 1
    assert "a at 10.0.0.1:5001" in said
    assert "1 request (EndTxn PRODUCER_FENCED)" in said
    assert showing.exit_code(answer) is ExitCode.OK
    validate("tx show", showing.document(answer))


def test_a_tidemark_that_does_not_answer_makes_it_incomplete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = shown(fetched(Server("nobody is there"), monkeypatch))
    assert list(showing.error(answer)) == ["who fenced its producers is not known: nobody is there"]
    assert showing.exit_code(answer) is ExitCode.INCOMPLETE
    assert showing.document(answer)["fencing"] is None


def test_without_an_address_nobody_is_queried() -> None:
    assert fencing.fetch_fencing({"server": None}, "payments") == fencing.FencingAnswer()
    assert showing.document(shown(fencing.FencingAnswer()))["fencing"] is None
