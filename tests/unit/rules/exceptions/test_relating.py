"""By what an application's problem belongs to a producer; a topic and a time alone only say that it may."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rules.exceptions.relating import TOLERANCE, KnownProducer, Match, ProblemNames, match
from rules.facts.identity import TopicPartition
from tests.application_lines import broker_side, fatal, problem, retried
from tests.factories import NOON

ORDERS = frozenset({TopicPartition("orders", 3)})


def producer(**given: Any) -> KnownProducer:
    base: dict[str, Any] = {
        "producer_id": 2001,
        "producer_epoch": 3,
        "places": ORDERS,
        "begin": NOON,
        "end": NOON,
    }
    return KnownProducer(**{**base, **given})


@pytest.mark.parametrize(
    ("line", "known", "by"),
    [
        pytest.param(fatal(), {"transactional_id": "pay-1"}, Match.TRANSACTIONAL_ID, id="same-transactional-id"),
        pytest.param(fatal(), {"transactional_id": "pay-2"}, None, id="another-transactional-id-is-another-producer"),
        pytest.param(broker_side(), {}, Match.PRODUCER_ID, id="same-producer-and-epoch"),
        pytest.param(broker_side(), {"producer_epoch": None}, Match.PRODUCER_ID, id="epoch-not-known"),
        pytest.param(broker_side(), {"producer_epoch": 4}, Match.OTHER_EPOCH, id="a-later-instance"),
        pytest.param(broker_side(), {"producer_id": 7}, None, id="another-producer-id-although-the-topic-matches"),
        pytest.param(retried(), {}, Match.MAY_BE, id="topic-and-time-alone"),
        pytest.param(retried(), {"transactional_id": "pay-1"}, Match.MAY_BE, id="the-line-does-not-say-whose-it-is"),
        pytest.param(retried(partition=4), {}, None, id="another-partition"),
        pytest.param(retried(topic="other"), {}, None, id="another-topic"),
        pytest.param(
            retried(), {"begin": NOON + TOLERANCE + timedelta(seconds=1), "end": None}, None, id="long-before"
        ),
        pytest.param(retried(), {"end": NOON - TOLERANCE - timedelta(seconds=1), "begin": None}, None, id="long-after"),
        pytest.param(retried(), {"begin": NOON - timedelta(hours=9), "end": None}, Match.MAY_BE, id="it-goes-on"),
        pytest.param(
            "2025-06-02 12:00:00 WARN [Consumer clientId=c, groupId=g] Offset commit failed on partition orders-3 at "
            "offset 7: org.apache.kafka.common.errors.RebalanceInProgressException: words",
            {},
            None,
            id="a-consumer-is-no-producer",
        ),
    ],
)  # fmt: skip
def test_match(line: str, known: dict[str, Any], by: Match | None) -> None:
    assert match(ProblemNames.of(problem(line)), producer(**known)) is by


def test_a_problem_of_many_clients_names_no_producer() -> None:
    names = ProblemNames.of(problem(fatal(), is_of_many=True))
    assert match(names, producer(transactional_id="pay-1")) is None
