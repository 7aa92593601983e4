"""A watcher whose rounds are made by hand, on real brokers, in the rhythm of a short interval."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rules.facts.scrapes import Scrapes
from rules.verdict import Verdict
from service.observe.cluster_reader import ClusterReader, Scope
from service.observe.feeds import LogFeed
from service.observe.watch import EARLY_SECONDS, WatchedRound, Watcher
from service.runtime.clock import monotonic, pause, utc_now

ROUND_SECONDS = 1.6  # longer than the 1.5 s that a last stable offset must have stood
UNTIL_SECONDS = 180.0


class Watch:
    """A watcher that makes rounds by hand, in the rhythm of a service with a short interval."""

    def __init__(
        self,
        reader: ClusterReader,
        feeds: Sequence[LogFeed] = (),
        scrapes: Callable[[], Scrapes] = Scrapes.unread,
        topics: str | None = None,
        *,
        reads_transactions: bool = True,
        samples_batches: bool = False,
    ) -> None:
        self._watcher = Watcher(
            "default",
            reader,
            Scope(
                transaction_log=reads_transactions,
                batch_samples=samples_batches,
                topics=None if topics is None else re.compile(topics),
            ),
            utc_now=utc_now,
            monotonic=monotonic,
            feeds=feeds,
            scrapes=scrapes,
        )
        self.rounds: list[WatchedRound] = []

    def round(self) -> WatchedRound:
        """Make a round, a time after the one before; sooner where that one wants it."""
        if self.rounds:
            pause(EARLY_SECONDS if self.rounds[-1].next_is_early else ROUND_SECONDS)
        self.rounds.append(self._watcher.make_round())
        return self.rounds[-1]

    def until(
        self, condition: Callable[[WatchedRound], object], seconds: float = UNTIL_SECONDS
    ) -> WatchedRound:
        """Make rounds until one is as wanted."""
        began = monotonic()
        while monotonic() - began < seconds:
            if condition(self.round()):
                return self.rounds[-1]
        raise AssertionError(told(self.rounds))


def told(rounds: Sequence[WatchedRound]) -> str:
    """Say what the last rounds said, but for what is fine."""
    return "\n".join(
        f"{one.at:%H:%M:%S} gaps {[gap.what for gap in (one.snapshot.gaps if one.snapshot else ())]} "
        + ", ".join(
            f"{finding.rule.rule_id} {dict(finding.labels)} {finding.verdict.name} {finding.reason}"
            for judgement in one.judged.judgements
            for finding in judgement.findings(Verdict.BREACH, Verdict.UNKNOWN)
        )
        for one in rounds[-8:]
    )
