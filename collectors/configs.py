"""Collects the settings of topics and brokers, and the feature levels of the cluster.

Settings change seldom, so that they are read again only after a minute: with one request to each broker,
for its own settings and those of its share of the topics. Any broker answers for a topic, with the effective
value (topic, broker default or Kafka's own), and only a broker itself for its own settings.
An unclean election may happen without `unclean.leader.election.enable`: by hand, or of the last known
leader (KIP-966).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

import numpy as np

from collectors import features
from collectors.naming import grouped, listed, summarize
from collectors.session import PATIENCE_SECONDS, Build, Request, Response, Session
from collectors.translate import failure_of
from collectors.wire import codec
from collectors.wire.api import DESCRIBE_CONFIGS
from collectors.wire.config_answers import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigAnswerReader,
    DescribedConfig,
    configs_body,
)
from collectors.wire.failure import Failure
from rules.facts.config_keys import BROKER_KEYS, MIN_INSYNC_REPLICAS, TOPIC_KEYS, UNCLEAN_ELECTION
from rules.facts.configs import Config, Configs, FailedRead, TopicConfigs
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import Broker, BrokerId, TopicId
from rules.facts.partitions import Partitions
from rules.facts.permissions import BROKER_CONFIGS, TOPIC_CONFIGS

MAX_AGE_SECONDS: Final = 60.0
FEW_TOPICS: Final = 500  # are not worth a request to a further broker
_Name = TypeVar("_Name", bound=Hashable)


@dataclass(slots=True)
class _Readings(Generic[_Name]):
    """What is known of the resources of one kind, by name."""

    configs: dict[_Name, Config] = field(default_factory=dict)
    failed: dict[_Name, Failure] = field(default_factory=dict)
    read_at: dict[_Name, float] = field(default_factory=dict)  # or rejected at: monotonic seconds

    def stale(self, names: Iterable[_Name], now: float) -> list[_Name]:
        """Return the names that were not read within a minute, in their order."""
        due = now - MAX_AGE_SECONDS
        return [name for name in names if self.read_at.get(name, due) <= due]

    def keep(self, names: set[_Name]) -> None:
        """Forget all others."""
        self.configs = {name: v for name, v in self.configs.items() if name in names}
        self.failed = {name: v for name, v in self.failed.items() if name in names}
        self.read_at = {name: v for name, v in self.read_at.items() if name in names}

    def fail(self, names: Iterable[_Name], failure: Failure) -> None:
        """Note that nothing was answered; they are queried in the next round."""
        self.failed.update(dict.fromkeys(names, failure))

    def note(self, name: _Name, described: DescribedConfig, needs: str, now: float) -> None:
        """Note an answer, be it an error."""
        if described.error == codec.NO_ERROR:
            self.configs[name], self.read_at[name] = described.config, now
            self.failed.pop(name, None)
            return
        failure = failure_of(described.error, "DescribeConfigs", needs=needs)
        self.failed[name] = failure

    def failed_reads(self) -> dict[_Name, FailedRead]:
        """Return why the last reads failed."""
        return {name: FailedRead(f.cause, f.why) for name, f in self.failed.items()}


@dataclass(frozen=True, slots=True)
class _Share:
    """What one broker is queried for."""

    broker: Broker
    topics: Sequence[str]
    is_for_itself: bool

    @property
    def body(self) -> bytes:
        itself = [str(self.broker.broker_id)] if self.is_for_itself else []
        return configs_body(
            (BROKER_RESOURCE, itself, BROKER_KEYS), (TOPIC_RESOURCE, self.topics, TOPIC_KEYS)
        )


@dataclass(slots=True)
class ConfigReader:
    """Remembers all settings for a minute."""

    _topics: _Readings[str] = field(default_factory=_Readings)
    _brokers: _Readings[BrokerId] = field(default_factory=_Readings)
    _features: features.FeatureReader = field(default_factory=features.FeatureReader)
    _answers: ConfigAnswerReader = field(default_factory=ConfigAnswerReader)
    _ids: dict[str, TopicId | None] = field(default_factory=dict)
    _placed: Partitions | None = None  # the last argument
    _filled: Partitions = field(default_factory=Partitions.none)  # and the result
    _configs: Configs = field(default_factory=Configs.unread)

    def collect(self, session: Session, partitions: Partitions) -> tuple[Partitions, Configs]:
        """Return the partitions with the columns of settings filled in, and all settings.

        The same objects are returned for the same partitions while no setting changed.
        """
        has_changed = self._placed is not partitions
        if has_changed:
            self._forget_others(partitions)
        has_changed |= self._read(session, partitions.index.topics)
        has_changed |= self._features.collect(session, MAX_AGE_SECONDS)
        self._report(session)
        if has_changed:
            self._build(partitions)
        return self._filled, self._configs

    def _forget_others(self, partitions: Partitions) -> None:
        """Forget deleted topics, and those that were created again under the same name."""
        ids = dict(zip(partitions.index.topics, partitions.topic_ids, strict=True))
        self._topics.keep(
            {name for name, before in self._ids.items() if name in ids and ids[name] == before}
        )
        self._ids = ids

    def _read(self, session: Session, topics: Sequence[str]) -> bool:
        """Query what is older than a minute; return whether anything was."""
        now = time.monotonic()
        ready = session.ready_brokers()
        self._note_absent(session, ready)
        stale = self._topics.stale(topics, now)
        itself = set(self._brokers.stale([broker.broker_id for broker in ready], now))
        shares = _shares(ready, stale, itself)
        if not shares:
            self._topics.fail(stale, Failure(GapCause.UNREACHABLE, "no broker could be queried"))
            return bool(stale)
        patience = PATIENCE_SECONDS if len(ready) > 1 else None
        requests = [Request(s.broker, DESCRIBE_CONFIGS, _constant(s.body)) for s in shares]
        unanswered: list[str] = []
        for share, response in zip(shares, session.exchange(requests, patience), strict=True):
            failure = self._take(response, now)
            if failure is not None:
                unanswered.extend(share.topics)
                self._topics.fail(share.topics, failure)
                self._brokers.fail([share.broker.broker_id] * share.is_for_itself, failure)
        if unanswered and len(ready) > 1:
            self._read_elsewhere(session, unanswered, now)
        return True

    def _read_elsewhere(self, session: Session, topics: Sequence[str], now: float) -> None:
        """Query topics of which a broker said nothing from one that answers."""
        body = configs_body((TOPIC_RESOURCE, topics, TOPIC_KEYS))
        response = session.exchange_any(DESCRIBE_CONFIGS, _constant(body))
        failure = response if isinstance(response, Failure) else self._take(response, now)
        if failure is not None:
            self._topics.fail(topics, failure)

    def _take(self, response: Response, now: float) -> Failure | None:
        """Note what an answer says; return why there is none."""
        results = response.read_by(self._answers.read)
        if isinstance(results, Failure):
            return results
        for described in results:
            if described.resource == TOPIC_RESOURCE:
                self._topics.note(described.name, described, TOPIC_CONFIGS, now)
            elif described.resource == BROKER_RESOURCE:
                broker = response.request.broker.broker_id
                self._brokers.note(broker, described, BROKER_CONFIGS, now)
                # A rejection is an answer: it is not asked for again in every round.
                self._brokers.read_at[broker] = now
        return None

    def _note_absent(self, session: Session, ready: Sequence[Broker]) -> None:
        self._brokers.keep({broker.broker_id for broker in session.brokers})
        for broker in session.brokers:
            if broker not in ready:
                failure = Failure(GapCause.UNREACHABLE, f"{broker}: not connected")
                self._brokers.fail([broker.broker_id], failure)
                self._brokers.read_at.pop(broker.broker_id, None)

    def _report(self, session: Session) -> None:
        """Add what could not be read; that a broker is not connected is a gap of its own."""
        for failure, topics in _by_failure(self._topics.failed):
            names = summarize(sorted(topics), "topic")
            session.add_gap(GapScope.CONFIGS, f"settings of {names}", failure)
        connected = {broker.broker_id for broker in session.ready_brokers()}
        failed = {name: f for name, f in self._brokers.failed.items() if name in connected}
        for failure, brokers in _by_failure(failed):
            names = listed([str(broker) for broker in sorted(brokers)])
            session.add_gap(GapScope.CONFIGS, f"settings of broker {names}", failure)
        if self._features.failure is not None:
            session.add_gap(GapScope.CONFIGS, "feature levels", self._features.failure)

    def _build(self, partitions: Partitions) -> None:
        """Make the result of what is known; nothing that is equal is made anew."""
        self._answers.keep([*self._topics.configs.values(), *self._brokers.configs.values()])
        topics = self._topic_configs(partitions.index.topics)
        failure = self._features.failure
        configs = Configs(
            topics=topics,
            brokers=dict(sorted(self._brokers.configs.items())),
            failed_brokers=dict(sorted(self._brokers.failed_reads().items())),
            features=self._features.levels,
            failed_features=None if failure is None else FailedRead(failure.cause, failure.why),
        )
        if not _is_equal(self._configs, configs):
            self._configs = configs
        filled = _fill(partitions, topics)
        if self._placed is not partitions or not _are_alike(self._filled, filled):
            self._filled = filled
        self._placed = partitions

    def _topic_configs(self, names: Sequence[str]) -> TopicConfigs:
        places: dict[int, int] = {}
        distinct: list[Config] = []
        of_topic = np.full(len(names), -1, np.int64)
        for position, name in enumerate(names):
            config = self._topics.configs.get(name)
            if config is None:
                continue
            place = places.setdefault(id(config), len(distinct))
            if place == len(distinct):
                distinct.append(config)
            of_topic[position] = place
        topics = TopicConfigs(
            distinct=tuple(distinct), of_topic=of_topic, failed=self._topics.failed_reads()
        )
        before = self._configs.topics
        return before if _are_equal_topics(before, topics) else topics


def _shares(ready: Sequence[Broker], topics: Sequence[str], itself: set[BrokerId]) -> list[_Share]:
    """Spread the topics over brokers that are queried anyway, and over others where there are many."""
    brokers = sorted(ready, key=lambda broker: broker.broker_id not in itself)
    count = min(len(brokers), -(-len(topics) // FEW_TOPICS))
    size = -(-len(topics) // count) if count else 0
    shares = [
        _Share(broker, topics[number * size : (number + 1) * size], broker.broker_id in itself)
        for number, broker in enumerate(brokers)
    ]
    return [share for share in shares if share.topics or share.is_for_itself]


def _constant(body: bytes) -> Build:
    return lambda _version: body


def _by_failure(failed: dict[_Name, Failure]) -> Iterable[tuple[Failure, list[_Name]]]:
    return grouped((failure, name) for name, failure in failed.items()).items()


def _is_equal(configs: Configs, other: Configs) -> bool:
    return (
        configs.topics is other.topics
        and configs.brokers == other.brokers
        and configs.failed_brokers == other.failed_brokers
        and configs.features == other.features
        and configs.failed_features == other.failed_features
    )


def _are_equal_topics(topics: TopicConfigs, other: TopicConfigs) -> bool:
    return (
        topics.distinct == other.distinct
        and topics.failed == other.failed
        and np.array_equal(topics.of_topic, other.of_topic)
    )


def _are_alike(partitions: Partitions, other: Partitions) -> bool:
    """Whether the same placement has the same columns of settings."""
    columns = [(p.min_insync_replicas, p.unclean_election_enabled) for p in (partitions, other)]
    return all(
        np.array_equal(before.values, after.values) and np.array_equal(before.valid, after.valid)
        for before, after in zip(*columns, strict=True)
    )


def _fill(partitions: Partitions, topics: TopicConfigs) -> Partitions:
    """Return the partitions with what rules of losses need of the settings of their topics."""
    of_row = partitions.index.topic_of_row
    return replace(
        partitions,
        min_insync_replicas=topics.numbers(MIN_INSYNC_REPLICAS).take(of_row),
        unclean_election_enabled=topics.flags(UNCLEAN_ELECTION).take(of_row),
    )
