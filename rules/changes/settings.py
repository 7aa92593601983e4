"""Which settings changed, of topics and of brokers, and which feature levels were raised or lowered.

What a topic inherits, from a broker or from Kafka itself, is no setting of the topic: any broker answers for it,
each with its own value, and a change of it is one of the brokers. A setting that only one of two answers has is one
that a release lacks, and a value that is sensitive is absent in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

import numpy as np

from rules.changes.grouping import Change
from rules.facts.change_events import ChangedSubject, ChangeEventKind
from rules.facts.column import Int64s
from rules.facts.configs import (
    Config,
    ConfigEntry,
    Configs,
    ConfigSource,
    FeatureLevels,
    TopicConfigs,
)
from rules.facts.identity import are_different
from rules.facts.known_settings import KnownSettings
from rules.facts.partitions import Partitions
from rules.facts.times import MICROSECOND

# Settings of a round may have been read so much earlier (`collectors.configs`).
READ_WITHIN: Final = timedelta(minutes=1)


def observed_settings(
    configs: Configs, partitions: Partitions | None, now_us: int
) -> KnownSettings:
    """Return the settings that a round has; without a list of topics, those of brokers alone."""
    features = configs.features
    return KnownSettings(
        partitions=partitions,
        topics=configs.topics,
        brokers={int(broker): config for broker, config in configs.brokers.items()},
        features=None if features is None else _levels(features),
        features_epoch=None if features is None else features.epoch,
        seen_us=now_us,
    )


def advance_settings(
    new: KnownSettings, old: KnownSettings, changes: list[Change]
) -> KnownSettings:
    """Return the settings that are known after an observation; add what changed of them."""
    since_us = old.seen_us - READ_WITHIN // MICROSECOND if old.seen_us else None
    partitions, topics = new.partitions, new.topics
    if partitions is None:
        partitions, topics = old.partitions, old.topics
    elif old.partitions is not None and not _are_same(new, old):
        places = _places_before(partitions, old.partitions, old.topics)
        changes += _compare_topics(new.topics, partitions, old.topics, places, since_us)
        topics = _filled(new.topics, old.topics, places)
    brokers = {
        **old.brokers,
        **{
            broker: _settled(after, old.brokers.get(broker))
            for broker, after in new.brokers.items()
        },
    }
    changes += _compare_brokers(brokers, old.brokers, since_us)
    features, epoch = new.features, new.features_epoch
    if features is None or _is_older(new, old):
        features, epoch = old.features, old.features_epoch
    elif old.features is not None and features != old.features:
        changes += _compare_features(features, old.features, since_us)
    return KnownSettings(
        partitions=partitions,
        topics=topics,
        brokers=brokers,
        features=features,
        features_epoch=epoch,
        seen_us=new.seen_us,
    )


def _places_before(new: Partitions, old: Partitions, topics: TopicConfigs) -> Int64s:
    """Return per topic of `new` the position of its settings before, -1 where none are known."""
    places = np.full(len(new.index.topics), -1, np.int64)
    positions, count = old.index.position_of_topic, len(topics.of_topic)
    for position, topic in enumerate(new.index.topics):
        before = positions.get(topic, count)
        if before >= count or are_different(new.topic_ids[position], old.topic_ids[before]):
            continue
        places[position] = topics.of_topic[before]
    return places


def _compare_topics(
    new: TopicConfigs,
    partitions: Partitions,
    old: TopicConfigs,
    places: Int64s,
    since_us: int | None,
) -> Iterator[Change]:
    """Yield what changed of topics; each pair of sets of settings is compared once."""
    of_topic = _of_topics(new, len(places))
    both = np.flatnonzero((of_topic >= 0) & (places >= 0))
    width = max(len(old.distinct), 1)
    pairs, pair_of = np.unique(of_topic[both] * width + places[both], return_inverse=True)
    for number, pair in enumerate(pairs.tolist()):
        after, before = new.distinct[pair // width], old.distinct[pair % width]
        differing = [
            entries
            for entries in _differences(after, before)
            if ConfigSource.TOPIC in (entries[0].source, entries[1].source)
        ]
        if not differing:
            continue
        for position in both[pair_of == number].tolist():
            topic = partitions.index.topics[position]
            for entry, entry_before in differing:
                yield _change(entry, entry_before, since_us, topic=topic)


def _compare_brokers(
    new: Mapping[int, Config], old: Mapping[int, Config], since_us: int | None
) -> Iterator[Change]:
    for broker, after in sorted(new.items()):
        before = old.get(broker)
        if before is None or after is before:
            continue
        for entry, entry_before in _differences(after, before):
            yield _change(entry, entry_before, since_us, broker=broker)


def _settled(after: Config, before: Config | None) -> Config:
    """Return the settings of a broker, with the entry before where only the source is another one.

    While a setting is changed at run time, a broker answers for a moment with the source of the new value and with
    the value before.
    """
    if before is None or after is before or after == before:
        return after if before is None else before
    entries = {entry.name: entry for entry in before.entries}
    return Config(
        tuple(
            other if (other := entries.get(entry.name)) and other.value == entry.value else entry
            for entry in after.entries
        )
    )


def _compare_features(
    new: Mapping[str, int], old: Mapping[str, int], since_us: int | None
) -> Iterator[Change]:
    """Yield levels that changed, of features that both answers know: releases have others."""
    for feature in sorted(new.keys() & old.keys()):
        before, after = old[feature], new[feature]
        if before != after:
            kind = ChangeEventKind.FEATURE_LEVEL_RAISED
            if after < before:
                kind = ChangeEventKind.FEATURE_LEVEL_LOWERED
            subject = ChangedSubject(feature=feature, before=str(before), after=str(after))
            yield Change(kind=kind, subject=subject, since_us=since_us)


def _levels(features: FeatureLevels) -> Mapping[str, int] | None:
    """Return the level of each feature of the broker's release, 0 where it is not finalized (KIP-584)."""
    if features.epoch is None:
        return None
    return dict.fromkeys(features.supported, 0) | dict(features.finalized)


def _differences(after: Config, before: Config) -> Iterator[tuple[ConfigEntry, ConfigEntry]]:
    """Yield the settings that both have and that differ: the one after, then the one before."""
    if after is before or after == before:
        return
    entries = {entry.name: entry for entry in before.entries}
    for entry in after.entries:
        other = entries.get(entry.name)
        if other is not None and other != entry:
            yield entry, other


def _change(
    entry: ConfigEntry,
    before: ConfigEntry,
    since_us: int | None,
    *,
    topic: str | None = None,
    broker: int | None = None,
) -> Change:
    subject = ChangedSubject(
        topic=topic,
        broker=broker,
        setting=entry.name,
        before=before.value,
        after=entry.value,
        before_source=before.source.value,
        after_source=entry.source.value,
    )
    return Change(kind=ChangeEventKind.SETTING_CHANGED, subject=subject, since_us=since_us)


def _filled(new: TopicConfigs, old: TopicConfigs, places: Int64s) -> TopicConfigs:
    """Return settings with those before of topics that were not read."""
    of_topic = _of_topics(new, len(places))
    is_absent = (of_topic < 0) & (places >= 0)
    if not np.any(is_absent):
        return new
    used, place_of = np.unique(places[is_absent], return_inverse=True)
    of_topic[is_absent] = place_of + len(new.distinct)
    distinct = (*new.distinct, *(old.distinct[place] for place in used.tolist()))
    return TopicConfigs(distinct=distinct, of_topic=of_topic)


def _of_topics(topics: TopicConfigs, count: int) -> Int64s:
    """Return the position of each topic's settings, -1 where they are not known."""
    of_topic = np.full(count, -1, np.int64)
    of_topic[: len(topics.of_topic)] = topics.of_topic[:count]
    return of_topic


def _are_same(new: KnownSettings, old: KnownSettings) -> bool:
    """Return whether nothing was read or listed anew."""
    return new.topics is old.topics and new.partitions is old.partitions


def _is_older(new: KnownSettings, old: KnownSettings) -> bool:
    """Return whether levels are of a broker that is behind."""
    epochs = new.features_epoch, old.features_epoch
    return None not in epochs and (epochs[0] or 0) < (epochs[1] or 0)
