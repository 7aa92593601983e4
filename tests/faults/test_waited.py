"""The fault matrix: what is told late, by the clock or because the service was down.

This file comes last: by then a client's delivery timeout has passed since the first faults.
"""

from __future__ import annotations

import pytest

from rules.facts.sequence_verdicts import SequenceClass
from service.sandbox.cluster import Sandbox
from service.sandbox.faults import SequenceTruth, prepare_sequence
from tests.faults.matrix import PATIENCE_SECONDS, Matrix, assert_told
from tests.integration.outside import EXCEPTION, lines_with, only, values_on

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]


def test_a_loss_that_happens_while_the_service_is_down_is_told_after_its_start(
    faults: Sandbox, matrix: Matrix
) -> None:
    with prepare_sequence("sequence-loss", faults) as prepared:
        matrix.await_watched(prepared.topic)
        matrix.served.kill()
        truth = prepared.strike()
        matrix.restart()
        assert_told(matrix, truth)


def test_the_command_makes_the_textbook_loss(cluster: Sandbox, burst: SequenceTruth) -> None:
    told, [lost] = only(burst), burst.lost
    assert (told.sequence_class, burst.rule) == (SequenceClass.LOSS, "sequence_gap_loss")
    assert (told.incoming_sequence, told.current_sequence, told.gap) == (27, 2, 24)
    assert burst.loss is not None
    assert (burst.loss.lost_offsets, burst.loss.was_unclean) == (24, True)
    assert (lost.lost_from, lost.lost_to) == (13, 37)
    text = (
        f"Out of order sequence number for producer {told.producer_id} at offset 13 in "
        f"partition {burst.topic}-0: 27 (incoming seq. number), 2 (current end sequence number)"
    )
    assert lines_with(cluster, told.broker_id, EXCEPTION + text) == told.lines == 3
    assert values_on(cluster, burst.topic) == [0, 1, 2]


def test_a_burst_between_two_looks_is_told_when_it_cannot_heal_any_more(
    matrix: Matrix, burst: SequenceTruth
) -> None:
    assert_told(matrix, burst, PATIENCE_SECONDS)
