"""One cluster as the checks of posture see it, computed once a round for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.client_memory import ClientMemory
from rules.facts.column import Bools, Column, Int64s, marked
from rules.facts.configs import Config, ConfigEntry, Configs, FailedRead
from rules.facts.gap import GapCause
from rules.facts.identity import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerId
from rules.facts.partitions import Partitions
from rules.facts.snapshot import Snapshot
from rules.posture.line import Unseen
from rules.time_lag.lags import TimeLags
from rules.view import View

BOOTSTRAP_BROKERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostureSubject:
    """One cluster in one round; columns and masks are per topic of the partition index."""

    snapshot: Snapshot
    time_lags: TimeLags | None
    topics: Int64s  # positions of the topics that are not the cluster's own
    replication: Column  # replicas of the partition that has fewest
    carries_transactions: Bools
    denied: Bools  # whose settings may not be read
    unread: Bools  # whose settings could not be read, or not yet
    timeouts: Mapping[str, timedelta]  # of transactional ids, as far as they were seen
    uses_transactions: bool  # whether the cluster has a transactional id
    clients: ClientMemory = field(default_factory=ClientMemory)

    @property
    def configs(self) -> Configs:
        """The settings that were read."""
        return self.snapshot.configs

    @property
    def cluster(self) -> str:
        """The configured name of the cluster."""
        return self.snapshot.cluster

    @property
    def servers(self) -> str:
        """Addresses of brokers, as Kafka's tools take them."""
        brokers = self.snapshot.brokers[:BOOTSTRAP_BROKERS]
        return ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    @property
    def transaction_log_hidden(self) -> bool:
        """Whether `__transaction_state` exists, or may, and is not among the topics that are observed."""
        is_listed = TRANSACTION_STATE in self.snapshot.partitions.index.position_of_topic
        return not is_listed and self.snapshot.transactions.was_ever_used

    @property
    def offsets_topic_hidden(self) -> bool:
        """Whether `__consumer_offsets` exists and is not among the topics that are observed."""
        is_listed = CONSUMER_OFFSETS in self.snapshot.partitions.index.position_of_topic
        return not is_listed and bool(self.snapshot.groups)

    def topic_name(self, position: int) -> str:
        """Return the name of the topic at this position."""
        return self.snapshot.partitions.index.topics[position]

    def topic_config(self, position: int) -> Config:
        """Return the settings of the topic at this position, without any where they were never read."""
        return self.configs.topics.config(position) or Config()

    def broker_values(self, setting: str) -> dict[int, ConfigEntry | Unseen]:
        """Return a setting of every broker by its id, or why it is not known."""
        ids = sorted({*self.configs.brokers, *self.configs.failed_brokers})
        return {int(broker): self._broker_value(broker, setting) for broker in ids}

    def _broker_value(self, broker: BrokerId, setting: str) -> ConfigEntry | Unseen:
        failed = self.configs.failed_brokers.get(broker)
        if failed is not None:
            return unseen(failed)
        config = self.configs.brokers.get(broker)
        entry = None if config is None else config.get(setting)
        return Unseen.NOT_IN_RELEASE if entry is None else entry


def subject_of(view: View) -> PostureSubject:
    """Return what the checks are made of."""
    snapshot, use = view.snapshot, view.memory.transactional_use
    partitions, configs = snapshot.described, snapshot.configs.topics
    count = len(partitions.index.topics)
    of_index = len(configs.of_topic) == count
    never = configs.of_topic < 0 if of_index else np.ones(count, np.bool_)
    failed = _marked(partitions, configs.failed)
    denied = _marked(partitions, (name for name, f in configs.failed.items() if _is_denied(f)))
    return PostureSubject(
        snapshot=snapshot,
        time_lags=view.time_lags,
        topics=np.flatnonzero(~np.array(partitions.internal, np.bool_)).astype(np.int64),
        replication=_fewest_replicas(partitions),
        carries_transactions=_marked(partitions, use.topics),
        denied=denied,
        unread=(never | failed) & ~denied,
        timeouts=use.timeouts,
        uses_transactions=bool(use.timeouts)
        or TRANSACTION_STATE in partitions.index.position_of_topic,
        clients=view.memory.clients,
    )


def _marked(partitions: Partitions, names: Iterable[str]) -> Bools:
    """Mark the topics with these names."""
    places = partitions.index.position_of_topic
    return marked(len(places), (places[name] for name in names if name in places))


def unseen(failed: FailedRead) -> Unseen:
    """Return the reason of a read that failed."""
    return Unseen.NOT_AUTHORIZED if _is_denied(failed) else Unseen.NOT_READ


def _is_denied(failed: FailedRead | None) -> bool:
    return failed is not None and failed.cause is GapCause.NOT_AUTHORIZED


def _fewest_replicas(partitions: Partitions) -> Column:
    """Return per topic the number of replicas of the partition that has fewest, absent where not known."""
    replicas, starts = partitions.replicas, partitions.index.starts
    if not len(partitions):
        return Column.absent(len(starts) - 1)
    huge = np.iinfo(np.int64).max
    lengths = np.where(replicas.valid, replicas.lengths, huge)
    # reduceat reads one value of a topic without partitions: such a topic is absent.
    begins = np.minimum(starts[:-1], len(partitions) - 1)
    fewest = np.minimum.reduceat(lengths, begins)
    valid = (np.diff(starts) > 0) & (fewest < huge)
    return Column(np.where(valid, fewest, 0), valid)
