"""Rounds of which only the frame matters."""

from __future__ import annotations

from collections.abc import Sequence

from rules.catalogue.all_rules import Judged
from rules.open_findings import Change
from service.observe.watch import WatchedRound
from service.rounds.latest import Look, RoundOutcome
from service.rounds.pipeline import MadeRound
from tests.factories import NOON


def look() -> Look:
    """Return the look after a failed first round."""
    return Look(
        cluster="default",
        version="0.1.0",
        started_at=NOON,
        interval_seconds=15.0,
        rounds=1,
        at=NOON,
        outcome=RoundOutcome.FAILED,
    )


def made_round(
    shown: Look, changes: Sequence[Change] = (), *, was_loaded: bool = False
) -> MadeRound:
    """Return a round that left this look."""
    watched = WatchedRound(at=NOON, snapshot=shown.snapshot, judged=Judged(judgements=()))
    return MadeRound(watched=watched, changes=changes, look=shown, was_loaded=was_loaded)
