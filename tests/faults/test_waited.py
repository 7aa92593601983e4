"""The fault matrix: what is reported late, by the clock or because the service was down.

This file comes last: by then a client's delivery timeout has passed since the first faults.
"""

from __future__ import annotations

import pytest

from rules.facts.sequence_verdicts import SequenceClass
from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.faults import SequenceTruth, prepare_sequence
from tests.faults.matrix import PATIENCE_SECONDS, GivenUp, Matrix, assert_reported
from tests.integration.outside import EXCEPTION, lines_with, only, values_on
from tests.integration.serve.served import Document

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1200)]


def test_a_loss_that_happens_while_the_service_is_down_is_reported_after_its_start(
    faults: Sandbox, matrix: Matrix
) -> None:
    with prepare_sequence("sequence-loss", faults) as prepared:
        matrix.await_watched(prepared.topic)
        matrix.served.kill()
        truth = prepared.inject()
        matrix.restart()
        assert_reported(matrix, truth)


def test_the_command_makes_the_textbook_loss(cluster: Sandbox, burst: SequenceTruth) -> None:
    episode, [lost] = only(burst), burst.lost
    assert (episode.sequence_class, burst.rule) == (SequenceClass.LOSS, "sequence_gap_loss")
    assert (episode.incoming_sequence, episode.current_sequence, episode.gap) == (27, 2, 24)
    assert burst.loss is not None
    assert (burst.loss.lost_offsets, burst.loss.was_unclean) == (24, True)
    assert (lost.lost_from, lost.lost_to) == (13, 37)
    text = (
        f"Out of order sequence number for producer {episode.producer_id} at offset 13 in "
        f"partition {burst.topic}-0: 27 (incoming seq. number), 2 (current end sequence number)"
    )
    assert lines_with(cluster, episode.broker_id, EXCEPTION + text) == episode.lines == 3
    assert values_on(cluster, burst.topic) == [0, 1, 2]


def test_what_a_client_gave_up_is_no_loss_and_did_not_arrive(
    matrix: Matrix, given_up: GivenUp
) -> None:
    def events() -> dict[int, Document]:
        return {event["producer_id"]: event for event in matrix.episodes(given_up.topic)}

    assert wait_until(
        lambda: events().get(given_up.ends, {}).get("reason") == "not_arrived",
        timeout_seconds=PATIENCE_SECONDS,
        poll_seconds=0.5,
    ), events()
    ended, goes_on = events()[given_up.ends], events()[given_up.goes_on]
    for event in (ended, goes_on):
        assert (event["phase"], event["gap"]) == ("confirmed", given_up.gap)
        assert event["rejections"] == given_up.times
        assert event["evidence"]["unwritten_records"] == given_up.gap + 1, event
        assert f"at least {given_up.gap + 1} records" in event["explanation"]
        assert "o acknowledged record is missing" in event["explanation"]
        assert "errors of the producing application" in event["check"]
        assert not event["is_investigating"]
    assert (ended["class"], goes_on["class"]) == ("client_failure", "reordering")
    assert goes_on["evidence"]["arrival"] == "newer_epoch"
    breaches = matrix.breaches(given_up.topic)
    assert set(breaches) == {"sequence_gap_reordering"}
    assert {breach["severity"] for breach in breaches["sequence_gap_reordering"]} == {"info"}


def test_a_burst_between_two_observations_is_reported_when_it_cannot_heal_any_more(
    matrix: Matrix, burst: SequenceTruth
) -> None:
    assert_reported(matrix, burst, PATIENCE_SECONDS)
