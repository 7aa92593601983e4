"""Batches without a producer id: which partitions are named, how bad it is, and for how long."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rules.facts.batch_samples import BatchSamples, WriterSample
from rules.facts.configs import Config, ConfigEntry, Configs, ConfigSource, TopicConfigs
from rules.posture.checks.client_idempotence import Why, judge
from rules.verdict import Severity
from tests.factories import at, ints
from tests.unit.rules.posture.client_rounds import (
    named,
    rounds,
    sample,
    sampled,
    view_after,
    writer,
)


@pytest.mark.parametrize(
    ("writers", "reason", "severity"),
    [
        pytest.param((writer(None, 5),), Why.ONLY_NOT_IDEMPOTENT, Severity.INFO, id="alone"),
        pytest.param(
            (writer(None, 5), writer(7, 6)),
            Why.NOT_IDEMPOTENT,
            Severity.WARNING,
            id="beside-an-idempotent-one",
        ),
        pytest.param(
            (writer(None, 5), writer(7, 6, is_transactional=True)),
            Why.NOT_IDEMPOTENT,
            Severity.WARNING,
            id="beside-transactions",
        ),
    ],
)
def test_a_partition_is_named_with_its_times(
    writers: tuple[WriterSample, ...], reason: Why, severity: Severity
) -> None:
    [line] = named(judge, view_after(rounds(sampled(sample(*writers)))))
    assert (line.name, line.reason, line.severity) == (
        "producers without an id on orders-0",
        reason,
        severity,
    )
    assert line.evidence["last_record_time"] == "2025-06-02T12:00:05.000+00:00"
    assert line.evidence["last_observed_at"] == "2025-06-02T12:00:00.000+00:00"
    assert "acks it uses cannot be seen" in line.consequence


def test_idempotent_and_transactional_producers_are_not_named() -> None:
    writers = sample(writer(7, 5), writer(8, 6, is_transactional=True))
    assert named(judge, view_after(rounds(sampled(writers)))) == []


@pytest.mark.parametrize(
    ("policy", "writers", "reasons"),
    [
        pytest.param("compact", (writer(None, 5),), [], id="as-connect-writes-to-its-own-topics"),
        pytest.param(
            "compact", (writer(None, 5), writer(7, 6)), [Why.NOT_IDEMPOTENT], id="beside-another"
        ),
        pytest.param("delete", (writer(None, 5),), [Why.ONLY_NOT_IDEMPOTENT], id="deleted"),
        pytest.param("compact,delete", (writer(None, 5),), [Why.ONLY_NOT_IDEMPOTENT], id="both"),
        pytest.param(None, (writer(None, 5),), [Why.ONLY_NOT_IDEMPOTENT], id="never-read"),
    ],
)
def test_of_a_compacted_topic_alone_nothing_is_said(
    policy: str | None, writers: tuple[WriterSample, ...], reasons: list[Why]
) -> None:
    entries = () if policy is None else (ConfigEntry("cleanup.policy", policy, ConfigSource.TOPIC),)
    topics = TopicConfigs(distinct=(Config(entries),), of_topic=ints(0))
    seen = rounds(sampled(sample(*writers)), configs=Configs(topics=topics))
    assert [line.reason for line in named(judge, view_after(seen))] == reasons


def test_a_record_without_a_time_has_none() -> None:
    timeless = writer(None, 5, first_record_at=None, last_record_at=None)
    [line] = named(judge, view_after(rounds(sampled(sample(timeless)))))
    assert line.evidence["last_record_time"] is None
    assert "record time not set" in line.consequence


def test_it_is_forgotten_after_a_day() -> None:
    view = view_after(rounds(sampled(sample(writer(None, 5)))))
    [later] = rounds(BatchSamples.unread())
    for passed, count in ((timedelta(hours=23), 1), (timedelta(hours=25), 0)):
        moved = replace(later, taken_at=at(0) + passed)
        assert len(named(judge, view_after([moved], view.memory))) == count
