"""Totals that are carried from round to round: counters since the start of the process, and latest values.

Pure: every round makes a new value from the old one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from rules.facts.identity import BrokerId
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import RoundReport
from rules.loss.summary import Outcome
from rules.transactions.costs import coordinator_costs, mean_records
from rules.verdict import Severity, Verdict
from rules.view import View
from service.history.stats import HistoryStats
from service.metrics.alerting import AlertStats, DeliveryStats
from service.metrics.baseline_bands import BaselineBands
from service.metrics.ended_transactions import EndedTransactions
from service.metrics.log_stats import LogStats, SequenceStats
from service.scheduling.job import JobStats

PostureCounts = Mapping[tuple[str, str], int]  # (check id, verdict in words) -> settings
VerdictCounts = Mapping[tuple[str, Verdict], int]  # (rule id, verdict) -> subjects
LossCounts = Mapping[Outcome, int]  # partitions with open findings of lost records
OpenCounts = Mapping[tuple[str, Severity], int]  # (rule id, severity) -> open findings


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Stats of storing."""

    is_up: bool
    waiting_rounds: int
    lost_transitions: int  # since the start
    rejected_rows: Mapping[str, int] = field(default_factory=dict)  # by kind, since the start
    last_success: datetime | None  # aware, UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskStats:
    """Counts of partitions at risk, as of the latest round, and of the observations between rounds."""

    observed: int  # watched partitions that the latest observation has an answer of
    unobserved: int  # watched partitions that it has none of
    unwatched: int  # beyond the limit, or without a leader
    observations: int  # since the start
    took_seconds: float | None  # the latest observation; None while nothing is watched
    requests: Mapping[str, int] = field(default_factory=dict)  # Kafka API name -> sent so far

    @property
    def at_risk(self) -> int:
        """Return the number of partitions at risk."""
        return self.observed + self.unobserved + self.unwatched


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStats:
    """The process as the operating system and the supervisor see it."""

    restarts: Mapping[str, int] = field(default_factory=dict)  # task -> restarts so far
    log_lines_lost: int = 0
    cpu_seconds: float | None = None
    resident_bytes: int | None = None
    open_files: int | None = None
    started_at: datetime | None = None  # aware, UTC
    jobs: tuple[JobStats, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CostStats:
    """What transactions cost within the window of the latest round; empty where that is not known."""

    records_per_transaction: float | None = None
    transactional_ids: Mapping[BrokerId, int] = field(default_factory=dict)  # by coordinator

    @classmethod
    def of(cls, view: View | None) -> CostStats:
        """Return the stats of a round; there are none without the coordinators' log."""
        if view is None or not view.snapshot.transaction_log.is_read:
            return cls()
        return cls(
            records_per_transaction=mean_records(view),
            transactional_ids={
                cost.coordinator: cost.transactional_ids for cost in coordinator_costs(view)
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfMetrics:
    """Counters over all rounds, and the state after the latest one."""

    version: str  # of Tidemark
    requests: Mapping[str, int] = field(default_factory=dict)  # Kafka API name -> sent by rounds
    duplicate_commits: int = 0
    rounds: Mapping[str, int] = field(default_factory=dict)  # outcome -> rounds so far
    clock_steps: int = 0
    interval_seconds: float | None = None
    process: ProcessStats = field(default_factory=ProcessStats)
    last_success: datetime | None = None  # begin of the latest round that gave a snapshot
    took_seconds: float | None = None  # the latest round; None: as its report says
    phase_seconds: Mapping[str, float] = field(default_factory=dict)  # besides the report's
    verdicts: VerdictCounts = field(default_factory=dict)
    posture: PostureCounts = field(default_factory=dict)
    open_findings: OpenCounts = field(default_factory=dict)
    loss_partitions: LossCounts = field(default_factory=dict)
    store: StoreStats | None = None
    risk: RiskStats | None = None
    endpoints: tuple[EndpointState, ...] = ()  # of metrics of brokers and clients
    logs: Mapping[str, LogStats] = field(default_factory=dict)  # by source of log lines
    sequences: SequenceStats = field(default_factory=SequenceStats)
    alerting: AlertStats | None = None
    deliveries: DeliveryStats | None = None
    history: HistoryStats | None = None
    ended: EndedTransactions = field(default_factory=EndedTransactions)
    costs: CostStats = field(default_factory=CostStats)
    baseline: BaselineBands = field(default_factory=BaselineBands)

    def after_round(self, report: RoundReport | None, verdicts: VerdictCounts) -> SelfMetrics:
        """Return the totals one round later; `verdicts` are that round's, and replace the old.

        A round that failed has no report; its requests are counted with the set-up of the next one.
        """
        if report is None:
            return replace(self, verdicts=dict(verdicts))
        sent = Counter(self.requests)
        sent.update(report.requests)
        sent.update(report.setup_requests)
        return replace(
            self,
            requests=dict(sorted(sent.items())),
            duplicate_commits=self.duplicate_commits + report.duplicate_commits,
            verdicts=dict(verdicts),
        )
