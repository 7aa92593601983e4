"""Which settings and feature levels changed, and what only looks like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from collectors.configs import MAX_AGE_SECONDS
from rules.changes.settings import READ_WITHIN
from rules.facts.change_events import ChangeEvent
from rules.facts.configs import (
    Config,
    ConfigEntry,
    Configs,
    ConfigSource,
    FeatureLevels,
    TopicConfigs,
)
from rules.facts.identity import BrokerId
from rules.facts.last_observation import microseconds
from rules.facts.memory import Memory
from rules.facts.snapshot import Snapshot
from tests.factories import at
from tests.unit.rules.changes.rounds import observed, placed, play

OWN, INHERITED, STATIC = ConfigSource.TOPIC, ConfigSource.DEFAULT, ConfigSource.STATIC_BROKER
DYNAMIC = ConfigSource.DYNAMIC_DEFAULT_BROKER
WEEK, MINUTE = ("604800000", INHERITED), ("60000", OWN)

Value = tuple[str | None, ConfigSource]
Told = tuple[str, str, str, str | None, str | None]  # kind, subjects, name, before, after


def config(**values: Value) -> Config:
    """Return settings; an underscore stands for a dot."""
    return Config(
        tuple(ConfigEntry(name.replace("_", "."), *value) for name, value in values.items())
    )


def settings(
    topics: Mapping[str, Config | None],
    brokers: Mapping[int, Config] | None = None,
    features: FeatureLevels | None = None,
) -> dict[str, Any]:
    """Return what a round read; None: the settings of a topic were never read."""
    distinct = tuple(dict.fromkeys(each for each in topics.values() if each is not None))
    places = [-1 if each is None else distinct.index(each) for each in topics.values()]
    configs = Configs(
        topics=TopicConfigs(distinct=distinct, of_topic=np.array(places, np.int64)),
        brokers={BrokerId(broker): each for broker, each in (brokers or {}).items()},
        features=features,
    )
    return {"partitions": placed(dict.fromkeys(topics, 1)), "configs": configs}


def levels(epoch: int | None, **finalized: int) -> FeatureLevels:
    """Return levels of a broker that supports these features; one at 0 is not finalized."""
    named = {name.replace("_", "."): level for name, level in finalized.items()}
    return FeatureLevels(
        finalized={name: level for name, level in named.items() if level},
        supported=dict.fromkeys(named, (0, 30)),
        epoch=epoch,
    )


def brokers(*each: Config) -> dict[str, Any]:
    return settings({}, dict(enumerate(each, 1)))


def rounds(*seen: Mapping[str, Any]) -> list[Snapshot]:
    return [observed(60 * number, **each) for number, each in enumerate(seen)]


def told(events: list[ChangeEvent]) -> list[Told]:
    return [
        (
            event.kind.value,
            ", ".join(str(each.topic or each.broker or "") for each in event.subjects),
            event.subjects[0].setting or event.subjects[0].feature or "",
            _state(event.subjects[0].before, event.subjects[0].before_source),
            _state(event.subjects[0].after, event.subjects[0].after_source),
        )
        for event in events
    ]


def _state(value: str | None, source: str | None) -> str | None:
    return value if source is None else f"{value} {source}"


class Case(NamedTuple):
    """What rounds read, and the change events that it shows."""

    name: str
    why: str
    rounds: list[Snapshot]
    expected: list[Told]


RETENTION = ("setting_changed", "orders", "retention.ms", "604800000 default", "60000 topic")
CASES = [
    Case(
        "topic",
        "a value of its own instead of one that is inherited, and back",
        rounds(
            settings({"orders": config(retention_ms=WEEK)}),
            settings({"orders": config(retention_ms=MINUTE)}),
            settings({"orders": config(retention_ms=MINUTE)}),
            settings({"orders": config(retention_ms=WEEK)}),
        ),
        [
            RETENTION,
            ("setting_changed", "orders", "retention.ms", "60000 topic", "604800000 default"),
        ],
    ),
    Case(
        "only_the_source",
        "the same value is the topic's own now, and outlives a change of the broker's",
        rounds(
            settings({"orders": config(retention_ms=WEEK)}),
            settings({"orders": config(retention_ms=("604800000", OWN))}),
        ),
        [("setting_changed", "orders", "retention.ms", "604800000 default", "604800000 topic")],
    ),
    Case(
        "inherited",
        "any broker answers for a topic, each with what it would inherit there",
        rounds(
            settings({"orders": config(retention_ms=WEEK)}),
            settings({"orders": config(retention_ms=("1", STATIC))}),
        ),
        [],
    ),
    Case(
        "unread",
        "settings that are not read are those that were known, and compared when they are read again",
        rounds(
            settings({"orders": config(retention_ms=WEEK)}),
            settings({"orders": None}),
            settings({"orders": config(retention_ms=MINUTE)}),
        ),
        [RETENTION],
    ),
    Case(
        "no_list_of_topics",
        "likewise where the list of topics could not be read",
        [
            *rounds(settings({"orders": config(retention_ms=WEEK)})),
            observed(60, **settings({}), placement_read=False, placement_complete=False),
            observed(120, **settings({"orders": config(retention_ms=MINUTE)})),
        ],
        [RETENTION],
    ),
    Case(
        "another_release",
        "a setting that only one release has did not change",
        rounds(
            settings({"orders": config(retention_ms=WEEK)}),
            settings({"orders": config(retention_ms=WEEK, segment_ms=MINUTE)}),
        ),
        [],
    ),
    Case(
        "sensitive",
        "a value that is absent in both answers is the same as far as is known",
        rounds(
            settings({"orders": config(retention_ms=(None, OWN))}),
            settings({"orders": config(retention_ms=(None, OWN))}),
        ),
        [],
    ),
    Case(
        "dynamic_default_of_brokers",
        "the same change of all brokers is one event",
        rounds(
            brokers(*[config(message_max_bytes=("1", STATIC))] * 3),
            brokers(*[config(message_max_bytes=("2", DYNAMIC))] * 3),
        ),
        [
            (
                "setting_changed",
                "1, 2, 3",
                "message.max.bytes",
                "1 static_broker",
                "2 dynamic_default_broker",
            )
        ],
    ),
    Case(
        "a_broker_that_applies_a_change",
        "for a moment it answers with the new source and the value before",
        rounds(
            brokers(config(message_max_bytes=("1", STATIC))),
            brokers(config(message_max_bytes=("1", DYNAMIC))),
            brokers(config(message_max_bytes=("2", DYNAMIC))),
        ),
        [
            (
                "setting_changed",
                "1",
                "message.max.bytes",
                "1 static_broker",
                "2 dynamic_default_broker",
            )
        ],
    ),
    Case(
        "one_broker_did_not_answer",
        "its settings are those that were known, and compared when it answers again",
        rounds(
            brokers(config(message_max_bytes=("1", STATIC))),
            brokers(),
            brokers(config(message_max_bytes=("2", STATIC))),
        ),
        [("setting_changed", "1", "message.max.bytes", "1 static_broker", "2 static_broker")],
    ),
    Case(
        "feature_levels",
        "a feature that is not finalized has level 0",
        rounds(
            settings({}, features=levels(5, metadata_version=27, transaction_version=0)),
            settings({}, features=levels(6, metadata_version=26, transaction_version=2)),
        ),
        [
            ("feature_level_lowered", "", "metadata.version", "27", "26"),
            ("feature_level_raised", "", "transaction.version", "0", "2"),
        ],
    ),
    Case(
        "features_of_another_release",
        "a broker of a newer release has a feature that the others do not know",
        rounds(
            settings({}, features=levels(5, transaction_version=2)),
            settings({}, features=levels(6, transaction_version=2, kraft_version=1)),
            settings({}, features=levels(6, transaction_version=2)),
        ),
        [],
    ),
    Case(
        "older_feature_levels",
        "a broker that is behind answers with an earlier epoch, one that knows none with none",
        rounds(
            settings({}, features=levels(6, transaction_version=2)),
            settings({}, features=levels(5)),
            settings({}, features=levels(None)),
            settings({}, features=None),
            settings({}, features=levels(6, transaction_version=2)),
        ),
        [],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    events, _ = play(case.rounds)
    assert told(events) == case.expected, case.why


def test_a_setting_of_ten_thousand_topics_is_one_event() -> None:
    topics = [f"t-{number:05}" for number in range(10_000)]
    before = dict.fromkeys(topics, config(retention_ms=WEEK))
    [event], _ = play(
        rounds(settings(before), settings(dict.fromkeys(topics, config(retention_ms=MINUTE))))
    )
    assert (event.count, len(event.topics)) == (10_000, 10_000)


def test_settings_may_have_been_read_a_minute_before_the_round() -> None:
    assert READ_WITHIN.total_seconds() == MAX_AGE_SECONDS
    first, second = (
        settings({"orders": config(retention_ms=WEEK)}),
        settings({"orders": config(retention_ms=MINUTE)}),
    )
    [event], _ = play(rounds(first, second))
    assert (event.since_us, event.seen_us) == (microseconds(at(-60)), microseconds(at(60)))


def test_settings_of_topics_that_come_and_go_are_matched_by_name() -> None:
    _, memory = play(
        rounds(settings({"b": config(retention_ms=WEEK), "c": config(retention_ms=MINUTE)}))
    )
    after = {"a": None, "b": config(retention_ms=MINUTE), "c": config(retention_ms=MINUTE)}
    events = _settings_events(observed(60, **settings(after)), memory)
    assert [event.topics for event in events] == [("b",)]


def _settings_events(snapshot: Snapshot, memory: Memory) -> list[ChangeEvent]:
    events, _ = play([snapshot], memory)
    return [event for event in events if event.kind == "setting_changed"]
