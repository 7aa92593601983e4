"""Real rounds of a watcher, between which the time passes at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from rules.facts.snapshot import Snapshot
from rules.judgement import Finding
from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.watch import WatchedRound, Watcher
from service.runtime.clock import utc_now

ROUND = timedelta(seconds=20)  # a commit is asked about after two of them and judged after three


class QuickTime:
    """Real rounds, between which the time passes at once."""

    def __init__(self, reader: ClusterReader, scope: Scope) -> None:
        self._reader = reader
        self._began = utc_now()
        self._passed = timedelta(0)
        self.seen: Snapshot | None = None  # by the last round
        self._watcher = Watcher("quick", self, scope, utc_now=self._now, monotonic=self._uptime)

    def _now(self) -> datetime:
        return self._began + self._passed

    def _uptime(self) -> float:
        return self._passed.total_seconds()

    def read(self, scope: Scope) -> Snapshot:
        """Read the cluster at the time that it is here."""
        return replace(self._reader.read(scope), taken_at=self._now())

    def round(self) -> WatchedRound:
        """Make a round; the next one is later."""
        made = self._watcher.make_round()
        self._passed += ROUND
        self.seen = made.snapshot
        return made

    def said(self, rule: str, *verdicts: Verdict) -> list[Finding]:
        """Make a round, and return what a rule said in it."""
        return [
            finding
            for judgement in self.round().judged.judgements
            if judgement.rule.rule_id == rule
            for finding in judgement.findings(*verdicts)
        ]

    def stalled(self) -> tuple[Verdict, str]:
        """Make a round, and say what it told of the only group whether it does not move."""
        [found] = self.said("consumer_group_stalled", *Verdict)
        return found.verdict, found.reason
