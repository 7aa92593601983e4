"""One round over one cluster: query everything once, in the order that keeps lags true.

The order is log start, then commits, then LSO, HWM and LEO, each step a barrier over all brokers.
A race then overstates a lag a little and never makes it negative. Where a leader changed
the new leader is queried at once for the end offset of the epoch before, which proves a loss. Then the
coordinators are queried for transactions, and after them the leaders for producers: a transaction that a
leader still holds open, and that no coordinator listed before, is hanging and has not just ended. The
active controller comes last: without one, brokers leave the request for it unanswered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from collectors import cluster as cluster_collector
from collectors import quorum as quorum_collector
from collectors.absent_topics import AbsentTopicsReader
from collectors.batch_samples import BatchSampler
from collectors.batches import BatchReader
from collectors.commit_deletions import CommitDeletionReader
from collectors.commits import CollectedCommits, CommitReader
from collectors.configs import ConfigReader
from collectors.epoch_ends import EpochEndReader
from collectors.groups import GroupReader
from collectors.offset_gaps import gaps_of_lags
from collectors.offsets import OffsetReader
from collectors.placement import Placement, PlacementReader
from collectors.producers import ProducersReader
from collectors.readable import ReadableReader, readable_request
from collectors.session import Limits, Session, address_of
from collectors.state_topic import PlacementOf, StateTopic
from collectors.transaction_log import TransactionLogReader
from collectors.transactions import TransactionReader, look_up
from collectors.visibility import VisibilityReader
from collectors.wire.connection import Address
from collectors.wire.failure import Failure
from collectors.wire.pool import Pool
from rules.facts.batch_samples import BatchSamples
from rules.facts.batches import BatchesOf
from rules.facts.change_memory import vanished_topics
from rules.facts.column import Bools
from rules.facts.commit_memory import CommitMemory
from rules.facts.epoch_ends import EpochEnds
from rules.facts.groups import Commits, Group
from rules.facts.identity import TRANSACTION_STATE
from rules.facts.members import AssignmentBuilder
from rules.facts.memory import Memory
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.facts.producers import Producers
from rules.facts.snapshot import Absence, RoundReport, Snapshot
from rules.facts.transaction_log import TransactionLog
from rules.facts.transactions import Transaction, Transactions
from rules.question import Question, RoundRequests, by_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a round observes; a pattern has to match a whole name, None takes everything."""

    topics: re.Pattern[str] | None = None
    groups: re.Pattern[str] | None = None
    all_replicas: bool = False  # ask every replica for its log end, not only those at risk
    transaction_log: bool = False  # read how transactions ended since the last round
    batch_samples: bool = False  # sample the newest batches of partitions whose log grew
    questions: tuple[Question, ...] = ()  # what the rules want to know since the last round
    remembered: Memory | None = None  # of an earlier process, for the first round
    memory: Memory | None = None  # before the round, of whichever process

    def commits_of(self, cluster_id: str | None) -> CommitMemory | None:
        """Return what an earlier process remembered of the commits of this cluster, and of no other."""
        memory = self.remembered
        return memory.commits if memory is not None and memory.cluster_id == cluster_id else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that is read, and what its settings declare."""

    name: str
    bootstrap: tuple[Address, ...]
    sees_all_transactional_ids: bool = False


@dataclass(slots=True)
class _Readers:
    """The collectors that remember something of one cluster id."""

    placement: PlacementReader = field(default_factory=PlacementReader)
    groups: GroupReader = field(default_factory=GroupReader)
    assignments: AssignmentBuilder = field(default_factory=AssignmentBuilder)
    commits: CommitReader = field(default_factory=CommitReader)
    configs: ConfigReader = field(default_factory=ConfigReader)
    absent_topics: AbsentTopicsReader = field(default_factory=AbsentTopicsReader)
    offsets: OffsetReader = field(default_factory=OffsetReader)
    epoch_ends: EpochEndReader = field(default_factory=EpochEndReader)
    readable: ReadableReader = field(default_factory=ReadableReader)
    transactions: TransactionReader = field(default_factory=TransactionReader)
    producers: ProducersReader = field(default_factory=ProducersReader)
    batches: BatchReader = field(default_factory=BatchReader)
    sampler: BatchSampler = field(default_factory=BatchSampler)
    deletions: CommitDeletionReader = field(default_factory=CommitDeletionReader)
    state_topic: PlacementOf = field(default_factory=lambda: PlacementOf(TRANSACTION_STATE))
    transaction_log: TransactionLogReader = field(default_factory=TransactionLogReader)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Lags:
    """What lags are made of; `collected` does not know yet whether there is anything to read."""

    groups: tuple[Group, ...]
    collected: CollectedCommits
    offsets: Offsets
    followed: Bools  # rows whose every replica was queried for its log end offset
    ends_read_after: timedelta  # the beginning of the round


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Evidence:
    """What explains lags and proves losses."""

    commits_made_anew: frozenset[int]
    epoch_ends: EpochEnds
    transactions: Transactions
    producers: Producers
    batches: tuple[BatchesOf, ...]
    batch_samples: BatchSamples
    transaction_log: TransactionLog
    commits: Commits


class ClusterReader:
    """Reads one cluster, round after round, over persistent connections."""

    def __init__(
        self, target: Target, pool: Pool, *, limits: Limits, utc_now: Callable[[], datetime]
    ) -> None:
        self._target = target
        self._pool = pool
        self._limits = limits
        self._utc_now = utc_now
        self._session: Session | None = None  # of the last round: who was there, who answered
        self._cluster_id: str | None = None
        self._readers = self._forgetful()

    def read(self, scope: Scope) -> Snapshot:
        """Make one round.

        Raises:
            UnreachableError: no bootstrap address gave a usable answer.
            AuthenticationError: the cluster rejected our credentials.
        """
        taken_at = self._utc_now()
        session = self._begin()
        cluster = self._cluster(session)
        with session.phase("placement"):
            placement = self._readers.placement.collect(session, scope.topics)
            absences = self._absences(session, scope, placement)
        with session.phase("configs"):
            partitions, configs = self._readers.configs.collect(session, placement.partitions)
        self._session = session
        lags = self._lags(session, scope, partitions)
        evidence = self._evidence(session, scope, partitions, lags)
        contact = session.contact
        with session.phase("controller"):
            quorum = quorum_collector.collect(session)
        gaps = gaps_of_lags(partitions, lags.groups, evidence.commits, lags.offsets)
        return Snapshot(
            cluster=self._target.name,
            cluster_id=cluster.cluster_id,
            taken_at=taken_at,
            brokers=cluster.brokers,
            partitions=partitions,
            placement_complete=placement.is_complete,
            placement_read=placement.is_read,
            offsets=lags.offsets,
            followed=lags.followed,
            groups=lags.groups,
            commits=evidence.commits,
            commits_made_anew=evidence.commits_made_anew,
            assignments=self._readers.assignments.build(lags.groups, partitions.index),
            transactions=evidence.transactions,
            producers=evidence.producers,
            transaction_log=evidence.transaction_log,
            epoch_ends=evidence.epoch_ends,
            batches=evidence.batches,
            batch_samples=evidence.batch_samples,
            gaps=(*session.gaps, *gaps),
            report=self._report(session, lags.collected.duplicates),
            ends_read_after=lags.ends_read_after,
            contact=contact,
            quorum=quorum,
            configs=configs,
            absences=absences,
            topic_pattern=None if scope.topics is None else scope.topics.pattern,
        )

    def describe(self, transactional_id: str) -> Transaction | Failure | None:
        """Return one transactional id whatever its state, None if no such id exists.

        Raises:
            UnreachableError: no bootstrap address gave a usable answer.
            AuthenticationError: the cluster rejected our credentials.
        """
        session = self._begin()
        cluster_collector.collect(session, self._addresses())
        return look_up(session, transactional_id)

    def _cluster(self, session: Session) -> cluster_collector.Cluster:
        """Query who is there; of another cluster than in the last round nothing is remembered."""
        with session.phase("cluster"):
            cluster = cluster_collector.collect(session, self._addresses())
        if cluster.cluster_id != self._cluster_id:
            self._cluster_id, self._readers = cluster.cluster_id, self._forgetful()
        return cluster

    def _absences(
        self, session: Session, scope: Scope, placement: Placement
    ) -> Mapping[str, Absence]:
        """Query why topics that were known before the round are not listed; nothing if all are."""
        memory = scope.memory
        is_same = memory is not None and memory.cluster_id == self._cluster_id
        if memory is None or not is_same or not placement.is_read:
            return {}
        vanished = vanished_topics(memory.changes, placement.partitions)
        return self._readers.absent_topics.collect(session, vanished)

    def _lags(self, session: Session, scope: Scope, partitions: Partitions) -> _Lags:
        """Query log start, then commits, then the ends: this order keeps lags true."""
        round_ = self._readers.offsets.begin(session, partitions, all_replicas=scope.all_replicas)
        with session.phase("log_start"):
            round_.read_log_start()
        with session.phase("groups"):
            groups = self._readers.groups.collect(session, scope.groups)
        with session.phase("commits"):
            collected = self._readers.commits.collect(
                session, groups, partitions, all_topics=scope.topics is None
            )
        with session.phase("offsets"):
            offsets = round_.read_ends()
            ends_read_after = timedelta(seconds=session.took_seconds)
            self._readers.offsets.note(partitions, offsets)
        return _Lags(
            groups=groups,
            collected=collected,
            offsets=offsets,
            followed=round_.followed,
            ends_read_after=ends_read_after,
        )

    def _evidence(
        self, session: Session, scope: Scope, partitions: Partitions, lags: _Lags
    ) -> _Evidence:
        """Query what explains the lags and what rules want to know; all of it depends on the ends."""
        offsets, commits, questions = lags.offsets, lags.collected.commits, by_kind(scope.questions)
        with session.phase("commits"):
            anew = self._readers.deletions.collect(
                session, partitions, lags.groups, commits, offsets
            )
        with session.phase("epochs"):
            epoch_ends = self._readers.epoch_ends.collect(
                session, partitions, offsets, commits, questions.epoch_ends
            )
        placed, transactions, producers = self._transactions(
            session, partitions, offsets, questions
        )
        with session.phase("batches"):
            batches = self._readers.batches.collect(
                session, partitions, offsets, producers, questions.batches
            )
        log = self._transaction_log(session, scope, placed)
        return _Evidence(
            commits_made_anew=anew,
            epoch_ends=epoch_ends,
            transactions=transactions,
            producers=producers,
            batches=batches,
            batch_samples=self._batch_samples(session, scope, partitions, offsets),
            transaction_log=log,
            commits=self._with_readable(session, scope, partitions, lags),
        )

    def _with_readable(
        self, session: Session, scope: Scope, partitions: Partitions, lags: _Lags
    ) -> Commits:
        """Return the commits with whether there is anything to read behind them."""
        commits, questions = lags.collected.commits, by_kind(scope.questions)
        with session.phase("readable"):
            remembered = scope.commits_of(self._cluster_id)
            request = readable_request(
                partitions, lags.groups, commits, questions.readable, remembered
            )
            return self._readers.readable.collect(
                session, partitions, lags.offsets, commits, request
            )

    def _transactions(
        self,
        session: Session,
        partitions: Partitions,
        offsets: Offsets,
        questions: RoundRequests,
    ) -> tuple[StateTopic | Failure | None, Transactions, Producers]:
        """Query the coordinators first and the leaders last: this order is the proof of hanging.

        The other way round, a transaction could be seen open at its leader, end, and then be missing at
        its coordinator, as if it would never end.
        """
        with session.phase("transactions"):
            placed = self._readers.state_topic.collect(session)
            queried = (question.producer_ids for question in questions.transactions)
            transactions = self._readers.transactions.collect(
                session,
                placed,
                producer_ids=self._readers.producers.known_ids(),
                queried_ids=frozenset().union(*queried),
            )
        with session.phase("producers"):
            producers = self._readers.producers.collect(
                session, partitions, offsets, questions.producers
            )
        return placed, transactions, producers

    def _transaction_log(
        self, session: Session, scope: Scope, placed: StateTopic | Failure | None
    ) -> TransactionLog:
        if not scope.transaction_log:
            return TransactionLog.unread()
        with session.phase("transaction_log"):
            return self._readers.transaction_log.collect(session, placed)

    def _batch_samples(
        self, session: Session, scope: Scope, partitions: Partitions, offsets: Offsets
    ) -> BatchSamples:
        if not scope.batch_samples:
            return BatchSamples.unread()
        with session.phase("batch_samples"):
            return self._readers.sampler.collect(session, partitions, offsets)

    def _forgetful(self) -> _Readers:
        """Return collectors that remember nothing yet."""
        visibility = VisibilityReader(declared=self._target.sees_all_transactional_ids)
        return _Readers(transactions=TransactionReader(visibility=visibility))

    def _begin(self) -> Session:
        session = Session(self._pool, self._limits)
        if self._session is not None:
            session.answered_last = self._session.answered_last
        return session

    def _addresses(self) -> list[Address]:
        """Return the bootstrap addresses, then those of the brokers seen in the last round."""
        seen = [] if self._session is None else [address_of(b) for b in self._session.brokers]
        return list(dict.fromkeys([*self._target.bootstrap, *seen]))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _report(self, session: Session, duplicates: int) -> RoundReport:
        return RoundReport(
            took_seconds=session.took_seconds,
            phase_seconds=dict(session.phase_seconds),
            requests=dict(session.requests),
            setup_requests=dict(self._pool.take_setup_requests()),
            duplicate_commits=duplicates,
        )
