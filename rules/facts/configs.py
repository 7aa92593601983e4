"""Settings of topics and brokers, and the feature levels of the cluster, with where each value comes from.

Thousands of topics mostly share a few sets of settings: each distinct set is kept once, and a topic has
the position of its set. Rounds between which nothing changed share the same `Configs`.
Source: DescribeConfigs (KIP-133, KIP-226), ApiVersions (KIP-584 for feature levels).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from rules.facts.column import Column, Int64s
from rules.facts.gap import GapCause
from rules.facts.identity import BrokerId


class ConfigSource(StrEnum):
    """Where a value comes from: the first of these that has one."""

    TOPIC = "topic"  # DYNAMIC_TOPIC_CONFIG
    DYNAMIC_BROKER = "dynamic_broker"  # DYNAMIC_BROKER_CONFIG: of this broker, at run time
    DYNAMIC_DEFAULT_BROKER = "dynamic_default_broker"  # of all brokers, at run time
    STATIC_BROKER = "static_broker"  # STATIC_BROKER_CONFIG: of the broker's properties file
    DEFAULT = "default"  # DEFAULT_CONFIG: Kafka's own
    UNKNOWN = "unknown"  # one that only a newer broker has


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting as a broker reports it; the value of a sensitive one is absent."""

    name: str
    value: str | None
    source: ConfigSource

    @property
    def number(self) -> int | None:
        """The value as a whole number, None where it is none."""
        try:
            return int(self.value or "")
        except ValueError:
            return None

    @property
    def flag(self) -> bool | None:
        """The value as a truth value, None where it is none."""
        return {"true": True, "false": False}.get(self.value or "")


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one resource that were read, in the order of their names."""

    entries: tuple[ConfigEntry, ...] = ()

    def get(self, name: str) -> ConfigEntry | None:
        """Return a setting, None where the broker did not report it: its release has none of this name."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def number(self, name: str) -> int | None:
        """Return the value of a setting as a whole number, None where it is absent or none."""
        entry = self.get(name)
        return None if entry is None else entry.number

    def flag(self, name: str) -> bool | None:
        """Return the value of a setting as a truth value, None where it is absent or none."""
        entry = self.get(name)
        return None if entry is None else entry.flag


@dataclass(frozen=True, slots=True)
class FailedRead:
    """Why settings could not be read when they were queried last."""

    cause: GapCause
    why: str  # for a person


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicConfigs:
    """The settings of every topic, each distinct set once."""

    distinct: tuple[Config, ...] = ()
    # Per topic of the partition index: the position of its settings; -1 where they were never read.
    of_topic: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    # The topics whose last read failed, by name; their settings are those of an earlier one.
    failed: Mapping[str, FailedRead] = field(default_factory=dict)

    def config(self, position: int) -> Config | None:
        """Return the settings of the topic at this position of the index, None where never read."""
        place = int(self.of_topic[position]) if position < len(self.of_topic) else -1
        return None if place < 0 else self.distinct[place]

    def numbers(self, name: str) -> Column:
        """Return a setting as a whole number per topic, absent where it is not known."""
        return Column.of(config.number(name) for config in self.distinct).take(self.of_topic)

    def flags(self, name: str) -> Column:
        """Return a setting as 1 or 0 per topic, absent where it is not known."""
        return Column.of(config.flag(name) for config in self.distinct).take(self.of_topic)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevels:
    """The features of the cluster (KIP-584): one that the release lacks is in neither mapping."""

    finalized: Mapping[str, int]  # feature -> level that is in force; 0, too, is a level
    supported: Mapping[str, tuple[int, int]]  # feature -> lowest and highest level of the broker
    epoch: int | None  # grows with every change; absent: the broker does not know the levels

    def level(self, feature: str) -> int | None:
        """Return the level in force, None where the release has no such feature or levels are unknown."""
        if self.epoch is None:
            return None
        if feature in self.finalized:
            return self.finalized[feature]
        return 0 if feature in self.supported else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Configs:
    """All settings that a round knows; they are read once a minute."""

    topics: TopicConfigs = field(default_factory=TopicConfigs)
    brokers: Mapping[BrokerId, Config] = field(default_factory=dict)
    # The brokers whose last read failed, and those that are not connected.
    failed_brokers: Mapping[BrokerId, FailedRead] = field(default_factory=dict)
    features: FeatureLevels | None = None  # None: never read
    failed_features: FailedRead | None = None

    @classmethod
    def unread(cls) -> Configs:
        """Return the value for a round that read no settings."""
        return cls()
