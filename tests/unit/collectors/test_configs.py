"""Settings of topics and brokers and feature levels: remembered for a minute, and never silently unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from collectors import configs as collector
from collectors.configs import ConfigReader
from collectors.wire.api import API_VERSIONS, DESCRIBE_CONFIGS, Api
from collectors.wire.config_answers import BROKER_RESOURCE, TOPIC_RESOURCE
from collectors.wire.failure import Failure
from rules.facts.config_keys import BROKER_KEYS, TOPIC_KEYS
from rules.facts.configs import Config, ConfigEntry, Configs, ConfigSource
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import Broker, BrokerId
from rules.facts.partitions import Partitions
from tests.factories import broker, partitions, topic_id
from tests.unit.collectors.scripted_pool import ScriptedPool, scripted
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part

ME = broker(1)
THREE = (broker(1), broker(2), broker(3))
VERSION = DESCRIBE_CONFIGS.newest
TOPIC_AUTHORIZATION_FAILED = 29
CLUSTER_AUTHORIZATION_FAILED = 31
LATE = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")
UNKNOWN = partitions({"orders": 1}).min_insync_replicas
Values = Mapping[str, "str | None"]
Respond = Callable[[Broker, Any], "bytes | Failure"]


def entry(name: str, value: str | None, source: int = 5) -> Any:
    """Return one setting of an answer; source 5 is Kafka's own default."""
    return part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsResourceResult")(
        name=name,
        value=value,
        read_only=False,
        config_source=source,
        is_sensitive=False,
        synonyms=(),
        documentation=None,
    )


def described(resource: Any, values: Values, error: int = 0) -> Any:
    """Return what a broker answers for one requested resource."""
    return part(DESCRIBE_CONFIGS, VERSION, "DescribeConfigsResult")(
        error_code=ErrorCode(error),
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=() if error else tuple(entry(name, value) for name, value in values.items()),
    )


def answering(
    values: Values | None = None, *, topic_error: int = 0, broker_error: int = 0
) -> Respond:
    """Return brokers with these settings of every topic, and one of their own."""
    of_topic = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}
    of_kind: dict[int, tuple[Values, int]] = {
        TOPIC_RESOURCE: ({**of_topic, **(values or {})}, topic_error),
        BROKER_RESOURCE: ({"message.max.bytes": "1048588"}, broker_error),
    }

    def respond(_: Broker, request: Any) -> bytes:
        results = tuple(described(r, *of_kind[int(r.resource_type)]) for r in request.resources)
        return answer(DESCRIBE_CONFIGS, VERSION, throttle_time=NO_THROTTLE, results=results)

    return respond


def levels(**finalized: int) -> bytes:
    """Return an answer with these levels of features."""
    kind = part(API_VERSIONS, 4, "FinalizedFeatureKey")
    return answer(
        API_VERSIONS,
        4,
        error_code=ErrorCode.none,
        api_keys=(),
        throttle_time=NO_THROTTLE,
        finalized_features_epoch=7,
        finalized_features=tuple(
            kind(name=name.replace("_", "."), max_version_level=level, min_version_level=level)
            for name, level in finalized.items()
        ),
    )


def observe(
    reader: ConfigReader,
    respond: Respond,
    placed: Partitions | None = None,
    brokers: tuple[Broker, ...] = (ME,),
) -> tuple[Partitions, Configs, list[str], ScriptedPool]:
    """Make one round; return what was filled in, all settings, the gaps and the pool."""

    def answer_to(asked: Broker, api: Api, request: Any) -> bytes | Failure:
        return levels(transaction_version=2) if api is API_VERSIONS else respond(asked, request)

    session, pool = scripted(brokers, answer_to)
    filled, configs = reader.collect(session, ORDERS if placed is None else placed)
    assert {gap.scope for gap in session.gaps} <= {GapScope.CONFIGS}
    return filled, configs, [f"{gap.what}: {gap.why}" for gap in session.gaps], pool


ORDERS = partitions({"orders": 1}, min_insync_replicas=UNKNOWN)


def late(_: Broker, __: Any) -> Failure:
    """Answer nothing."""
    return LATE


def test_one_request_a_minute_reads_topics_the_broker_and_no_more() -> None:
    reader = ConfigReader()
    filled, configs, gaps, pool = observe(reader, answering())
    [(_, request)] = pool.of(DESCRIBE_CONFIGS)
    assert [(r.resource_name, r.configuration_keys) for r in request.resources] == [
        ("1", BROKER_KEYS),
        ("orders", TOPIC_KEYS),
    ]
    assert filled.min_insync_replicas.to_list() == [2]
    assert filled.unclean_election_enabled.to_list() == [0]
    own = Config((ConfigEntry("message.max.bytes", "1048588", ConfigSource.DEFAULT),))
    assert (configs.brokers, gaps) == ({BrokerId(1): own}, [])
    assert configs.features is not None
    assert (configs.features.level("transaction.version"), configs.features.epoch) == (2, 7)
    again, same, _, pool = observe(reader, answering({"min.insync.replicas": "3"}))
    assert (again, same, pool.requests) == (filled, configs, [])


def test_failed_request_is_a_gap_in_every_round_until_it_succeeds() -> None:
    reader = ConfigReader()
    for _ in range(2):
        filled, configs, gaps, _ = observe(reader, late)
        assert filled.min_insync_replicas.to_list() == [None]
        assert gaps == [
            f"settings of 1 topic (orders): {LATE.why}",
            f"settings of broker 1: {LATE.why}",
        ]
        assert configs.topics.failed["orders"].cause is GapCause.TIMEOUT
    filled, configs, gaps, _ = observe(reader, answering())
    assert (filled.min_insync_replicas.to_list(), gaps) == ([2], [])
    assert (configs.topics.failed, configs.failed_brokers) == ({}, {})


def test_value_of_a_topic_is_kept_when_it_cannot_be_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = ConfigReader()
    observe(reader, answering())
    monkeypatch.setattr(collector, "MAX_AGE_SECONDS", 0.0)
    filled, configs, gaps, _ = observe(reader, late)
    assert filled.min_insync_replicas.to_list() == [2]
    assert (len(gaps), list(configs.topics.failed)) == (2, ["orders"])


def test_rejection_names_the_permission_and_a_broker_is_not_queried_in_every_round() -> None:
    reader = ConfigReader()
    rejecting = answering(
        topic_error=TOPIC_AUTHORIZATION_FAILED, broker_error=CLUSTER_AUTHORIZATION_FAILED
    )
    for expected in ({"1", "orders"}, {"orders"}):
        _, configs, gaps, pool = observe(reader, rejecting)
        [(_, request)] = pool.of(DESCRIBE_CONFIGS)
        assert {r.resource_name for r in request.resources} == expected
        assert "DESCRIBE_CONFIGS on Topic" in gaps[0]
        assert "DESCRIBE_CONFIGS on Cluster" in gaps[1]
        assert configs.failed_brokers[BrokerId(1)].cause is GapCause.NOT_AUTHORIZED


def test_topic_created_again_is_read_again() -> None:
    reader = ConfigReader()
    observe(reader, answering())
    again = partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=1),))
    filled, *_ = observe(reader, answering({"min.insync.replicas": "1"}), again)
    assert filled.min_insync_replicas.to_list() == [1]


@pytest.mark.parametrize(
    ("value", "column"),
    [
        pytest.param("true", [1], id="enabled"),
        pytest.param("false", [0], id="disabled"),
        pytest.param(None, [None], id="no-value"),
        pytest.param("perhaps", [None], id="no-truth-value"),
    ],
)
def test_unclean_elections_are_a_column(value: str | None, column: list[int | None]) -> None:
    respond = answering({"unclean.leader.election.enable": value})
    filled, *_ = observe(ConfigReader(), respond)
    assert filled.unclean_election_enabled.to_list() == column


def test_other_objects_only_where_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MAX_AGE_SECONDS", 0.0)
    reader = ConfigReader()
    filled, configs, *_ = observe(reader, answering())
    assert observe(reader, answering())[:2] == (filled, configs)
    same, changed, *_ = observe(reader, answering({"retention.ms": "1"}))
    assert (same is filled, changed is configs) == (True, False)
    unclean, *_ = observe(reader, answering({"unclean.leader.election.enable": "true"}))
    assert unclean.unclean_election_enabled.to_list() == [1]


def test_topics_with_the_same_settings_share_them() -> None:
    placed = partitions({"a": 1, "b": 1, "c": 1})

    def respond(asked: Broker, request: Any) -> bytes:
        del asked
        values = {
            "a": {"retention.ms": "1"},
            "b": {"retention.ms": "2"},
            "c": {"retention.ms": "1"},
        }
        results = tuple(described(r, values.get(r.resource_name, {})) for r in request.resources)
        return answer(DESCRIBE_CONFIGS, VERSION, throttle_time=NO_THROTTLE, results=results)

    _, configs, *_ = observe(ConfigReader(), respond, placed)
    assert configs.topics.of_topic.tolist() == [0, 1, 0]
    assert configs.topics.numbers("retention.ms").to_list() == [1, 2, 1]


def test_many_topics_are_spread_over_brokers_with_one_request_each() -> None:
    placed = partitions({f"t-{number:04}": 1 for number in range(1001)})
    _, configs, gaps, pool = observe(ConfigReader(), answering(), placed, THREE)
    queried = {asked.broker_id: request for asked, request in pool.of(DESCRIBE_CONFIGS)}
    shares = [{r.resource_name for r in request.resources} for request in queried.values()]
    assert [len(share) for share in shares] == [335, 335, 334]
    assert (len(set().union(*shares)), len(configs.brokers), gaps) == (1004, 3, [])


def test_topics_of_a_silent_broker_are_read_from_another_one() -> None:
    def respond(asked: Broker, request: Any) -> bytes | Failure:
        return LATE if asked is THREE[0] else answering()(asked, request)

    filled, configs, gaps, _ = observe(ConfigReader(), respond, ORDERS, THREE)
    assert filled.min_insync_replicas.to_list() == [2]
    assert list(configs.failed_brokers) == [BrokerId(1)]
    assert gaps == [f"settings of broker 1: {LATE.why}"]
