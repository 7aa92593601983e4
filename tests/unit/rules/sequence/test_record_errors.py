"""Which clients an episode names as having failed records or retries at its time; they decide nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import pytest

from rules.facts.episode_record_errors import (
    MAX_CLIENTS,
    ClientRises,
    EpisodeRecordErrors,
    RecordRises,
    merge_record_errors,
)
from rules.facts.episodes import Episode
from rules.facts.memory import Memory
from rules.facts.scrapes import ClientReading, Scrapes
from rules.facts.times import SECOND_US
from rules.remembering import view_of_round
from rules.sequence.record_errors import record_error_evidence
from service.storage.formats.sequence import plain_sequences, sequences_of
from tests.factories import at
from tests.scraped import client_reading, counted, endpoint_state, rise, scrapes
from tests.unit.rules.sequence.case_observations import ALONE, line_of_2, of_2
from tests.unit.rules.sequence.stage import Observation

SERVER: Final = "http://prometheus:9090"
JAVA: Final = client_reading(retries=counted(rise(5, 20, 5)))  # it met a loss, and reports no error
ENDED: Final = at(11 + 180)  # the last rejection was read at second 11


def endpoint(until: float, **overrides: Any) -> Any:
    return endpoint_state(**{"answered_since": at(-600), "answered_at": at(until)} | overrides)


def rounds(*seen: tuple[float, Scrapes]) -> Episode:
    """Return the episode of a batch that was rejected 10 s after noon, after rounds with these metrics."""
    observations = [ALONE, line_of_2()]
    observations += [of_2(second, more={"scrapes": metrics}) for second, metrics in seen]
    return after(observations)


def after(observations: Iterable[Observation]) -> Episode:
    memory: Memory | None = None
    for observation in observations:
        memory = view_of_round(observation.snapshot(), memory).memory
    assert memory is not None
    (episode,) = memory.sequences.episodes
    return episode


def named(episode: Episode) -> list[tuple[str, str | None, int | None, int | None]]:
    return [
        (client["client_id"], client["topic"], client["errors"], client["retries"])
        for client in record_error_evidence(episode)["record_errors"]
    ]


def page(*clients: ClientReading, until: float = 25, **overrides: Any) -> Scrapes:
    return scrapes(*clients, endpoints=(endpoint(until, **overrides),))


def test_retries_of_a_java_producer_are_named_with_count_and_times() -> None:
    episode = rounds((25, page(JAVA, client_reading("quiet"))))
    (client,) = record_error_evidence(episode)["record_errors"]
    assert client == {
        "client_id": "payments",
        "address": "app-1:8081",
        "topic": "orders",
        "errors": 0,
        "errors_since": None,
        "errors_until": None,
        "retries": 5,
        "retries_since": "2025-06-02T12:00:05.000+00:00",
        "retries_until": "2025-06-02T12:00:20.000+00:00",
    }


def test_they_change_no_verdict() -> None:
    with_metrics = rounds((25, page(JAVA)))
    without = rounds((25, Scrapes.unread()))
    assert replace(with_metrics, record_errors=without.record_errors) == without
    assert record_error_evidence(without)["client_metrics"] == "not_read"


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        pytest.param(JAVA, [("payments", "orders", 0, 5)], id="at that time"),
        pytest.param(
            client_reading(retries=counted(rise(-240, -200, 5))), [], id="four minutes before"
        ),
        pytest.param(
            client_reading(retries=counted(rise(-180, -165, 2), rise(5, 20, 5))),
            [("payments", "orders", 0, 7)],
            id="delivery timeout before, and at that time",
        ),
        pytest.param(replace(JAVA, topic="refunds"), [], id="of another topic"),
        pytest.param(
            replace(JAVA, topic=None, errors=None),
            [("payments", None, None, 5)],
            id="topic unknown",
        ),
        pytest.param(
            replace(JAVA, retries=counted(rise(5, 20, None), total=None)),
            [("payments", "orders", 0, None)],
            id="a rate alone",
        ),
        pytest.param(
            replace(JAVA, is_gone=True),
            [("payments", "orders", 0, 5)],
            id="its process ended since",
        ),
    ],
)
def test_only_rises_of_its_topic_and_time_count(
    reading: ClientReading, expected: list[tuple[str, str | None, int | None, int | None]]
) -> None:
    assert named(rounds((25, page(reading)))) == expected


def test_a_sum_over_topics_of_a_client_that_reports_topics_adds_nothing() -> None:
    assert named(rounds((25, page(JAVA, replace(JAVA, topic=None))))) == [
        ("payments", "orders", 0, 5)
    ]


def test_a_process_on_two_endpoints_is_one_client() -> None:
    other = replace(JAVA, endpoint=SERVER, retries=counted(rise(-55, 20, 4)))
    seen = scrapes(JAVA, other, endpoints=(endpoint(25), endpoint(25, name=SERVER)))
    (client,) = record_error_evidence(rounds((25, seen)))["record_errors"]
    assert (client["retries"], client["retries_since"]) == (5, "2025-06-02T11:59:05.000+00:00")


def test_what_the_metrics_have_forgotten_is_remembered() -> None:
    more = client_reading(retries=counted(rise(5, 20, 5), rise(20, 35, 2)))
    grown = rounds((25, page(JAVA)), (40, page(more)), (60, page()))
    assert named(grown) == [("payments", "orders", 0, 7)]


@pytest.mark.parametrize(
    ("seen", "metrics"),
    [
        pytest.param([(25, page(until=25))], "incomplete", id="clients may still give up"),
        pytest.param(
            [(25, page(until=25)), (195, page(until=192))], "complete", id="all of its time"
        ),
        pytest.param(
            [(25, page(until=25)), (195, page(until=192, answered_since=at(100)))],
            "incomplete",
            id="silent for a while",
        ),
        pytest.param(
            [(195, page(until=192, answered_since=at(0)))],
            "incomplete",
            id="not there when it began",
        ),
        pytest.param([(195, page(until=192, answered_at=None))], "incomplete", id="never answered"),
    ],
)
def test_metrics_are_complete_only_if_every_endpoint_answered_all_the_time(
    seen: list[tuple[float, Scrapes]], metrics: str
) -> None:
    evidence = record_error_evidence(rounds(*seen))
    assert evidence["client_metrics"] == metrics
    assert evidence["record_errors"] == []


def test_the_clients_that_say_most_are_kept_and_all_are_counted() -> None:
    clients = [
        client_reading(f"producer-{number:02}", retries=counted(rise(5, 20, number)))
        for number in range(1, 26)
    ]
    failing = client_reading("failing", errors=counted(rise(5, 20, 1)))
    episode = rounds((25, page(*clients, failing)))
    evidence = record_error_evidence(episode)
    names = [client["client_id"] for client in evidence["record_errors"]]
    assert names[:2] == ["failing", "producer-25"]
    assert (len(names), evidence["record_error_clients"]) == (MAX_CLIENTS, 26)


def test_they_survive_a_restart_and_the_next_process_says_since_when_it_knows() -> None:
    episode = rounds((25, page(JAVA)))
    memory = view_of_round(of_2(0).snapshot(), None).memory.sequences
    key = episode.key
    stored = replace(memory, open={key: episode})
    (again,) = sequences_of(plain_sequences(stored)).open.values()
    assert again.record_errors == episode.record_errors

    seen = EpisodeRecordErrors(is_read=True, whole_until_us=episode.last_seen_us + 1000 * SECOND_US)
    merged = merge_record_errors(episode.record_errors, seen)
    assert merged == episode.record_errors, "nobody read metrics between the two"


def test_their_times_follow_a_clock_that_was_set() -> None:
    moved = EpisodeRecordErrors(
        is_read=True,
        clients=(
            ClientRises(
                address="a:1",
                client_id="payments",
                topic="orders",
                errors=None,
                retries=RecordRises(count=1, since_us=1, until_us=2),
            ),
        ),
        whole_until_us=3,
    ).with_times(lambda time_us: time_us + 10)
    (client,) = moved.clients
    assert client.retries == RecordRises(count=1, since_us=11, until_us=12)
    assert moved.whole_until_us == 13
