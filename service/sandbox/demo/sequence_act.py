"""The act of the two gaps: one heals, behind the other records are gone; the lines are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from service.sandbox.demo.act import Act, Step, is_alone, whole_again
from service.sandbox.demo.api import RoundStatus, Row
from service.sandbox.demo.stage import LOST, PARCELS, REFUNDS, Stage

REORDERING: Final = "sequence_gap_reordering"
LOSS: Final = "sequence_gap_loss"


def _told(status: RoundStatus, rule: str, topic: str) -> Row | None:
    """Return the evidence of what is said of a topic."""
    found = status.finding(rule, topic)
    return None if found is None else found["evidence"]


def _gap(told: Row) -> str:
    expected = told["incoming_sequence"] - told["gap"]
    return f"expected {expected}, got {told['incoming_sequence']}"


def _is_harmless(rounds: Sequence[RoundStatus]) -> str | None:
    told = _told(rounds[-1], REORDERING, PARCELS)
    if told is None or told["phase"] != "confirmed":
        return None
    return (
        f"info {REORDERING} on {PARCELS}: {_gap(told)}; confirmed harmless ({told['why']})"
        f"\n        {told['explanation']}"
    )


def _is_loss(rounds: Sequence[RoundStatus]) -> str | None:
    told = _told(rounds[-1], LOSS, REFUNDS)
    if told is None or told["phase"] != "confirmed":
        return None
    last = told["lost_to"] - 1
    return (
        f"critical {LOSS} on {REFUNDS}: {_gap(told)}; {told['lost_offsets']} offsets, "
        f"{told['lost_from']} to {last}, are gone\n        {told['explanation']}"
    )


def _is_true_loss(stage: Stage, rounds: Sequence[RoundStatus]) -> str | None:
    """Hold what was told against what reading the log before and after has shown."""
    saw, told = _is_loss(rounds), _told(rounds[-1], LOSS, REFUNDS)
    if saw is None or told is None or stage.sequence_truth is None:
        return None
    [truth], [episode] = stage.sequence_truth.lost, stage.sequence_truth.episodes
    ranges = (told["lost_from"], told["lost_to"]), (truth.lost_from, truth.committed_to)
    if ranges[0] != ranges[1] or told["gap"] != episode.gap:
        return None
    return f"{saw}\n        read from the log before and after: exactly these are gone"


SEQUENCES: Final = Act(
    title="Two gaps in sequences: one is harmless, one is a loss",
    steps=[
        Step(
            did=f"a network turned batches of a producer on {PARCELS} around; it sent them again",
            do=Stage.reorder_batches,
            seen=_is_harmless,
            limit_seconds=45,
        ),
        Step(
            did=f"a producer sent 3 records to {REFUNDS}, and {LOST} more when one broker alone was in "
            "sync",
            do=Stage.prepare_sequence_loss,
            seen=is_alone(REFUNDS, LOST),
            limit_seconds=45,
        ),
        Step(
            did="that broker was killed, a replica leads that has none of them, and the producer went on",
            do=Stage.lose_sequences,
            seen=_is_loss,
            check=_is_true_loss,
            limit_seconds=60,
        ),
        Step(
            did="the old leader came back",
            do=Stage.bring_back,
            seen=whole_again,
            limit_seconds=60,
        ),
    ],
)
