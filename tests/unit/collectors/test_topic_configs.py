"""Settings of topics: remembered for a minute, and never silently unknown."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from collectors import topic_configs
from collectors.topic_configs import TOPIC_RESOURCE, TopicConfigReader
from collectors.wire.api import DESCRIBE_CONFIGS
from rules.facts.gap import GapScope
from rules.facts.partitions import Partitions
from tests.factories import broker, partitions, topic_id
from tests.unit.collectors.fake_pool import Prepared, session_of
from tests.unit.collectors.scripted_pool import scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

ME = broker(1)
TOPIC_AUTHORIZATION_FAILED = 29


def configs(
    topic: str, value: str | None, *, unclean: str | None = "false", error: int = 0
) -> bytes:
    """Return an answer that tells one topic's settings, if it is no error."""
    version = DESCRIBE_CONFIGS.newest
    result = part(DESCRIBE_CONFIGS, version, "DescribeConfigsResult")
    entry = part(DESCRIBE_CONFIGS, version, "DescribeConfigsResourceResult")
    told = {"min.insync.replicas": value, "unclean.leader.election.enable": unclean}
    entries = tuple(
        entry(
            name=name,
            value=setting,
            read_only=False,
            is_sensitive=False,
            synonyms=(),
            documentation=None,
        )
        for name, setting in told.items()
    )
    one = result(
        error_code=ErrorCode(error),
        error_message=None,
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=() if error else entries,
    )
    return answer(DESCRIBE_CONFIGS, version, throttle_time=NO_THROTTLE, results=(one,))


def observe(
    reader: TopicConfigReader, prepared: Prepared | None
) -> tuple[list[int | None], int, int]:
    """Make one round; return the values, the number of requests and of gaps."""
    answers = {} if prepared is None else {(ME, DESCRIBE_CONFIGS): prepared}
    session = session_of(ME, answers=answers)
    filled = reader.collect(session, partitions({"orders": 1}, min_insync_replicas=UNKNOWN))
    assert {gap.scope for gap in session.gaps} <= {GapScope.CONFIGS}
    asked = session.requests["DescribeConfigs"]
    return filled.min_insync_replicas.to_list(), asked, len(session.gaps)


UNKNOWN = partitions({"orders": 1}).min_insync_replicas


def test_value_is_read_once_a_minute() -> None:
    reader = TopicConfigReader()
    assert observe(reader, configs("orders", "2")) == ([2], 1, 0)
    assert observe(reader, configs("orders", "3")) == ([2], 0, 0)


def test_failed_request_is_a_gap_in_every_round_until_it_succeeds() -> None:
    reader = TopicConfigReader()
    assert observe(reader, None) == ([None], 1, 1)
    assert observe(reader, None) == ([None], 1, 1)
    assert observe(reader, configs("orders", "2")) == ([2], 1, 0)


def test_rejected_topic_is_asked_again_and_told_again() -> None:
    reader = TopicConfigReader()
    rejected = configs("orders", None, error=TOPIC_AUTHORIZATION_FAILED)
    assert observe(reader, rejected) == ([None], 1, 1)
    assert observe(reader, rejected) == ([None], 1, 1)


def test_topic_created_again_is_read_again() -> None:
    reader = TopicConfigReader()
    observe(reader, configs("orders", "2"))
    again = partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))
    session = session_of(ME, answers={(ME, DESCRIBE_CONFIGS): configs("orders", "1")})
    assert reader.collect(session, again).min_insync_replicas.to_list() == [1]


@pytest.mark.parametrize(
    ("told", "column"),
    [
        pytest.param("true", [1], id="enabled"),
        pytest.param("false", [0], id="disabled"),
        pytest.param(None, [None], id="not-told"),
        pytest.param("perhaps", [None], id="no-answer-at-all"),
    ],
)
def test_unclean_elections_come_with_the_same_request(
    told: str | None, column: list[int | None]
) -> None:
    session, pool = scripted([ME], lambda *_: configs("orders", "2", unclean=told))
    filled = TopicConfigReader().collect(session, partitions({"orders": 1}))
    assert filled.unclean_election_enabled.to_list() == column
    assert filled.min_insync_replicas.to_list() == [2]
    [(_, request)] = pool.of(DESCRIBE_CONFIGS)
    assert asked_for(request) == {
        "orders": ("min.insync.replicas", "unclean.leader.election.enable")
    }


def asked_for(request: Any) -> dict[str, tuple[str, ...]]:
    return {str(one.resource_name): tuple(one.configuration_keys) for one in request.resources}


def test_what_no_answer_told_is_unknown_and_not_the_default() -> None:
    session = session_of(ME)
    filled = TopicConfigReader().collect(session, partitions({"orders": 1}))
    assert filled.unclean_election_enabled.to_list() == [None]
    [gap] = session.gaps
    assert gap.what == "min.insync.replicas and unclean.leader.election.enable of 1 topic"


def test_a_setting_that_changed_makes_other_partitions_and_an_unchanged_one_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_configs, "MAX_AGE_SECONDS", 0.0)
    reader, placed = TopicConfigReader(), partitions({"orders": 1})

    def read(unclean: str) -> Partitions:
        session = session_of(
            ME, answers={(ME, DESCRIBE_CONFIGS): configs("orders", "2", unclean=unclean)}
        )
        return reader.collect(session, placed)

    first = read("false")
    assert read("false") is first
    changed = read("true")
    assert changed is not first
    assert changed.unclean_election_enabled.to_list() == [1]
