"""Settings and feature levels as they were known after a round, with which later answers are compared.

Of a topic that this round could not read, and of a broker that did not answer, the settings are those of an
earlier one. Times are microseconds since 1970-01-01 UTC, by our own clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.facts.configs import Config, TopicConfigs
from rules.facts.partitions import Partitions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KnownSettings:
    """The settings of a cluster; nothing is known of what is not here."""

    # The topics by whose positions `topics` has settings; None: no list of topics was read.
    partitions: Partitions | None = None
    topics: TopicConfigs = field(default_factory=TopicConfigs)
    brokers: Mapping[int, Config] = field(default_factory=dict)  # by broker id
    # The level of each feature of the release that answered, 0: not finalized; None: never read.
    features: Mapping[str, int] | None = None
    features_epoch: int | None = None  # grows with every change of a level
    seen_us: int = 0  # the last round that had settings, 0: none
