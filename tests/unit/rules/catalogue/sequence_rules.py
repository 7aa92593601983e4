"""The rules of sequences, and what they tell of rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rules.catalogue import (
    duplicates_possible,
    producer_sequence_bug,
    sequence_gap_loss,
    sequence_gap_reordering,
    sequence_gap_undetermined,
)
from rules.judgement import Judgement
from rules.verdict import Verdict
from rules.view import View
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.stage import play

RULES: Final[dict[str, Callable[[View], Judgement]]] = {
    "loss": sequence_gap_loss.judge,
    "reordering": sequence_gap_reordering.judge,
    "undetermined": sequence_gap_undetermined.judge,
    "duplicates": duplicates_possible.judge,
    "bug": producer_sequence_bug.judge,
}
TEXTBOOK: Final = CASES["textbook"].observations


def breaches(views: Sequence[View]) -> list[tuple[int, str, str]]:
    """Return what is told in which round: number of the round, rule and reason."""
    return [
        (number, name, finding.reason)
        for number, view in enumerate(views)
        for name, judge in RULES.items()
        for finding in judge(view).findings(Verdict.BREACH)
    ]


def told(name: str) -> list[tuple[int, str, str]]:
    return breaches(play(CASES[name].observations))
