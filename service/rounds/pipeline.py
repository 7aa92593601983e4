"""One round from end to end: observe, judge, tell what changed, store, write the metrics, publish.

Rounds never overlap: `make_round` has one caller at a time. Nothing here waits but for the limits
of the cluster's reader and of the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rules.catalogue.all_rules import count_verdicts
from rules.facts.memory import Memory, laid_under
from rules.facts.scrapes import EndpointState
from rules.facts.snapshot import Snapshot
from rules.open_findings import (
    Change,
    Identity,
    OpenFinding,
)
from rules.verdict import Severity
from service.history.stats import HistoryStats
from service.metrics.alerting import DeliveryStats
from service.metrics.exposition import Exposition
from service.metrics.log_stats import after_round
from service.metrics.open_transactions import OpenTransactions
from service.metrics.totals import ProcessStats, RiskStats, SelfMetrics, StoreStats
from service.observe.watch import WatchedRound, Watcher
from service.rounds.alerting_step import Alerting
from service.rounds.finding_state import Found
from service.rounds.latest import Latest, RoundOutcome, ServiceState
from service.rounds.persistence import PersistenceState, PersistenceStatus, RoundWriter
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.store import Loaded

OpenFindings = dict[Identity, OpenFinding]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MadeRound:
    """What came of a round, for the log and for whoever waits for it."""

    watched: WatchedRound
    changes: Sequence[Change]
    state: ServiceState
    was_loaded: bool  # this round read what an earlier process left


class RiskPort(Protocol):
    """Whatever observes partitions at risk between the rounds."""

    def note(self, snapshot: Snapshot) -> None:
        """Take from a round which partitions are at risk."""

    def stats(self) -> RiskStats:
        """Return how it goes."""


class HistoryPort(Protocol):
    """Whatever keeps the samples of rounds."""

    def take(self, watched: WatchedRound) -> None:
        """Take a judged round; returns at once."""

    def stats(self) -> HistoryStats:
        """Return how it goes."""


class Pipeline:
    """Makes a cluster's rounds; what it carries from round to round outlives a failed one."""

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
    ) -> None:
        """`process` tells how the process is now, `endpoints` how reading metrics goes.

        `deliveries` tells how sending goes; `on_stored` is told that there may be something to send.
        Without `alerting` findings are kept, and nobody is told of them.
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
        self._found = Found(round_writer, alerting, monotonic=monotonic, on_stored=on_stored)
        self._totals = SelfMetrics(
            version=latest.state.version,
            interval_seconds=latest.state.interval_seconds,
            rounds=dict.fromkeys(map(str, RoundOutcome), 0),
        )

    @property
    def open_findings(self) -> int:
        """Return how many findings of the current cluster are open."""
        return len(self._found.open_findings)

    def load(self, *, is_start: bool = False, at_once: bool = False) -> bool:
        """Read what an earlier process left, if it is time to try or `at_once`; whether it was done.

        Raises:
            StoreError: at the start only: no later try will mend it.
        """
        loaded = self._round_writer.load(is_start=is_start, at_once=at_once)
        if loaded is not None:
            self._adopt(loaded)
        known = self._found.open_findings
        shown = replace(
            self._latest.state, persistence=self._round_writer.status, open_findings=known
        )
        self._latest.publish(shown)
        return loaded is not None

    def make_round(self) -> MadeRound:
        """Make one round."""
        began = self._monotonic()
        with self._found.turn:
            was_loaded = self.load()
        watched = self._watcher.make_round(knows_positions=self._round_writer.is_loaded)
        if self._risk is not None and watched.snapshot is not None:
            self._risk.note(watched.snapshot)
        if self._history is not None:
            self._history.take(watched)
        judged = self._monotonic()
        with self._found.turn:
            changes = self._found.keep(watched, self._checkpoint())
        stored = self._monotonic()
        collected = watched.snapshot.report.took_seconds if watched.snapshot else judged - began
        phases = {"rules": judged - began - collected, "store": stored - judged}
        self._totals = self._next_totals(watched, stored - began, phases)
        state = self._next_state(watched, stored - began)
        self._expose(watched)
        self._latest.publish(state)
        return MadeRound(watched=watched, changes=changes, state=state, was_loaded=was_loaded)

    def has_reports_due(self) -> bool:
        """Whether anything of alerts is due; may be asked at any time."""
        return self._found.has_reports_due()

    def report_due(self) -> None:
        """Tell of alerts what is due, between the rounds; may block as long as storing does."""
        self._found.report_due()

    def note_died(self) -> None:
        """Show that a round died of a defect: what the one before it saw is not news any more."""
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
        """Store what still waits, once; return how that went."""
        with self._found.turn:
            self.load(at_once=True)  # a database that came back just now
            self._round_writer.flush(at_once=True)
        return self._round_writer.status

    # -------------------------------------------------------------- steps
    def _checkpoint(self) -> Checkpoint:
        remembered = self._watcher.remembered
        return Checkpoint(
            memory=remembered.memory,
            unknown_since=remembered.unknown_since,
            log_positions=remembered.log_positions,
        )

    def _adopt(self, loaded: Loaded) -> None:
        """Lay what was stored under what this process has seen since its start."""
        checkpoint = loaded.checkpoint or Checkpoint()
        # Log files go on where they are, whatever cluster id their brokers have by now.
        positions = checkpoint.log_positions
        known = replace(self._watcher.remembered, log_positions=positions)
        is_same = self._found.cluster_id in ("", loaded.cluster_id)
        if is_same:
            since = checkpoint.unknown_since
            known = replace(
                known,
                memory=_joined(checkpoint.memory, known.memory),
                unknown_since=_earlier(since, known.unknown_since)
                if self._latest.state.rounds
                else since,
            )
        self._watcher.remembered = known
        self._found.adopt(loaded)

    # -------------------------------------------------------------- what is shown
    def _next_totals(
        self, watched: WatchedRound, took: float, phases: Mapping[str, float]
    ) -> SelfMetrics:
        snapshot, status = watched.snapshot, self._round_writer.status
        counts = count_verdicts(watched.judged.judgements)
        report = None if snapshot is None else snapshot.report
        ended = self._totals.ended
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
            last_success=self._totals.last_success if snapshot is None else snapshot.taken_at,
            took_seconds=took,
            phase_seconds=phases,
            open_findings=self._open_counts(watched),
            alerting=self._found.alert_stats,
            deliveries=self._deliveries(),
            history=None if self._history is None else self._history.stats(),
            store=StoreStats(
                is_up=status.state is PersistenceState.STORED,
                waiting_rounds=status.waiting_rounds,
                lost_transitions=status.lost_transitions,
                last_success=status.stored_at,
            ),
        )

    def _rounds_of(self, watched: WatchedRound) -> int:
        return self._totals.rounds.get(outcome_of(watched), 0)

    def _open_counts(self, watched: WatchedRound) -> dict[tuple[str, Severity], int]:
        """Count the open findings by rule; a rule without one shows zero."""
        rules = [judgement.rule for judgement in watched.judged.judgements]
        counts = Counter({(rule.rule_id, rule.severity): 0 for rule in rules})
        for (rule_id, _), entry in self._found.open_findings.items():
            counts[rule_id, entry.severity] += 1
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
            open_findings=self._found.open_findings,
            persistence=self._round_writer.status,
            restarts=self._totals.process.restarts,
            logs=self._totals.logs,
            endpoints=self._totals.endpoints,
        )

    def _expose(self, watched: WatchedRound) -> None:
        if watched.snapshot is None:
            self._exposition.update_blind(self._latest.state.cluster, self._totals)
            return
        found = None if watched.view is None else OpenTransactions.of(watched.view)
        self._exposition.update(watched.snapshot, self._totals, found, watched.time_lags)


def outcome_of(watched: WatchedRound) -> RoundOutcome:
    """Return how a round ended."""
    if watched.snapshot is None:
        return RoundOutcome.FAILED
    return RoundOutcome.GAPS if watched.snapshot.gaps else RoundOutcome.COMPLETE


def _joined(stored: Memory | None, seen: Memory | None) -> Memory | None:
    if stored is None or seen is None:
        return seen or stored
    return laid_under(stored, seen)


def _earlier(stored: Mapping[str, int], current: Mapping[str, int]) -> dict[str, int]:
    """Return since when a rule has been UNKNOWN; one that could judge meanwhile begins anew."""
    return {
        rule: min(stored.get(rule, timestamp), timestamp) for rule, timestamp in current.items()
    }
