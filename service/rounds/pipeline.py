"""One round from end to end: observe, judge, store the changes, write the metrics, publish the state.

Rounds never overlap: `make_round` has one caller at a time. It blocks only as long as the limits of the
cluster's reader and of the database allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rules.baseline.open_series import ScoringMemory
from rules.catalogue.all_rules import count_verdicts
from rules.catalogue.exactly_once_posture import count_settings
from rules.evidence import read_evidence
from rules.facts.memory import Memory, merge_stored
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import Snapshot
from rules.loss.evidence_fields import SummaryEvidence
from rules.loss.summary import RULES as LOSS_RULES
from rules.loss.summary import LossFact, Outcome, count_outcomes
from rules.open_findings import Change
from rules.verdict import Severity
from service.history.stats import HistoryStats
from service.metrics.alerting import DeliveryStats
from service.metrics.baseline_bands import BaselineBands
from service.metrics.exposition import Exposition
from service.metrics.log_stats import after_round
from service.metrics.open_transactions import OpenTransactions
from service.metrics.totals import CostStats, ProcessStats, RiskStats, SelfMetrics, StoreStats
from service.observe.watch import WatchedRound, Watcher
from service.rounds.alerting_step import Alerting
from service.rounds.finding_state import FindingState
from service.rounds.latest import Latest, RoundOutcome, ServiceState
from service.rounds.persistence import (
    LAST_SECONDS,
    PersistenceState,
    PersistenceStatus,
    RoundWriter,
)
from service.storage.database.rejections import RejectedRow, RowKind
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.store import Loaded


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoundResult:
    """The result of a round, for the log and for the round loop."""

    watched: WatchedRound
    changes: Sequence[Change]
    state: ServiceState
    was_loaded: bool  # this round read what an earlier process left
    rejected_rows: Sequence[RejectedRow] = ()  # since the round before


class RiskPort(Protocol):
    """Observes partitions at risk between the rounds."""

    def note(self, snapshot: Snapshot) -> None:
        """Take from a round which partitions are at risk."""

    def stats(self) -> RiskStats:
        """Return how it goes."""


class HistoryPort(Protocol):
    """Keeps the samples of rounds."""

    def take(self, watched: WatchedRound) -> None:
        """Take a judged round; returns at once."""

    def stats(self) -> HistoryStats:
        """Return how it goes."""


class ScoringPort(Protocol):
    """Scores the samples that history takes."""

    @property
    def remembered(self) -> ScoringMemory | None:
        """Return what a restart needs."""

    def adopt(self, stored: ScoringMemory | None, cluster_id: str) -> None:
        """Take over what an earlier process had open of a cluster id."""


class Pipeline:
    """Makes a cluster's rounds, and carries state from round to round, also over one that fails."""

    def __init__(  # noqa: PLR0913 - the parts of a round, each by its name
        self,
        *,
        watcher: Watcher,
        round_writer: RoundWriter,
        exposition: Exposition,
        latest: Latest,
        monotonic: Callable[[], float],
        process: Callable[[], ProcessStats] = ProcessStats,
        risk: RiskPort | None = None,
        endpoints: Callable[[], tuple[EndpointState, ...]] = tuple,
        alerting: Alerting | None = None,
        deliveries: Callable[[], DeliveryStats | None] = lambda: None,
        on_stored: Callable[[], None] = lambda: None,
        history: HistoryPort | None = None,
        baseline: Callable[[], BaselineBands] = BaselineBands,
        scoring: ScoringPort | None = None,
    ) -> None:
        """`process` returns the stats of the process, `endpoints` the states of scraped endpoints.

        `baseline` returns the bands of chosen series, `deliveries` the stats of sending; `on_stored` is
        called when there may be something to send.
        Without `alerting` findings are stored, and nobody is notified.
        """
        self._watcher = watcher
        self._round_writer = round_writer
        self._exposition = exposition
        self._latest = latest
        self._monotonic = monotonic
        self._process = process
        self._risk = risk
        self._endpoints = endpoints
        self._deliveries = deliveries
        self._history = history
        self._baseline = baseline
        self._scoring = scoring
        self._finding_state = FindingState(
            round_writer, alerting, monotonic=monotonic, on_stored=on_stored
        )
        self._totals = _first_totals(latest.state)

    @property
    def open_findings(self) -> int:
        """Return how many findings of the current cluster are open."""
        return len(self._finding_state.open_findings)

    def load(self, *, is_start: bool = False, at_once: bool = False) -> bool:
        """Read the stored state, if the next attempt is due or `at_once`; return whether it was read.

        Raises:
            StoreError: at the start only: no later try will mend it.
        """
        loaded = self._round_writer.load(is_start=is_start, at_once=at_once)
        if loaded is not None:
            self._adopt(loaded)
        open_findings = self._finding_state.open_findings
        shown = replace(
            self._latest.state, persistence=self._round_writer.status, open_findings=open_findings
        )
        self._latest.publish(shown)
        return loaded is not None

    def make_round(self) -> RoundResult:
        """Make one round."""
        began = self._monotonic()
        with self._finding_state.turn:
            was_loaded = self.load()
        watched = self._watcher.make_round(knows_positions=self._round_writer.is_loaded)
        if self._risk is not None and watched.snapshot is not None:
            self._risk.note(watched.snapshot)
        if self._history is not None:
            self._history.take(watched)
        judged = self._monotonic()
        with self._finding_state.turn:
            changes = self._finding_state.keep(watched, self._checkpoint())
        stored = self._monotonic()
        collected = watched.snapshot.report.took_seconds if watched.snapshot else judged - began
        phases = {"rules": judged - began - collected, "store": stored - judged}
        self._totals = self._next_totals(watched, stored - began, phases)
        state = self._next_state(watched, stored - began)
        self._expose(watched)
        self._latest.publish(state)
        return RoundResult(
            watched=watched,
            changes=changes,
            state=state,
            was_loaded=was_loaded,
            rejected_rows=self._round_writer.take_rejected(),
        )

    def has_reports_due(self) -> bool:
        """Whether an alert group is due; may be called at any time."""
        return self._finding_state.has_reports_due()

    def report_due(self) -> None:
        """Flush alert groups that are due, between the rounds; may block as long as storing does."""
        self._finding_state.report_due()

    def note_died(self) -> None:
        """Publish that a round died of a defect: the snapshot before it is not current any more."""
        died = str(RoundOutcome.DIED)
        self._totals = replace(
            self._totals,
            rounds={**self._totals.rounds, died: self._totals.rounds[died] + 1},
            process=self._process(),
            took_seconds=None,
            phase_seconds={},
            verdicts={},
            sequences=self._totals.sequences.after(None),
        )
        before = self._latest.state
        self._exposition.update_blind(before.cluster, self._totals)
        self._latest.publish(
            replace(
                before,
                rounds=before.rounds + 1,
                at=self._watcher.now(),
                outcome=RoundOutcome.DIED,
                error="the round died of a defect of Tidemark: its log has the traceback",
                took_seconds=None,
                judgements=(),
                restarts=self._totals.process.restarts,
            )
        )

    def close(self) -> PersistenceStatus:
        """Store what still waits, as far as there is time; return the status."""
        with self._finding_state.turn:
            self.load(at_once=True)  # a database that came back just now
            self._round_writer.flush(at_once=True, seconds=LAST_SECONDS)
        return self._round_writer.status

    def _checkpoint(self) -> Checkpoint:
        remembered = self._watcher.remembered
        return Checkpoint(
            memory=remembered.memory,
            unknown_since=remembered.unknown_since,
            log_positions=remembered.log_positions,
            scoring=None if self._scoring is None else self._scoring.remembered,
        )

    def _adopt(self, loaded: Loaded) -> None:
        """Merge the stored state under what this process has observed since its start."""
        checkpoint = loaded.checkpoint or Checkpoint()
        # Positions in log files stay valid, whatever cluster id their brokers have by now.
        positions = checkpoint.log_positions
        remembered = replace(self._watcher.remembered, log_positions=positions)
        is_same = self._finding_state.cluster_id in ("", loaded.cluster_id)
        if is_same:
            since = checkpoint.unknown_since
            remembered = replace(
                remembered,
                memory=_join_memories(checkpoint.memory, remembered.memory),
                unknown_since=_merge_unknown_since(since, remembered.unknown_since)
                if self._latest.state.rounds
                else since,
            )
            if self._scoring is not None:
                self._scoring.adopt(checkpoint.scoring, loaded.cluster_id)
        self._watcher.remembered = remembered
        self._finding_state.adopt(loaded)

    def _next_totals(
        self, watched: WatchedRound, took: float, phases: Mapping[str, float]
    ) -> SelfMetrics:
        snapshot, status = watched.snapshot, self._round_writer.status
        counts = count_verdicts(watched.judged.judgements)
        report = None if snapshot is None else snapshot.report
        ended, deliveries = self._totals.ended, self._deliveries()
        return replace(
            self._totals.after_round(report, counts),
            ended=ended if snapshot is None else ended.after(snapshot.transaction_log),
            rounds={**self._totals.rounds, outcome_of(watched): self._rounds_of(watched) + 1},
            clock_steps=self._totals.clock_steps + (watched.clock_step is not None),
            process=self._process(),
            risk=None if self._risk is None else self._risk.stats(),
            endpoints=self._endpoints(),
            logs=self._totals.logs
            if snapshot is None
            else after_round(self._totals.logs, snapshot.broker_log.sources, snapshot.taken_at),
            sequences=self._totals.sequences.after(watched.view),
            costs=CostStats.of(watched.view),
            last_success=self._totals.last_success if snapshot is None else snapshot.taken_at,
            took_seconds=took,
            phase_seconds=phases,
            posture=count_settings(watched.judged.judgements),
            open_findings=self._open_counts(watched),
            loss_partitions=self._loss_counts(),
            alerting=self._finding_state.alert_stats,
            deliveries=deliveries,
            history=None if self._history is None else self._history.stats(),
            baseline=self._bands(watched),
            store=StoreStats(
                is_up=status.state is PersistenceState.STORED,
                waiting_rounds=status.waiting_rounds,
                lost_transitions=status.lost_transitions,
                rejected_rows=_count_rejected(status, deliveries),
                last_success=status.stored_at,
            ),
        )

    def _bands(self, watched: WatchedRound) -> BaselineBands:
        """Return the bands of chosen series with what was scored last; no scores in a round that failed."""
        bands, view = self._baseline(), watched.view
        return bands if view is None else bands.scored(view.unusual, view.now)

    def _rounds_of(self, watched: WatchedRound) -> int:
        return self._totals.rounds.get(outcome_of(watched), 0)

    def _open_counts(self, watched: WatchedRound) -> dict[tuple[str, Severity], int]:
        """Count the open findings by rule; a rule without one shows zero once the stored ones are loaded."""
        rules = [judgement.rule for judgement in watched.judged.judgements]
        is_loaded = self._round_writer.is_loaded
        counts = {(rule.rule_id, rule.severity): 0 for rule in rules if is_loaded}
        return counts | self._finding_state.open_findings.counts

    def _loss_counts(self) -> dict[Outcome, int]:
        """Count partitions by what open findings say of their records; zeros as of `_open_counts`."""
        findings = self._finding_state.open_findings
        counts = Counter(dict.fromkeys(Outcome, 0) if self._round_writer.is_loaded else {})
        if not any(rule_id in LOSS_RULES for rule_id, _ in findings.counts):
            return counts
        counts.update(
            count_outcomes(
                LossFact(rule_id, dict(labels), entry.reason, evidence, entry.since)
                for rule_id, labels in findings
                if rule_id in LOSS_RULES
                for entry in [findings[rule_id, labels]]
                for evidence in [read_evidence(entry.evidence, SummaryEvidence)]
            )
        )
        return counts

    def _next_state(self, watched: WatchedRound, took: float) -> ServiceState:
        before = self._latest.state
        return replace(
            before,
            rounds=before.rounds + 1,
            at=watched.at,
            outcome=outcome_of(watched),
            error=watched.error,
            took_seconds=took,
            snapshot=watched.snapshot or before.snapshot,
            view=watched.view or before.view,
            time_lags=before.time_lags if watched.snapshot is None else watched.time_lags,
            judgements=tuple(watched.judged.judgements),
            open_findings=self._finding_state.open_findings,
            persistence=self._round_writer.status,
            restarts=self._totals.process.restarts,
            logs=self._totals.logs,
            endpoints=self._totals.endpoints,
        )

    def _expose(self, watched: WatchedRound) -> None:
        if watched.snapshot is None:
            self._exposition.update_blind(self._latest.state.cluster, self._totals)
            return
        transactions = None if watched.view is None else OpenTransactions.of(watched.view)
        self._exposition.update(watched.snapshot, self._totals, transactions, watched.time_lags)


def _first_totals(state: ServiceState) -> SelfMetrics:
    return SelfMetrics(
        version=state.version,
        interval_seconds=state.interval_seconds,
        rounds=dict.fromkeys(map(str, RoundOutcome), 0),
    )


def outcome_of(watched: WatchedRound) -> RoundOutcome:
    """Return how a round ended."""
    if watched.snapshot is None:
        return RoundOutcome.FAILED
    return RoundOutcome.GAPS if watched.snapshot.gaps else RoundOutcome.COMPLETE


def _count_rejected(
    status: PersistenceStatus, deliveries: DeliveryStats | None
) -> Mapping[str, int]:
    """Return the rows that the database rejects for good: of rounds, and of deliveries."""
    attempts = 0 if deliveries is None else deliveries.rejected_rows
    rejected = {str(kind): count for kind, count in status.rejected_rows.items()}
    return rejected | {str(RowKind.ATTEMPT): attempts}


def _join_memories(stored: Memory | None, seen: Memory | None) -> Memory | None:
    if stored is None or seen is None:
        return seen or stored
    return merge_stored(stored, seen)


def _merge_unknown_since(stored: Mapping[str, int], current: Mapping[str, int]) -> dict[str, int]:
    """Return since when each rule has been UNKNOWN; a rule that could judge meanwhile starts anew."""
    return {
        rule: min(stored.get(rule, timestamp), timestamp) for rule, timestamp in current.items()
    }
