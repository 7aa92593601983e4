"""Probes depend on what makes answers meaningful, never on Kafka or a database that goes away."""

from __future__ import annotations

import pytest

from service.keeping import KeepingState, KeepingStatus
from service.latest import Latest, Look, RoundOutcome
from tests.unit.service.web.given import World, look, no_look


def test_livez_is_ok_before_anything_was_seen() -> None:
    answer = World(latest=Latest(no_look())).client().get("/livez")
    assert (answer.status_code, answer.text) == (200, "ok")


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (no_look(), 503),
        (look(keeping=KeepingStatus()), 503),
        (look(rounds=0), 503),
        (look(), 200),
        (look(outcome=RoundOutcome.FAILED, snapshot=None, trouble="no broker"), 200),
        (look(keeping=KeepingStatus(state=KeepingState.WAITING, trouble="away")), 200),
        (look(keeping=KeepingStatus(state=KeepingState.REFUSED, trouble="full")), 200),
    ],
)
def test_ready_after_the_first_round_with_what_was_remembered(seen: Look, status: int) -> None:
    assert World(latest=Latest(seen)).client().get("/readyz").status_code == status


def test_readyz_lists_its_checks() -> None:
    client = World().client()
    assert client.get("/readyz").text == "ok"
    assert client.get("/readyz?verbose").text.splitlines() == [
        "[+]first-round ok",
        "[+]memory ok",
        "readyz check passed",
    ]
    unready = World(latest=Latest(look(keeping=KeepingStatus()))).client()
    assert unready.get("/readyz").text.splitlines() == [
        "[+]first-round ok",
        "[-]memory failed: what was remembered could not be read yet",
        "readyz check failed",
    ]
