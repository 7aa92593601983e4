"""Collects the topic settings that a verdict needs: `min.insync.replicas`.

Source: DescribeConfigs, which any broker answers with the effective value (topic, broker default
or Kafka's own). Settings change seldom, so that they are read again only after a minute.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from collectors.naming import counted, listed
from collectors.session import Session
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
TOPIC_RESOURCE: Final = 2


@dataclass(slots=True)
class TopicConfigReader:
    """Remembers each topic's `min.insync.replicas` for a minute."""

    _values: dict[str, int | None] = field(default_factory=dict)
    _read_at: dict[str, float] = field(default_factory=dict)
    _ids: dict[str, TopicId | None] = field(default_factory=dict)
    _filled: tuple[Partitions, Partitions] | None = None  # what was given, what was returned

    def collect(self, session: Session, partitions: Partitions) -> Partitions:
        """Return the partitions with `min_insync_replicas` filled in.

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
            # What could not be read keeps its last value and is asked again in the next round.
            read = _read(session, stale)
            self._values.update(read)
            self._read_at.update(dict.fromkeys(read, now))
        return self._fill(partitions)

    def _forget_others(self, partitions: Partitions) -> None:
        """Forget deleted topics, and those that were created again under the same name."""
        ids = dict(zip(partitions.index.topics, partitions.topic_ids, strict=True))
        same = {topic for topic, known in self._ids.items() if ids.get(topic, known) == known}
        self._ids = ids
        self._values = {t: v for t, v in self._values.items() if t in ids and t in same}
        self._read_at = {t: v for t, v in self._read_at.items() if t in ids and t in same}

    def _fill(self, partitions: Partitions) -> Partitions:
        per_topic = Column.of(self._values.get(topic) for topic in partitions.index.topics)
        column = per_topic.take(partitions.index.topic_of_row)
        if self._filled is not None and self._filled[0] is partitions:
            before = self._filled[1].min_insync_replicas
            if np.array_equal(before.values, column.values) and np.array_equal(
                before.valid, column.valid
            ):
                return self._filled[1]
        filled = replace(partitions, min_insync_replicas=column)
        self._filled = (partitions, filled)
        return filled


def _read(session: Session, topics: Sequence[str]) -> dict[str, int | None]:
    answer = session.ask_any(DESCRIBE_CONFIGS, lambda version: _request(version, topics))
    if isinstance(answer, Failure):
        what = f"{MIN_INSYNC_REPLICAS} of {counted(len(topics), 'topic')}"
        session.add_gap(GapScope.CONFIGS, what, answer)
        return {}
    _report_refusals(session, answer.results)
    return {
        result.resource_name: _value(result)
        for result in answer.results
        if int(result.error_code) == codec.NO_ERROR
    }


def _request(version: int, topics: Sequence[str]) -> bytes:
    resource = codec.message(DESCRIBE_CONFIGS, version, "DescribeConfigsResource")
    request = codec.message(DESCRIBE_CONFIGS, version, "DescribeConfigsRequest")
    asked = tuple(
        resource(
            resource_type=TOPIC_RESOURCE,
            resource_name=topic,
            configuration_keys=(MIN_INSYNC_REPLICAS,),
        )
        for topic in topics
    )
    return codec.encode(request(resources=asked))


def _value(result: Any) -> int | None:
    for config in result.configs:
        if config.name == MIN_INSYNC_REPLICAS and config.value is not None:
            return int(config.value)
    return None


def _report_refusals(session: Session, results: Sequence[Any]) -> None:
    refused: dict[int, list[str]] = {}
    for result in results:
        if int(result.error_code) != codec.NO_ERROR:
            refused.setdefault(int(result.error_code), []).append(result.resource_name)
    for code, topics in refused.items():
        what = f"{MIN_INSYNC_REPLICAS} of {counted(len(topics), 'topic')} ({listed(topics)})"
        failure = failure_of(code, "DescribeConfigs", needs="DESCRIBE_CONFIGS on Topic")
        session.add_gap(GapScope.CONFIGS, what, failure)
