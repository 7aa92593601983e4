"""Rounds of a few series that are scored live, by bands that are flat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import numpy as np

from rules.baseline.blocks import METRIC_CODES, Outcome
from rules.baseline.civil import civil_day
from rules.baseline.live_series import DayJudge
from rules.baseline.series import Metric, Series
from rules.catalogue import produce_rate_unusual
from rules.judgement import Finding, Judgement
from rules.remembering import view_of_round
from rules.verdict import Verdict
from service.history.extraction import JudgedRound, RoundSamples
from service.rounds.live_scoring import LiveScoring
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import CLUSTER_ID, NOON, commits, group, partitions, snapshot
from tests.unit.rules.baseline.flat_bands import flat_judge, in_order

MINUTE: Final = timedelta(minutes=1)
CALM, FAR, MISSING = 100.0, 900.0, float("nan")
OTHER_CLUSTER_ID: Final = "BBBBBBBBQACAAAAAAAAAAQ"
DAY = civil_day(NOON.date(), "UTC")


def rate(topic: str, partition: int = 0) -> Series:
    return Series(cluster="default", metric=Metric.PRODUCE_RATE, topic=topic, partition=partition)


def lag(group_id: str, partition: int = 0) -> Series:
    return Series(
        cluster="default",
        metric=Metric.READ_COMMITTED_LAG_SECONDS,
        topic="orders",
        partition=partition,
        group=group_id,
    )


class Judges:
    """The judges of a day that are there at once."""

    def __init__(
        self, judge: DayJudge | None, at: Callable[[int], DayJudge | None] | None = None
    ) -> None:
        self.judge = judge
        self.has_run: bool | None = judge is not None
        self._at = at

    def at(self, at_ms: int) -> DayJudge | None:
        return self.judge if self._at is None else self._at(at_ms)


class Rounds:
    """Rounds of a minute over some series; a round's rules know the rounds before."""

    def __init__(self, series: Sequence[Series], *, outcome: Outcome = Outcome.BANDED) -> None:
        self.series = in_order(series)
        self.judges = Judges(flat_judge(self.series, DAY, 60_000, outcome))
        self.scoring = LiveScoring(self.judges, interval_seconds=60)
        self.now = NOON
        self.clock_step: timedelta | None = None  # before the next round
        self.seen = snapshot(
            partitions=partitions({each.topic or "": 2 for each in self.series}),
            groups=(group("billing"), group("audit")),
            commits=commits((0, 0, 100)),
        )

    def put(self, rounds: int, *values: float) -> None:
        """Put rounds of the same values, one per series in the order of `series`, or one for all."""
        for _ in range(rounds):
            columns = np.broadcast_to(np.array(values, np.float64), (len(self.series),))
            samples = RoundSamples(
                at_ms=round(self.now.timestamp() * 1000),
                version=1,
                ids=np.array([each.series_id for each in self.series], np.int64),
                metric=np.array([METRIC_CODES[each.metric] for each in self.series], np.uint8),
                values=columns,
                went_back=0,
                collided=0,
            )
            judged = JudgedRound(snapshot=self.seen, before=None, clock_step=self.clock_step)
            self.scoring.take(judged, samples)
            self.now += MINUTE
            self.clock_step = None

    def set_clock(self, by: timedelta) -> None:
        """Set the clock before the next round."""
        self.now, self.clock_step = self.now + by, by

    def judged(self, rule: Any = produce_rate_unusual, after: timedelta = MINUTE) -> Judgement:
        now = self.now - MINUTE + after
        view = view_of_round(replace(self.seen, taken_at=now), None)
        unusual = self.scoring.latest().of_cluster(self.seen.cluster_id)
        judgement: Judgement = rule.judge(replace(view, unusual=unusual))
        return judgement

    def breaches(self, rule: Any = produce_rate_unusual) -> list[Finding]:
        return list(self.judged(rule).findings(Verdict.BREACH))

    def said(self, rule: Any = produce_rate_unusual) -> list[tuple[str, str]]:
        """Return the names of subjects, "" for the cluster, with their reasons."""
        judgement = self.judged(rule)
        return [
            (finding.labels.get("topic", finding.labels.get("group", "")), finding.reason)
            for finding in judgement.findings(*Verdict)
        ]

    def restart(self, checkpoint: bytes) -> None:
        self.scoring = LiveScoring(self.judges, interval_seconds=60)
        self.scoring.adopt(decode(checkpoint, FORMAT).scoring, CLUSTER_ID)

    def checkpoint(self) -> bytes:
        return encode(Checkpoint(scoring=self.scoring.remembered))
