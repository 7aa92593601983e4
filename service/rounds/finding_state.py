"""State of one cluster's findings: open findings and alerts, both stored after each round.

A round's findings, its alerts and their notifications belong into one transaction. Between the rounds,
also while a slow cluster is being queried, `report_due` flushes alert groups that are due; a lock keeps it
and the rounds apart, so that everything below has one caller at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from rules.completeness import Completeness
from rules.facts.change_events import ChangeEvent
from rules.finding_table import FindingTable
from rules.open_findings import Change, all_gone, apply_changes
from service.alerting.alerts.delta import AlertDelta
from service.alerting.alerts.lifecycle import Seen
from service.metrics.alerting import AlertStats
from service.observe.watch import WatchedRound
from service.rounds.alerting_step import Alerting
from service.rounds.lost_openings import LostOpenings
from service.rounds.persistence import RoundWriter
from service.rounds.refresh import Refresh
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.store import Loaded


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
        # By cluster id; old ids end with the next round.
        self._open: dict[str, FindingTable] = {}
        self._lost_openings = LostOpenings()
        self._refresh = Refresh()
        self._last_round: tuple[datetime, float] | None = None  # by both clocks

    @property
    def open_findings(self) -> FindingTable:
        """Return the open findings of the current cluster."""
        return self._open.get(self.cluster_id, FindingTable())

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
        before = self.open_findings
        changes, table = before.advance(
            watched.judged.judgements,
            completeness=Completeness.of(watched.snapshot),
            now=watched.at,
        )
        self._open[self.cluster_id] = table
        alerts = self._observe(
            Seen(open_findings=table, changes=changes, before=before), watched.at
        )
        self._lost_openings.add(self._round_writer.take_lost_openings(self.cluster_id))
        opened = self._lost_openings.take(table, changes, watched.judged.judgements)
        moved_on: Sequence[Change] = ()
        if self._round_writer.is_storing:  # else it would only wait
            moved_on = self._refresh.take(table, [*changes, *opened], watched.at)
        events = () if watched.view is None else watched.view.change_events
        self._pass_on([*changes, *opened, *moved_on], watched.at, alerts, checkpoint, events)
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
            self._open = {self.cluster_id: self._open.get("", FindingTable())}
        self._open = {
            cluster_id: FindingTable(
                self._round_writer.under(
                    cluster_id, self._open.get(cluster_id, FindingTable()).lasting(), loaded
                )
            )
            for cluster_id in {*loaded.open_findings, *self._open}
        }
        if self._alerting is not None:
            self._adopt_alerts(self._alerting, loaded)

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
        change_events: Sequence[ChangeEvent] = (),
    ) -> None:
        """Store a record, and pass the result of storing on to alerting."""
        self._round_writer.keep(
            cluster_id=self.cluster_id,
            at=at,
            changes=changes,
            checkpoint=checkpoint,
            alerts=alerts,
            change_events=change_events,
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
            cluster_id: findings.shifted(step) for cluster_id, findings in self._open.items()
        }

    def _end_other_clusters(self, at: datetime) -> None:
        """End the findings of other cluster ids: the name belongs to one at a time."""
        alerting = self._ready
        others = [] if alerting is None else alerting.others(self.cluster_id)
        for other in sorted({*self._open, *others} - {self.cluster_id}):
            before = self._open.pop(other, FindingTable())
            gone, left = all_gone(before), None
            if alerting is not None:
                seen = Seen(open_findings={}, changes=gone, before=before)
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
        before = self.open_findings
        closings = alerting.closings(before, at)
        if not closings.done:
            return ()
        after = before.applied(closings.changes, at)
        self._open[self.cluster_id] = after
        seen = Seen(open_findings=after, changes=closings.changes, before=before)
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

    def _observe(self, seen: Seen, at: datetime) -> AlertDelta | None:
        if self._ready is None:
            return None
        return self._ready.observe(
            self.cluster_id, seen, at, may_flush=self._round_writer.is_storing
        )

    def _adopt_alerts(self, alerting: Alerting, loaded: Loaded) -> None:
        """Load the stored alerts, and step them with the rounds that wait to be stored."""
        alerting.load(loaded.alerting, damaged=loaded.damaged)
        alerting.note_stored(loaded.requests)
        before = dict(loaded.open_findings.get(self.cluster_id, {}))
        past = []
        for round_ in self._round_writer.waiting(self.cluster_id):
            changes = [c for c in round_.changes if c.identity in before or c.before is None]
            after = apply_changes(before, changes, round_.at)
            seen = Seen(open_findings=after, changes=round_.changes, before=before)
            past.append((round_.at, seen))
            before = after
        alerting.replay(self.cluster_id, past)
