"""Case tables of the rules that judge controllers.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import controller_absent, controller_moves_often
from rules.facts.brokers import ControllerState, Quorum
from rules.facts.identity import BrokerId
from rules.verdict import Verdict
from tests.unit.rules.catalogue.judging import Case, judged

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def quorum(state: ControllerState, leader: int | None = None, epoch: int | None = None) -> Any:
    node = None if leader is None else BrokerId(leader)
    return {"quorum": Quorum(state=state, leader=node, leader_epoch=epoch)}


ACTIVE = quorum(ControllerState.ACTIVE, 100, 4)
NO_ANSWER, NO_LEADER = quorum(ControllerState.NO_ANSWER), quorum(ControllerState.NO_LEADER)
NOT_KNOWN = quorum(ControllerState.NOT_KNOWN)
ABSENT = [
    Case(id="active", because="the quorum has a leader", verdict=OK, reason="active"),
    Case(
        id="election",
        because="an election takes seconds, a restart a minute",
        observations=(ACTIVE, NO_ANSWER, NO_ANSWER),
        seconds=60,
        verdict=OK,
        reason="absent_briefly",
    ),
    Case(
        id="no-answer",
        because="brokers answer all but the request for the controller",
        observations=(ACTIVE, NO_ANSWER, NO_ANSWER),
        seconds=120,
        verdict=BREACH,
        reason="no_answer",
    ),
    Case(
        id="no-leader",
        because="the quorum says that it has none; a round that could not ask changes nothing",
        observations=(NO_ANSWER, NOT_KNOWN, NO_LEADER),
        seconds=60,
        verdict=BREACH,
        reason="no_leader",
    ),
    Case(
        id="not-known-for-long",
        because="two short absences and nothing known in between are no long one",
        observations=(NO_ANSWER, NOT_KNOWN, NOT_KNOWN, NO_ANSWER),
        seconds=60,
        verdict=OK,
        reason="absent_briefly",
    ),
    Case(
        id="no-rounds-for-long",
        because="nor is the time in which Tidemark did not run",
        observations=(NO_ANSWER, NO_ANSWER),
        seconds=7200,
        verdict=OK,
        reason="absent_briefly",
    ),
    Case(
        id="not-known",
        because="without permission, or before KRaft, nobody knows",
        observations=(NO_ANSWER, NOT_KNOWN),
        seconds=600,
        verdict=UNKNOWN,
        reason="not_known",
    ),
]


@pytest.mark.parametrize("case", ABSENT, ids=lambda case: case.id)
def test_controller_absent(case: Case) -> None:
    said = judged(controller_absent.judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


def terms(count: int) -> tuple[dict[str, Any], ...]:
    """Return rounds that each see another leader epoch, the first one included."""
    return tuple(quorum(ControllerState.ACTIVE, 100 + n % 3, 4 + n) for n in range(count))


MOVES = [
    Case(id="steady", because="one term", observations=(ACTIVE,) * 9, verdict=OK, reason="steady"),
    Case(
        id="rolling-restart",
        because="a rolling restart of five controllers moves it five times",
        observations=terms(6),
        verdict=OK,
        reason="steady",
    ),
    Case(
        id="often",
        because="six elections within an hour; an unknown round takes none back",
        observations=(*terms(7), NOT_KNOWN),
        verdict=BREACH,
        reason="moves_often",
    ),
    Case(
        id="slowly",
        because="the first of six elections is more than an hour ago",
        observations=terms(7),
        seconds=750,
        verdict=OK,
        reason="steady",
    ),
    Case(
        id="older-answer",
        because="a lower epoch is the answer of a broker that is behind",
        observations=(*terms(2), *terms(2), *terms(2), *terms(2), ACTIVE),
        verdict=OK,
        reason="steady",
    ),
    Case(
        id="not-known",
        because="without an answer there may be elections that nobody saw",
        observations=(ACTIVE, NOT_KNOWN),
        verdict=UNKNOWN,
        reason="not_known",
    ),
]


@pytest.mark.parametrize("case", MOVES, ids=lambda case: case.id)
def test_controller_moves_often(case: Case) -> None:
    said = judged(controller_moves_often.judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because
