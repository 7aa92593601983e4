"""A service that watches by script: real persistence and alerting over a store, rounds made up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import count

from rules.catalogue.all_rules import Judged
from rules.open_findings import Change
from service.alerting.alerts.evaluate import AlertingConfig
from service.alerting.notifications.channels import NotificationContext
from service.observe.watch import WatchedRound
from service.rounds.alerting_step import Alerting, Attempt, unguarded
from service.rounds.finding_state import FindingState
from service.rounds.persistence import RoundWriter, Store
from service.storage.formats.checkpoint import Checkpoint
from service.storage.rounds.pending import PART_CHANGES
from tests.alerting import RULE, Said, config, judged
from tests.deltas import TELLING
from tests.factories import CLUSTER_ID, at, snapshot


class Watched:
    """One process; another one over the same store is what comes after a restart."""

    def __init__(
        self,
        store: Store,
        settings: AlertingConfig | None = None,
        *,
        attempt: Attempt = unguarded,
        telling: NotificationContext = TELLING,
        process: int = 1,
        part_changes: int = PART_CHANGES,
        waiting_rounds: int = 100,
    ) -> None:
        self.settings = settings or config()
        self.seconds = 0.0
        self.ahead = 0.0  # of the wall clock
        self.round_writer = RoundWriter(
            store,
            "default",
            monotonic=lambda: self.seconds,
            waiting_rounds=waiting_rounds,
            part_changes=part_changes,
        )
        ids = count(1)
        self.alerting = Alerting(
            self.settings,
            telling,
            new_id=lambda: f"msg-{process}-{next(ids)}",
            attempt=attempt,
        )
        self.found = FindingState(self.round_writer, self.alerting, monotonic=lambda: self.seconds)
        self.load()

    def load(self) -> None:
        """Read what an earlier process left, if it is time to try."""
        loaded = self.round_writer.load()
        if loaded is not None:
            self.found.adopt(loaded)

    def round(
        self,
        seconds: float,
        said: Mapping[str, Said],
        *,
        cluster_id: str = CLUSTER_ID,
        clock_set_by: float = 0.0,
        is_whole: bool = True,
    ) -> list[Change]:
        """Make a round; its time is the wall clock's, and the clock may have been set before.

        One that is not whole has gaps: what it says nothing of was not judged.
        """
        self.seconds = seconds
        self.ahead += clock_set_by
        self.load()
        now = at(seconds + self.ahead)
        watched = WatchedRound(
            at=now,
            snapshot=snapshot(taken_at=now, cluster_id=cluster_id, placement_complete=is_whole),
            judged=Judged(judgements=(judged(self.settings.rules[RULE], said),)),
            clock_step=timedelta(seconds=clock_set_by) if clock_set_by else None,
        )
        return self.found.keep(watched, Checkpoint())

    def wait(self, seconds: float) -> None:
        """Let time pass without a round."""
        self.seconds = seconds
        self.found.report_due()
