"""Rounds of which only the frame matters."""

from __future__ import annotations

from collections.abc import Sequence

from rules.catalogue.all_rules import Judged
from rules.open_findings import Change
from service.observe.watch import WatchedRound
from service.rounds.latest import RoundOutcome, ServiceState
from service.rounds.pipeline import RoundResult
from tests.factories import NOON


def service_state() -> ServiceState:
    """Return the observation after a failed first round."""
    return ServiceState(
        cluster="default",
        version="0.1.0",
        started_at=NOON,
        interval_seconds=15.0,
        rounds=1,
        at=NOON,
        outcome=RoundOutcome.FAILED,
    )


def made_round(
    shown: ServiceState, changes: Sequence[Change] = (), *, was_loaded: bool = False
) -> RoundResult:
    """Return a round that left this observation."""
    watched = WatchedRound(at=NOON, snapshot=shown.snapshot, judged=Judged(judgements=()))
    return RoundResult(watched=watched, changes=changes, state=shown, was_loaded=was_loaded)
