"""Which clients are listed with which numbers, and when the list is complete."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.gap import GapCause
from rules.facts.scrapes import ScrapeFailure, Scrapes
from rules.record_errors.listing import ReadingState, list_record_errors
from tests.factories import at
from tests.scraped import PAGE, client_reading, counted, endpoint_state, rise, scrapes

SERVER = "http://prometheus:9090"
TIMEOUT = ScrapeFailure(cause=GapCause.TIMEOUT, why="no whole answer within 5 s")
NOTHING = ScrapeFailure(cause=GapCause.UNSUPPORTED, why="it holds none of the metrics")


def test_a_process_of_two_endpoints_is_one_client_with_the_latest_numbers() -> None:
    page = client_reading(retries=counted(total=7))
    server = client_reading(endpoint=SERVER, retries=counted(total=5))
    listed = list_record_errors(
        scrapes(server, page, endpoints=(endpoint_state(), endpoint_state(SERVER)))
    )
    (client,) = listed.clients
    assert client.reading is page
    assert client.other_endpoints == (SERVER,)


def test_an_endpoint_that_answers_is_preferred_to_larger_numbers_of_one_that_does_not() -> None:
    page = client_reading(retries=counted(total=7))
    server = client_reading(endpoint=SERVER, retries=counted(total=5))
    states = (endpoint_state(is_fresh=False), endpoint_state(SERVER))
    (client,) = list_record_errors(scrapes(page, server, endpoints=states)).clients
    assert (client.reading, client.state) == (server, ReadingState.CURRENT)


@pytest.mark.parametrize(
    ("is_fresh", "is_gone", "state"),
    [
        pytest.param(True, False, ReadingState.CURRENT, id="answered"),
        pytest.param(True, True, ReadingState.GONE, id="absent from whole answers"),
        pytest.param(False, True, ReadingState.STALE, id="nothing of now is known, not even that"),
    ],
)
def test_the_state_says_whether_the_numbers_are_of_now(
    *, is_fresh: bool, is_gone: bool, state: ReadingState
) -> None:
    seen = scrapes(client_reading(is_gone=is_gone), endpoints=(endpoint_state(is_fresh=is_fresh),))
    assert list_record_errors(seen).clients[0].state is state


def test_retries_alone_are_a_rise() -> None:
    """An idempotent Java producer that meets a real loss raises nothing else."""
    reading = client_reading(retries=counted(rise(-60, -45, 5)))
    (client,) = list_record_errors(scrapes(reading)).clients
    assert client.last_rise_at == at(-45)
    (quiet,) = list_record_errors(scrapes(client_reading(errors=None))).clients
    assert quiet.last_rise_at is None


@pytest.mark.parametrize(
    ("endpoint", "complete", "incomplete", "without"),
    [
        pytest.param({}, True, [], [], id="answered as a whole"),
        pytest.param({"is_fresh": False}, False, [PAGE], [], id="its last answer is too old"),
        pytest.param({"failures": (TIMEOUT,)}, False, [PAGE], [], id="one attempt gave nothing"),
        pytest.param({"failures": (NOTHING,)}, True, [], [PAGE], id="it has no such metric"),
        pytest.param(
            {"failures": (NOTHING,), "is_fresh": False}, False, [PAGE], [], id="it had none then"
        ),
    ],
)
def test_an_endpoint_that_does_not_answer_makes_the_list_incomplete(
    endpoint: dict[str, Any], *, complete: bool, incomplete: list[str], without: list[str]
) -> None:
    listed = list_record_errors(scrapes(endpoints=(endpoint_state(**endpoint),)))
    assert listed.is_complete is complete
    assert [each.name for each in listed.incomplete_endpoints] == incomplete
    assert list(listed.without_metrics) == without


def test_nothing_configured_and_an_unread_list_are_no_empty_list() -> None:
    assert not list_record_errors(Scrapes.unread()).is_complete
    assert not list_record_errors(scrapes(lists_known=False)).is_complete
    assert not list_record_errors(scrapes(failures=(TIMEOUT,))).is_complete
