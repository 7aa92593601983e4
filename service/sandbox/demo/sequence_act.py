"""The act of the two gaps: one heals, behind the other records are gone; the lines are alike."""

from __future__ import annotations

from typing import Final

from service.sandbox.demo.act import Act, Observation, Step, is_alone, whole_again
from service.sandbox.demo.api import Row
from service.sandbox.demo.stage import LOST, PARCELS, REFUNDS, Stage

REORDERING: Final = "sequence_gap_reordering"
LOSS: Final = "sequence_gap_loss"


def _gap(evidence: Row) -> str:
    expected = evidence["incoming_sequence"] - evidence["gap"]
    return f"expected {expected}, got {evidence['incoming_sequence']}"


def _is_harmless(observed: Observation) -> str | None:
    evidence = observed.evidence(REORDERING, PARCELS)
    if evidence is None or evidence["phase"] != "confirmed":
        return None
    return (
        f"info {REORDERING} on {PARCELS}: {_gap(evidence)}; confirmed harmless ({evidence['why']})"
        f"\n        {evidence['explanation']}"
    )


def _is_true_loss(observed: Observation) -> str | None:
    """Compare the reported loss with what reading the log before and after has shown."""
    evidence, expected = observed.evidence(LOSS, REFUNDS), observed.stage.sequence_truth
    if evidence is None or evidence["phase"] != "confirmed" or expected is None:
        return None
    [truth], [episode] = expected.lost, expected.episodes
    ranges = (evidence["lost_from"], evidence["lost_to"]), (truth.lost_from, truth.committed_to)
    if ranges[0] != ranges[1] or evidence["gap"] != episode.gap:
        return None
    last = evidence["lost_to"] - 1
    return (
        f"critical {LOSS} on {REFUNDS}: {_gap(evidence)}; {evidence['lost_offsets']} offsets, "
        f"{evidence['lost_from']} to {last}, are gone\n        {evidence['explanation']}\n"
        "        read from the log before and after: exactly these are gone"
    )


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
            seen=_is_true_loss,
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
