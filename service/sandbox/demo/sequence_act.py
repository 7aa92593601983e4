"""The act of the two gaps: one heals, behind the other records are gone; the lines are alike."""

from __future__ import annotations

from typing import Final

from rules.sequence.evidence_fields import SequenceEvidence
from service.sandbox.demo.act import Act, Observation, Step, is_alone, whole_again
from service.sandbox.demo.stage import LOST, PARCELS, REFUNDS, Stage

REORDERING: Final = "sequence_gap_reordering"
LOSS: Final = "sequence_gap_loss"


def _gap(evidence: SequenceEvidence) -> str:
    sequence, gap = evidence["incoming_sequence"], evidence["gap"]
    expected = None if gap is None else sequence - gap
    return f"expected {expected}, got {sequence}"


def _is_harmless(observed: Observation) -> str | None:
    evidence = observed.evidence(REORDERING, PARCELS, SequenceEvidence)
    if evidence is None or evidence["phase"] != "confirmed":
        return None
    return (
        f"info {REORDERING} on {PARCELS}: {_gap(evidence)}; confirmed harmless ({evidence['why']})"
        f"\n        {evidence['explanation']}"
    )


def _is_true_loss(observed: Observation) -> str | None:
    """Compare the reported loss with what reading the log before and after has shown."""
    evidence, expected = (
        observed.evidence(LOSS, REFUNDS, SequenceEvidence),
        observed.stage.sequence_truth,
    )
    if evidence is None or evidence["phase"] != "confirmed" or expected is None:
        return None
    [truth], [episode] = expected.lost, expected.episodes
    start, end = evidence["lost_from"], evidence["lost_to"]
    is_same = (start, end) == (truth.lost_from, truth.committed_to)
    if end is None or not is_same or evidence["gap"] != episode.gap:
        return None
    return (
        f"critical {LOSS} on {REFUNDS}: {_gap(evidence)}; {evidence['lost_offsets']} offsets, "
        f"{start} to {end - 1}, are gone\n        {evidence['explanation']}\n"
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
