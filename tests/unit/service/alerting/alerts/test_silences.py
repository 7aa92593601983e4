"""Silences: when they are in force, and which are rejected."""

from __future__ import annotations

from typing import Any

import pytest

from service.alerting.alerts.matchers import parse_matchers
from service.alerting.alerts.silences import Silence, SilenceError, SilenceState
from tests.alerting import silence
from tests.factories import at

LABELS = {"alertname": "some_rule", "topic": "orders"}


@pytest.mark.parametrize(
    ("seconds", "state"),
    [
        (9.999, SilenceState.PENDING),
        (10, SilenceState.ACTIVE),
        (19.999, SilenceState.ACTIVE),
        (20, SilenceState.EXPIRED),
    ],
)
def test_a_silence_is_in_force_from_its_start_until_its_end(
    seconds: float, state: SilenceState
) -> None:
    one = silence('topic="orders"', begin=10, end=20)
    assert one.state(at(seconds)) is state
    assert one.mutes(LABELS, at(seconds)) is (state is SilenceState.ACTIVE)


def test_a_silence_mutes_only_what_all_its_matchers_match() -> None:
    assert not silence('topic="orders",group="x"').mutes(LABELS, at(0))


@pytest.mark.parametrize("text", ['topic=""', 'topic=~".*"', 'topic!="x"', 'topic=~"a|",a!~"b"'])
def test_a_silence_that_matches_everything_is_rejected(text: str) -> None:
    with pytest.raises(SilenceError, match="matches everything"):
        silence(text)


def test_one_matcher_that_names_something_is_enough() -> None:
    assert silence('topic=~".*",alertname="some_rule"').mutes(LABELS, at(0))


REJECTED: list[tuple[dict[str, Any], str]] = [
    ({"matchers": ()}, "matches everything"),
    ({"ends_at": at(0)}, "ends before"),
    ({"created_by": " "}, "author"),
    ({"created_by": "x" * 257}, "author"),
    ({"comment": ""}, "reason"),
    ({"comment": "x" * 4097}, "reason"),
]


@pytest.mark.parametrize(("wrong", "reason"), REJECTED)
def test_a_silence_that_nobody_could_answer_for_is_rejected(
    wrong: dict[str, Any], reason: str
) -> None:
    right: dict[str, Any] = {
        "silence_id": "s1",
        "matchers": parse_matchers('topic="orders"'),
        "starts_at": at(0),
        "ends_at": at(60),
        "created_by": "on-call",
        "comment": "planned work",
    }
    assert Silence(**right).comment
    with pytest.raises(SilenceError, match=reason):
        Silence(**{**right, **wrong})
