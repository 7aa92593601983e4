"""`min.insync.replicas`: remembered for a minute, and never silently unknown."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from collectors.topic_configs import TOPIC_RESOURCE, TopicConfigReader
from collectors.wire.api import DESCRIBE_CONFIGS
from rules.facts.gap import GapScope
from tests.factories import broker, partitions, topic_id
from tests.unit.collectors.fake_pool import Prepared, session_of
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

ME = broker(1)
TOPIC_AUTHORIZATION_FAILED = 29


def configs(topic: str, value: str | None, *, error: int = 0) -> bytes:
    """Return an answer that tells one topic's setting."""
    version = DESCRIBE_CONFIGS.newest
    result = part(DESCRIBE_CONFIGS, version, "DescribeConfigsResult")
    entry = part(DESCRIBE_CONFIGS, version, "DescribeConfigsResourceResult")
    told = entry(
        name="min.insync.replicas",
        value=value,
        read_only=False,
        is_sensitive=False,
        synonyms=(),
        documentation=None,
    )
    one = result(
        error_code=ErrorCode(error),
        error_message=None,
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=() if error else (told,),
    )
    return answer(DESCRIBE_CONFIGS, version, throttle_time=NO_THROTTLE, results=(one,))


def look(reader: TopicConfigReader, prepared: Prepared | None) -> tuple[list[int | None], int, int]:
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
    assert look(reader, configs("orders", "2")) == ([2], 1, 0)
    assert look(reader, configs("orders", "3")) == ([2], 0, 0)


def test_failed_request_is_a_gap_in_every_round_until_it_succeeds() -> None:
    reader = TopicConfigReader()
    assert look(reader, None) == ([None], 1, 1)
    assert look(reader, None) == ([None], 1, 1)
    assert look(reader, configs("orders", "2")) == ([2], 1, 0)


def test_refused_topic_is_asked_again_and_told_again() -> None:
    reader = TopicConfigReader()
    refused = configs("orders", None, error=TOPIC_AUTHORIZATION_FAILED)
    assert look(reader, refused) == ([None], 1, 1)
    assert look(reader, refused) == ([None], 1, 1)


def test_topic_created_again_is_read_again() -> None:
    reader = TopicConfigReader()
    look(reader, configs("orders", "2"))
    again = partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))
    session = session_of(ME, answers={(ME, DESCRIBE_CONFIGS): configs("orders", "1")})
    assert reader.collect(session, again).min_insync_replicas.to_list() == [1]
