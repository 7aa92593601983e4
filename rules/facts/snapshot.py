"""Everything that one round saw of one cluster, and how the round went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

import numpy as np

from rules.facts.batch_samples import BatchSamples
from rules.facts.batches import BatchesOf
from rules.facts.broker_log import BrokerLog
from rules.facts.brokers import BrokerContact, Quorum
from rules.facts.column import Bools, Int64s
from rules.facts.configs import Configs
from rules.facts.epoch_ends import EpochEnds
from rules.facts.gap import Gap, GapCause, GapScope
from rules.facts.groups import Commits, Group, GroupType
from rules.facts.identity import Broker, BrokerId
from rules.facts.members import Assignments
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.facts.producers import Producers
from rules.facts.scrapes import Scrapes
from rules.facts.transaction_log import TransactionLog
from rules.facts.transactions import Transactions


class Absence(StrEnum):
    """Why a topic that an earlier round listed is not listed."""

    DELETED = "deleted"  # no broker has a topic of its name
    HIDDEN = "hidden"  # we may not see it


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReport:
    """The cost of a round: its duration and its requests."""

    took_seconds: float
    phase_seconds: Mapping[str, float]
    requests: Mapping[str, int]  # Kafka API name -> requests sent, connection set-up left out
    setup_requests: Mapping[str, int]  # ApiVersions, SaslHandshake, SaslAuthenticate
    duplicate_commits: int  # commits that a broker returned more than once; they are kept once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """One immutable observation of a cluster; the only input of rules besides the memory."""

    cluster: str  # the configured name
    cluster_id: str  # what the brokers report; another id is another cluster
    taken_at: datetime  # aware, UTC: when the round began
    brokers: tuple[Broker, ...]
    partitions: Partitions
    placement_complete: bool  # False: topics may exist that `partitions` does not list
    offsets: Offsets
    followed: Bools  # rows whose every replica was queried for its log end offset
    groups: tuple[Group, ...]
    commits: Commits
    transactions: Transactions
    producers: Producers
    transaction_log: TransactionLog
    epoch_ends: EpochEnds
    gaps: tuple[Gap, ...]
    report: RoundReport
    batches: tuple[BatchesOf, ...] = ()  # that a rule requested
    batch_samples: BatchSamples = field(default_factory=BatchSamples.unread)
    # Positions of commits that are lower than before because they were deleted in between, where known.
    commits_made_anew: frozenset[int] = frozenset()
    broker_log: BrokerLog = field(default_factory=BrokerLog.unread)
    scrapes: Scrapes = field(default_factory=Scrapes.unread)
    ends_read_after: timedelta = timedelta(0)  # the beginning of the round
    assignments: Assignments = field(default_factory=Assignments.unread)
    contact: BrokerContact = field(default_factory=BrokerContact)
    quorum: Quorum = field(default_factory=Quorum)
    # False: the list of topics could not be read, and `partitions` are as an earlier round read them.
    placement_read: bool = True
    configs: Configs = field(default_factory=Configs.unread)
    topic_pattern: str | None = None  # of the topics that are observed; None: all
    # Topics of earlier rounds that are not listed: as far as brokers said why, when asked by their names.
    absences: Mapping[str, Absence] = field(default_factory=dict)

    @property
    def described(self) -> Partitions:
        """The partitions as this round read them: names and settings, where it could not read the list.

        Requests go by `partitions`: a remembered leader is as good as any, and rejects what is not its own.
        """
        if self.placement_read:
            return self.partitions
        partitions = self.partitions
        return replace(
            Partitions.named(partitions.index, partitions.topic_ids),
            internal=partitions.internal,
            min_insync_replicas=partitions.min_insync_replicas,
            unclean_election_enabled=partitions.unclean_election_enabled,
        )

    @property
    def controller(self) -> BrokerId | None:
        """The active controller, None where there is none or it could not be queried."""
        return self.quorum.leader

    @property
    def groups_complete(self) -> bool:
        """Whether every group that exists is listed."""
        return all(gap.scope is not GapScope.GROUPS for gap in self.gaps)

    @property
    def commits_complete(self) -> bool:
        """Whether every commit is here, except those of `groups_without_commits`."""
        is_whole = all(gap.scope is not GapScope.COMMITS or gap.group for gap in self.gaps)
        return is_whole and self.placement_complete and self.groups_complete

    @property
    def groups_without_commits(self) -> frozenset[str]:
        """The groups some or all of whose commits are known to be missing."""
        commits = (gap.group for gap in self.gaps if gap.scope is GapScope.COMMITS)
        return frozenset(group for group in commits if group)

    @property
    def offset_commits(self) -> Int64s:
        """The places in `commits` of all but share groups, whose start offset is no commit."""
        shared = np.array([group.group_type is GroupType.SHARE for group in self.groups], np.bool_)
        if not len(self.commits):
            return np.zeros(0, np.int64)
        return np.flatnonzero(~shared[self.commits.group]).astype(np.int64)

    @property
    def transactions_listed(self) -> bool:
        """Whether a transaction that is not listed as open is not open, as far as we may see."""
        is_reported = any(gap.scope is GapScope.TRANSACTIONS for gap in self.gaps)
        return self.transactions.is_complete or not is_reported

    @property
    def transactions_seen(self) -> bool:
        """Whether a transaction of which this round shows nothing has nothing to show."""
        return self.transactions_listed and self.transaction_log.is_whole

    def gaps_by_cause(self) -> Mapping[GapCause, int]:
        """Count the gaps by cause."""
        return Counter(gap.cause for gap in self.gaps)
