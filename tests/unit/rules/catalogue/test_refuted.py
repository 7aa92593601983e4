"""A loss that was told and is none after all: its finding says so, and nobody is woken up for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.catalogue import sequence_gap_loss, sequence_gap_reordering
from rules.completeness import Completeness
from rules.facts.memory import Memory
from rules.open_findings import Identity, OpenFinding, Step, apply_changes, next_changes
from rules.verdict import Severity, Verdict
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.unit.rules.catalogue.sequence_rules import breaches
from tests.unit.rules.sequence.case_observations import ALONE, OLD_BATCH, of_2
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import PATIENCE, batch, found, play

TEXTBOOK: Final = CASES["textbook"].observations
CAME: Final = batch(100, 3, 24, leader_epoch=6)  # what was missing, after all
HEALED: Final = of_2(25, found=[found(OLD_BATCH, CAME)])
REFUTED: Final = (3, "loss", "refuted")


def test_a_proven_loss_is_refuted_when_its_client_sends_after_all() -> None:
    said = breaches(play((*TEXTBOOK, HEALED, of_2(26))))
    assert said == [(2, "loss", "lost"), REFUTED, (3, "reordering", "reordered")]


def test_so_is_one_that_was_bounded_by_its_gap() -> None:
    observations = CASES["unclean-and-unhealed"].observations
    late = of_2(21 + PATIENCE, found=[found(OLD_BATCH, batch(100, 3, 1, leader_epoch=6))])
    said = breaches(play((*observations, late)))
    assert said == [(3, "loss", "lost"), (4, "loss", "refuted"), (4, "reordering", "reordered")]


def test_it_goes_on_as_information_with_the_evidence_of_what_it_was() -> None:
    views, known = play((*TEXTBOOK, HEALED, of_2(26))), dict[Identity, OpenFinding]()
    steps: list[Step] = []
    for view in views:
        judgements = [judge(view) for judge in (sequence_gap_loss.judge,)]
        changes = next_changes(known, judgements, completeness=Completeness(), now=view.now)
        steps += [one.step for one in changes]
        known = apply_changes(known, changes, view.now)
    assert steps == [Step.OPENED, Step.AGAIN, Step.HELD]
    [finding] = known.values()
    assert (finding.reason, finding.severity) == ("refuted", Severity.INFO)
    assert (finding.evidence["class"], finding.evidence["why"]) == ("reordering", "filled")
    assert finding.evidence["lost_from"] is None


def test_it_is_not_refuted_while_another_producer_has_lost_records() -> None:
    both = (rejected(27, 2, broker=2), rejected(30, 2, broker=2, producer_id=9))
    observations = (
        ALONE,
        of_2(11, lines=both, ends=((0, 5, 100),)),
        of_2(12, found=[found(OLD_BATCH), found(OLD_BATCH, producer_id=9)]),
        of_2(25, found=[found(OLD_BATCH, CAME), found(OLD_BATCH, producer_id=9)]),
    )
    said = breaches(play(observations))
    assert [one for one in said if one[1] == "loss"] == [(2, "loss", "lost")]
    assert (3, "reordering", "reordered") in said


def test_what_is_only_suspected_of_another_producer_is_what_is_left() -> None:
    both = (rejected(27, 2, broker=2), rejected(600, 2, broker=2, producer_id=9))
    observations = (
        ALONE,
        of_2(11, lines=both, ends=((0, 5, 100),)),
        *(of_2(12 + n, found=[found(OLD_BATCH)]) for n in range(4)),
        *(of_2(12 + PATIENCE + n, found=[found(OLD_BATCH)]) for n in range(5)),
        replace(HEALED, second=20 + PATIENCE),
    )
    said = [one for one in breaches(play(observations)) if one[1] == "loss"]
    assert said == [(2, "loss", "lost"), (9, "loss", "lost"), (11, "loss", "possibly_lost")]
    [finding] = sequence_gap_loss.judge(play(observations)[-1]).findings(Verdict.BREACH)
    assert finding.evidence["producer_id"] == 9


def test_a_suspicion_that_was_told_is_refuted_too() -> None:
    late = 20 + PATIENCE
    observations = (
        *CASES["no-read-and-a-loss"].observations,
        of_2(late, lines=(rejected(28, 2, broker=2, second=late - 1),)),
        of_2(late + 1, found=[found(OLD_BATCH, CAME, batch(124, 27, 2, leader_epoch=6))]),
        of_2(late + 2),
    )
    said = [one[1:] for one in breaches(play(observations))]
    assert said == [
        ("loss", "possibly_lost"),
        ("loss", "refuted"),
        ("reordering", "reordered"),
    ]


def test_a_restart_between_the_loss_and_its_healing_changes_nothing() -> None:
    def restarted(memory: Memory) -> Memory:
        kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
        assert kept is not None
        return kept

    views = play((*TEXTBOOK, HEALED), between=restarted)
    assert breaches(views)[1] == REFUTED
    [finding] = sequence_gap_reordering.judge(views[-1]).findings(Verdict.BREACH)
    assert finding.severity is Severity.INFO
