"""Collects the topic settings that a verdict needs.

These are `min.insync.replicas` and `unclean.leader.election.enable`. An unclean election may happen
without the latter: by hand, or of the last known leader (KIP-966).
Source: DescribeConfigs, which any broker answers with the effective value (topic, broker default
or Kafka's own). Settings change seldom, so that they are read again only after a minute.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from collectors.naming import counted
from collectors.session import Session, body_of
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_CONFIGS
from collectors.wire.failure import Failure
from rules.facts.column import Column
from rules.facts.gap import GapScope
from rules.facts.identity import TopicId
from rules.facts.partitions import Partitions

MAX_AGE_SECONDS: Final = 60.0
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"
TOPIC_RESOURCE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """The effective settings of one topic; None if the answer lacks them."""

    min_insync_replicas: int | None = None
    unclean_election_enabled: int | None = None  # 1 or 0


_UNKNOWN: Final = _Settings()
_NAMED: Final = f"{MIN_INSYNC_REPLICAS} and {UNCLEAN_ELECTION}"
_AS_COLUMN: Final = {"true": 1, "false": 0}


@dataclass(slots=True)
class TopicConfigReader:
    """Remembers each topic's settings for a minute."""

    _values: dict[str, _Settings] = field(default_factory=dict)
    _read_at: dict[str, float] = field(default_factory=dict)
    _ids: dict[str, TopicId | None] = field(default_factory=dict)
    _filled: tuple[Partitions, Partitions] | None = None  # the last argument and its result

    def collect(self, session: Session, partitions: Partitions) -> Partitions:
        """Return the partitions with the columns of settings filled in.

        The same object is returned for the same partitions while no setting changed.
        """
        if self._filled is None or self._filled[0] is not partitions:
            self._forget_others(partitions)
        now = time.monotonic()
        stale = [
            topic
            for topic in partitions.index.topics
            if now - self._read_at.get(topic, -MAX_AGE_SECONDS) >= MAX_AGE_SECONDS
        ]
        if stale:
            # A setting that could not be read keeps its last value and is queried in the next round.
            read = _read(session, stale)
            self._values.update(read)
            self._read_at.update(dict.fromkeys(read, now))
        return self._fill(partitions)

    def _forget_others(self, partitions: Partitions) -> None:
        """Forget deleted topics, and those that were created again under the same name."""
        ids = dict(zip(partitions.index.topics, partitions.topic_ids, strict=True))
        same = {
            topic for topic, topic_id in self._ids.items() if ids.get(topic, topic_id) == topic_id
        }
        self._ids = ids
        self._values = {t: v for t, v in self._values.items() if t in ids and t in same}
        self._read_at = {t: v for t, v in self._read_at.items() if t in ids and t in same}

    def _fill(self, partitions: Partitions) -> Partitions:
        by_topic = [self._values.get(topic, _UNKNOWN) for topic in partitions.index.topics]
        topic_of_row = partitions.index.topic_of_row
        in_sync = Column.of(settings.min_insync_replicas for settings in by_topic).take(
            topic_of_row
        )
        unclean = Column.of(settings.unclean_election_enabled for settings in by_topic).take(
            topic_of_row
        )
        if self._filled is not None and self._filled[0] is partitions:
            before = self._filled[1]
            if _is_equal(before.min_insync_replicas, in_sync) and _is_equal(
                before.unclean_election_enabled, unclean
            ):
                return before
        filled = replace(partitions, min_insync_replicas=in_sync, unclean_election_enabled=unclean)
        self._filled = (partitions, filled)
        return filled


def _is_equal(column: Column, other: Column) -> bool:
    return np.array_equal(column.values, other.values) and np.array_equal(column.valid, other.valid)


def _read(session: Session, topics: Sequence[str]) -> dict[str, _Settings]:
    resources = [
        {
            "resource_type": TOPIC_RESOURCE,
            "resource_name": topic,
            "configuration_keys": (MIN_INSYNC_REPLICAS, UNCLEAN_ELECTION),
        }
        for topic in topics
    ]
    answer = session.request_any(DESCRIBE_CONFIGS, body_of(DESCRIBE_CONFIGS, resources=resources))
    if isinstance(answer, Failure):
        what = f"{_NAMED} of {counted(len(topics), 'topic')}"
        session.add_gap(GapScope.CONFIGS, what, answer)
        return {}
    _report_rejections(session, answer.results)
    return {
        result.resource_name: _settings(result)
        for result in answer.results
        if int(result.error_code) == codec.NO_ERROR
    }


def _settings(result: Any) -> _Settings:
    values: Mapping[str, str | None] = {config.name: config.value for config in result.configs}
    in_sync = values.get(MIN_INSYNC_REPLICAS)
    return _Settings(
        min_insync_replicas=None if in_sync is None else int(in_sync),
        unclean_election_enabled=_AS_COLUMN.get(values.get(UNCLEAN_ELECTION) or ""),
    )


def _report_rejections(session: Session, results: Sequence[Any]) -> None:
    needs = "DESCRIBE_CONFIGS on Topic"
    failed = [
        (failure_of(int(result.error_code), "DescribeConfigs", needs=needs), result.resource_name)
        for result in results
        if int(result.error_code) != codec.NO_ERROR
    ]
    session.add_gaps(GapScope.CONFIGS, f"{_NAMED} of", failed, noun="topic")
