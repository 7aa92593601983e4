"""State of one cluster's findings: open findings and alerts, both stored after each round.

A round's findings, its alerts and their notifications belong into one transaction. Between the rounds,
also while a slow cluster is being queried, `report_due` flushes alert groups that are due; a lock keeps it
and the rounds apart, so that everything below has one caller at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from rules.completeness import Completeness
from rules.open_findings import (
    Change,
    Identity,
    OpenFinding,
    all_gone,
    apply_changes,
    next_changes,
)
from service.alerting.alerts.delta import AlertDelta
from service.alerting.alerts.lifecycle import Seen
from service.metrics.alerting import AlertStats
from service.observe.watch import WatchedRound
from service.rounds.alerting_step import Alerting
from service.rounds.persistence import RoundWriter
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.store import Loaded

OpenFindings = dict[Identity, OpenFinding]


class FindingState:
    """Carries findings and alerts from round to round, also over a round that fails."""

    def __init__(
        self,
        round_writer: RoundWriter,
        alerting: Alerting | None,
        *,
        monotonic: Callable[[], float],
        on_stored: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `alerting` findings are stored, and nobody is notified.

        `on_stored` is called whenever there may be something new to send; it must not block.
        """
        self.cluster_id = ""  # empty until a broker or the stored state gives it
        self.turn = threading.Lock()
        self._round_writer = round_writer
        self._alerting = alerting
        self._monotonic = monotonic
        self._on_stored = on_stored
        self._open: dict[str, OpenFindings] = {}  # by cluster id; old ids end with the next round
        self._last_round: tuple[datetime, float] | None = None  # by both clocks

    @property
    def open_findings(self) -> Mapping[Identity, OpenFinding]:
        """Return the open findings of the current cluster."""
        return self._open.get(self.cluster_id, {})

    @property
    def alert_stats(self) -> AlertStats | None:
        """Return the alerting stats; None without alerting."""
        return None if self._alerting is None else self._alerting.stats(self.cluster_id)

    def keep(self, watched: WatchedRound, checkpoint: Checkpoint) -> list[Change]:
        """Compute what a round changes, and store it or queue it."""
        if watched.clock_step is not None:
            self._shift(watched.clock_step, watched.at)
        self._last_round = watched.at, self._monotonic()
        if watched.snapshot is not None:
            self.cluster_id = watched.snapshot.cluster_id
            self._end_other_clusters(watched.at)
        closed = self._close_requested(watched.at)
        changes = self._next_changes(watched)
        alerts = self._observe(changes, watched.at)
        self._pass_on(changes, watched.at, alerts, checkpoint)
        return [*closed, *changes]

    def has_reports_due(self) -> bool:
        """Whether an alert group is due; may be called at any time, also during a round."""
        now, alerting = self._now(), self._alerting
        if now is None or alerting is None or not self._round_writer.is_storing:
            return False
        return alerting.is_due(self.cluster_id, now)

    def report_due(self) -> None:
        """Flush alert groups that are due; not while a round is being stored, which does so itself."""
        if not self.turn.acquire(blocking=False):
            return
        try:
            now, alerting = self._now(), self._alerting
            if now is not None and alerting is not None and self.has_reports_due():
                delta = alerting.observe(self.cluster_id, None, now, may_flush=True)
                if delta is not None:
                    self._pass_on((), now, delta)
        finally:
            self.turn.release()

    def adopt(self, loaded: Loaded) -> None:
        """Merge the stored state under what this process has found since its start."""
        if not self.cluster_id:  # findings without a cluster id belong to the stored one
            self.cluster_id = loaded.cluster_id
            self._open = {self.cluster_id: self._open.get("", {})}
        self._open = {
            cluster_id: dict(
                self._round_writer.under(cluster_id, self._open.get(cluster_id, {}), loaded)
            )
            for cluster_id in {*loaded.open_findings, *self._open}
        }
        if self._alerting is not None:
            self._adopt_alerts(self._alerting, loaded)

    # -------------------------------------------------------------- steps
    def _now(self) -> datetime | None:
        """Return the time by the wall clock of the last round, even if it was set since; None without one."""
        if self._last_round is None:
            return None
        at, timestamp = self._last_round
        return at + timedelta(seconds=self._monotonic() - timestamp)

    def _pass_on(
        self,
        changes: Sequence[Change],
        at: datetime,
        alerts: AlertDelta | None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Store a record, and pass the result of storing on to alerting."""
        self._round_writer.keep(
            cluster_id=self.cluster_id,
            at=at,
            changes=changes,
            checkpoint=checkpoint,
            alerts=alerts,
        )
        for stored in self._round_writer.take_stored():
            self._on_stored()
            if self._alerting is not None:
                self._alerting.note_stored(stored.requests)
                for cluster_id in stored.rejected:
                    self._alerting.note_rejected(cluster_id)

    def _shift(self, step: timedelta, at: datetime) -> None:
        """Move the times of open findings along with a clock that was set: none ends by that."""
        if self._alerting is not None:
            self._alerting.shift(step, at)
        self._open = {
            cluster_id: {key: entry.shifted(step) for key, entry in findings.items()}
            for cluster_id, findings in self._open.items()
        }

    def _next_changes(self, watched: WatchedRound) -> list[Change]:
        before = self.open_findings
        changes = next_changes(
            before,
            watched.judged.judgements,
            completeness=Completeness.of(watched.snapshot),
            now=watched.at,
        )
        self._open[self.cluster_id] = apply_changes(before, changes, watched.at)
        return changes

    def _end_other_clusters(self, at: datetime) -> None:
        """End the findings of other cluster ids: the name belongs to one at a time."""
        alerting = self._ready
        others = [] if alerting is None else alerting.others(self.cluster_id)
        for other in sorted({*self._open, *others} - {self.cluster_id}):
            gone = all_gone(self._open.pop(other, {}))
            left = None
            if alerting is not None:
                seen = Seen(open_findings={}, changes=gone)
                left = alerting.end(other, self.cluster_id, seen, at)
            if gone or left is not None:
                # In one transaction with this round: what receivers are owed goes over to it.
                self._round_writer.keep(
                    cluster_id=other, at=at, changes=gone, alerts=left, more_comes=True
                )

    def _close_requested(self, at: datetime) -> Sequence[Change]:
        """Close the findings that operators want closed; if one happens again now, it is a new one."""
        alerting = self._ready
        if alerting is None:
            return ()
        closings = alerting.closings(self.open_findings, at)
        if not closings.done:
            return ()
        after = apply_changes(self.open_findings, closings.changes, at)
        self._open[self.cluster_id] = after
        seen = Seen(open_findings=after, changes=closings.changes)
        left = alerting.observe(self.cluster_id, seen, at, may_flush=False, closed=closings.done)
        self._round_writer.keep(
            cluster_id=self.cluster_id,
            at=at,
            changes=closings.changes,
            alerts=left,
            more_comes=True,
        )
        return closings.changes

    @property
    def _ready(self) -> Alerting | None:
        """Return alerting once its stored state is loaded; None before."""
        return self._alerting if self._round_writer.is_loaded else None

    def _observe(self, changes: Sequence[Change], at: datetime) -> AlertDelta | None:
        if self._ready is None:
            return None
        seen = Seen(open_findings=self.open_findings, changes=changes)
        return self._ready.observe(
            self.cluster_id, seen, at, may_flush=self._round_writer.is_storing
        )

    def _adopt_alerts(self, alerting: Alerting, loaded: Loaded) -> None:
        """Load the stored alerts, and step them with the rounds that wait to be stored."""
        alerting.load(loaded.alerting, damaged=loaded.damaged)
        alerting.note_stored(loaded.requests)
        open_: OpenFindings = dict(loaded.open_findings.get(self.cluster_id, {}))
        past = []
        for round_ in self._round_writer.waiting(self.cluster_id):
            changes = [c for c in round_.changes if c.identity in open_ or c.before is None]
            open_ = apply_changes(open_, changes, round_.at)
            past.append((round_.at, Seen(open_findings=open_, changes=round_.changes)))
        alerting.replay(self.cluster_id, past)
