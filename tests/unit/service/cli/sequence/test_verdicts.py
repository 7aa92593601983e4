"""What a service has proven is, and the numbers are shown beside."""

from __future__ import annotations

from typing import Any

import pytest

from service.cli.sequence.explaining import ReadEvent
from service.cli.sequence.verdicts import Answers, add_verdicts, fetch_report
from tests.unit.service.api.sequences.sequences import LOSS, after, client_for
from tests.unit.service.cli.app_api import AppApi, judgements
from tests.unit.service.cli.sequence.given import reading, rejected


def pasted(incoming: int = 27, producer: int = 7) -> list[ReadEvent]:
    return list(reading(rejected(incoming, 2, producer=producer)).events)


def row(events: list[ReadEvent]) -> dict[str, Any]:
    """Return the only event, held against a service that has proven the textbook loss."""
    client = client_for(after(*LOSS), judgements=judgements())
    answers = Answers()
    answers.take("service", fetch_report(AppApi(client), events).rows)
    (found,) = add_verdicts(events, answers.rows)
    return found


def test_a_proof_unchanged_before_the_numbers() -> None:
    told = row(pasted())
    assert (told["verdict_by"], told["class"], told["phase"]) == ("service", "loss", "confirmed")
    assert (told["lost_from"], told["lost_to"], told["lost_offsets"]) == (100, 124, 24)
    assert (told["producer_epoch"], told["leader_epoch"]) == (0, 6)
    assert told["next_command"] == "tidemark loss show orders-0"
    assert told["by_numbers"] == {"class": "loss", "phase": "suspected", "reason": "large_gap"}
    assert told["first_seen"] == "2026-11-21T12:00:00.159000Z", "that of the line"


@pytest.mark.parametrize("events", [pasted(incoming=30), pasted(producer=8)])
def test_what_the_service_does_not_know_is_judged_by_its_numbers(events: list[ReadEvent]) -> None:
    told = row(events)
    assert (told["verdict_by"], told["phase"]) == ("numbers", "suspected")
    assert told["by_numbers"]["class"] == told["class"]


def test_of_two_that_fit_the_proven_one_unchanged() -> None:
    base = row(pasted()) | {"lines": [{"incoming_sequence": 27, "current_sequence": 2}]}
    known = [base | {"phase": "suspected", "reason": "scan_pending"}, base]
    (found,) = add_verdicts(pasted(), known)
    assert found["reason"] == "loss_proven"
