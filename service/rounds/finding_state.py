"""What the rounds of one cluster have found: open findings and alerts, and that both are kept.

A round's findings, its alerts and what is sent of them belong into one transaction. Between the
rounds, also while a slow cluster is being asked, `report_due` tells of alerts what is due; it and the
rounds take turns, so that there is one caller at a time of all that is below.
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
from service.rounds.alerting_step import Alerting, PastRound
from service.rounds.persistence import RoundRecord, RoundWriter
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.store import Loaded

OpenFindings = dict[Identity, OpenFinding]


class Found:
    """Carries findings and alerts from round to round; what it carries outlives a failed one."""

    def __init__(
        self,
        round_writer: RoundWriter,
        alerting: Alerting | None,
        *,
        monotonic: Callable[[], float],
        on_stored: Callable[[], None] = lambda: None,
    ) -> None:
        """Without `alerting` findings are kept, and nobody is told of them.

        `on_stored` is told whenever there may be something new to send; it must not block.
        """
        self.cluster_id = ""  # empty until a broker or an earlier process has told it
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
        """Return how alerting goes; None without any."""
        return None if self._alerting is None else self._alerting.stats(self.cluster_id)

    def keep(self, watched: WatchedRound, checkpoint: Checkpoint) -> list[Change]:
        """Find out what a round changes, and store it or have it wait."""
        if watched.clock_step is not None:
            self._shift(watched.clock_step, watched.at)
        self._last_round = watched.at, self._monotonic()
        if watched.snapshot is not None:
            self.cluster_id = watched.snapshot.cluster_id
            self._end_other_clusters(watched.at)
        closed = self._close_what_persons_want(watched.at)
        changes = self._next_changes(watched)
        alerts = self._observe(changes, watched.at)
        self._pass_on(changes, watched.at, alerts, checkpoint)
        return [*closed, *changes]

    def has_reports_due(self) -> bool:
        """Whether anything is due; may be asked at any time, also while a round goes on."""
        now, alerting = self._now(), self._alerting
        if now is None or alerting is None or not self._round_writer.is_storing:
            return False
        return alerting.is_due(self.cluster_id, now)

    def report_due(self) -> None:
        """Tell of alerts what is due; not while a round is being stored, which does so itself."""
        if not self.turn.acquire(blocking=False):
            return
        try:
            now, alerting = self._now(), self._alerting
            if now is not None and alerting is not None and self.has_reports_due():
                delta = alerting.observe(self.cluster_id, None, now, tells=True)
                if delta is not None:
                    self._pass_on((), now, delta)
        finally:
            self.turn.release()

    def adopt(self, loaded: Loaded) -> None:
        """Lay what was stored under what this process has found since its start."""
        if not self.cluster_id:  # what was found blindly is of the cluster that is remembered
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
        """Return the time by the clock of the last round, whoever has set it since; None before one."""
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
        """Have it stored, and let alerting know what came of it."""
        self._round_writer.keep(
            RoundRecord(
                cluster_id=self.cluster_id,
                at=at,
                changes=changes,
                checkpoint=checkpoint,
                alerts=alerts,
            )
        )
        for stored in self._round_writer.take_stored():
            self._on_stored()
            if self._alerting is not None:
                self._alerting.note_stored(stored.requests)
                for cluster_id in stored.rejected:
                    self._alerting.note_rejected(cluster_id)

    def _shift(self, step: timedelta, at: datetime) -> None:
        """Move the times of what is open along with a clock that was set: no event ends by that."""
        if self._alerting is not None:
            self._alerting.shift(step, at)
        self._open = {
            cluster_id: {key: entry.shifted(step) for key, entry in found.items()}
            for cluster_id, found in self._open.items()
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
        """The name belongs to one cluster id at a time: what is open of another one is gone."""
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
                    RoundRecord(
                        cluster_id=other, at=at, changes=gone, checkpoint=None, alerts=left
                    ),
                    more_comes=True,
                )

    def _close_what_persons_want(self, at: datetime) -> Sequence[Change]:
        """End the events that persons have dealt with; should one happen again now, it is another."""
        alerting = self._ready
        if alerting is None:
            return ()
        closings = alerting.closings(self.open_findings, at)
        if not closings.done:
            return ()
        after = apply_changes(self.open_findings, closings.changes, at)
        self._open[self.cluster_id] = after
        seen = Seen(open_findings=after, changes=closings.changes)
        left = alerting.observe(self.cluster_id, seen, at, tells=False, closed=closings.done)
        self._round_writer.keep(
            RoundRecord(
                cluster_id=self.cluster_id,
                at=at,
                changes=closings.changes,
                checkpoint=None,
                alerts=left,
            ),
            more_comes=True,
        )
        return closings.changes

    @property
    def _ready(self) -> Alerting | None:
        """Return alerting as soon as it is known what an earlier process told."""
        return self._alerting if self._round_writer.is_loaded else None

    def _observe(self, changes: Sequence[Change], at: datetime) -> AlertDelta | None:
        if self._ready is None:
            return None
        seen = Seen(open_findings=self.open_findings, changes=changes)
        return self._ready.observe(self.cluster_id, seen, at, tells=self._round_writer.is_storing)

    def _adopt_alerts(self, alerting: Alerting, loaded: Loaded) -> None:
        """Go on with what was stored of alerts, and let the rounds that wait happen to them."""
        alerting.load(loaded.alerting, damaged=loaded.damaged)
        alerting.note_stored(loaded.requests)
        open_: OpenFindings = dict(loaded.open_findings.get(self.cluster_id, {}))
        past = []
        for one in self._round_writer.waiting(self.cluster_id):
            known = [c for c in one.changes if c.identity in open_ or c.before is None]
            open_ = apply_changes(open_, known, one.at)
            past.append(PastRound(at=one.at, changes=one.changes, open_findings=open_))
        alerting.replay(self.cluster_id, past)
