"""Clusters with chosen settings, and what the checks of posture say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rules.facts.column import Ragged
from rules.facts.configs import Config, Configs, ConfigSource, FailedRead, TopicConfigs
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot
from rules.posture.all_checks import judge_posture
from rules.posture.line import PostureLine
from rules.remembering import view_of_round
from rules.time_lag.lags import TimeLags
from rules.verdict import Verdict
from tests.factories import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    broker,
    config,
    feature_levels,
    partitions,
    snapshot,
)

DENIED = FailedRead(GapCause.NOT_AUTHORIZED, "TOPIC_AUTHORIZATION_FAILED")
LATE = FailedRead(GapCause.TIMEOUT, "no answer within 5.0 s")
Values = Mapping[str, "str | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic: how many replicas each of its partitions has, and the settings of its own."""

    replicas: Sequence[int | None] = (3,)
    settings: Values = field(default_factory=dict)


def cluster(
    topics: Mapping[str, Topic] | None = None,
    *,
    brokers: Mapping[int, Values] | None = None,
    failed_topics: Mapping[str, FailedRead] | None = None,
    failed_brokers: Mapping[int, FailedRead] | None = None,
    levels: Mapping[str, int] | None = None,
    **overrides: Any,
) -> Snapshot:
    """Return a snapshot of a cluster that is right, but for what is given."""
    given = {"orders": Topic()} if topics is None else topics
    rows = [count for topic in given.values() for count in topic.replicas]
    placed = partitions(
        {name: len(topic.replicas) for name, topic in given.items()},
        replicas=Ragged.of([None if n is None else tuple(range(1, n + 1)) for n in rows]),
    )
    own: dict[int, Values] = {1: {}, 2: {}, 3: {}} if brokers is None else dict(brokers)
    made = Configs(
        topics=TopicConfigs(
            distinct=tuple(_of_topic(name, topic) for name, topic in given.items()),
            of_topic=np.arange(len(given), dtype=np.int64),
            failed=failed_topics or {},
        ),
        brokers={BrokerId(n): _merged(BROKER_SETTINGS, v) for n, v in own.items()},
        failed_brokers={BrokerId(n): failed for n, failed in (failed_brokers or {}).items()},
        features=feature_levels(**(levels or {})),
    )
    listed = [broker(number) for number in {*own, *(failed_brokers or {})}]
    return snapshot(**({"partitions": placed, "brokers": listed, "configs": made} | overrides))


def _of_topic(name: str, topic: Topic) -> Config:
    policy = "compact" if name.startswith("__") else "delete"
    return _merged(TOPIC_SETTINGS | {"cleanup.policy": policy}, topic.settings, ConfigSource.TOPIC)


def _merged(base: Values, own: Values, source: ConfigSource = ConfigSource.STATIC_BROKER) -> Config:
    """Return settings of which some are set; one that is None is left out, as an older release does."""
    rest = {name: value for name, value in base.items() if name not in own}
    is_set = {name: value for name, value in own.items() if value is not None}
    entries = (*config(rest).entries, *config(is_set, source).entries)
    return Config(tuple(sorted(entries, key=lambda entry: entry.name)))


def lines_of(
    seen: Snapshot,
    check: str,
    *,
    transactional: Sequence[str] = (),
    time_lags: TimeLags | None = None,
) -> list[PostureLine]:
    """Return every line of a check; on some topics transactions were seen in earlier rounds."""
    view = view_of_round(seen, None)
    topics = {name: seen.partitions.id_of(name) for name in transactional}
    use = replace(view.memory.transactional_use, topics=topics)
    memory = replace(view.memory, transactional_use=use)
    posture = judge_posture(replace(view, memory=memory, time_lags=time_lags))
    [judgement] = [j for j in posture.judgements if j.check.check_id == check]
    return list(judgement.lines(*Verdict))


def said(lines: Sequence[PostureLine]) -> dict[str, tuple[str, str]]:
    """Return verdict and reason by name; of several lines with a name by name and setting."""
    names = [line.name for line in lines]
    return {
        line.name if names.count(line.name) == 1 else f"{line.name} {line.setting}": (
            line.verdict.name,
            str(line.reason),
        )
        for line in lines
    }
