"""Builds live scoring: the judges of the day, and what scores the rounds by them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from service.history.extraction import JudgedRound, RoundSamples
from service.rounds.day_judges import DayJudges
from service.rounds.live_scoring import LiveScoring
from service.runtime.clock import utc_now
from service.runtime.log import Log
from service.runtime.supervisor import Supervisor
from service.settings import Settings
from service.storage.baselines.judging import JudgingBaselines
from service.storage.rounds.store import PostgresStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringParts:
    """Live scoring, and the loader of its judges."""

    judges: DayJudges
    scoring: LiveScoring
    supervisor: Supervisor

    def take(self, judged: JudgedRound, samples: RoundSamples) -> None:
        """Score a round; a defect of it costs no history."""
        self.supervisor.attempt("live_scoring", lambda: self.scoring.take(judged, samples))


def make_scoring(
    settings: Settings,
    store: PostgresStore,
    supervisor: Supervisor,
    stop: asyncio.Event,
    log: Log,
) -> ScoringParts | None:
    """Build it for one cluster; None where no history is kept."""
    if not settings.history.enabled:
        return None
    cluster, interval = settings.kafka.name, settings.service.interval_seconds
    judges = DayJudges(
        JudgingBaselines(lambda: store.engine, cluster),
        cluster,
        interval_seconds=interval,
        utc_now=utc_now,
        stop=stop,
        log=log,
    )
    scoring = LiveScoring(judges, interval_seconds=interval)
    return ScoringParts(judges=judges, scoring=scoring, supervisor=supervisor)
