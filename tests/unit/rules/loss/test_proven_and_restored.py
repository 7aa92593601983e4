"""What becomes of a told loss: it is proven by another rule, or what was lost is there again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from rules.catalogue import committed_records_lost
from rules.facts.column import Column, Ragged
from rules.facts.epoch_ends import EpochEnds
from rules.question import EpochEndQuestion
from rules.remembering import view_of_round
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, commits, epoch_ends, group, offsets, snapshot
from tests.unit.rules.loss.playing import COMMITTED, POSSIBLY, RETURNED, play, played
from tests.unit.rules.loss.replica_lines import (
    LATER,
    cut,
    led_by_1,
    led_by_2,
    started,
    went_back,
    written,
)

LOST: Final = (COMMITTED, "lost", "critical")
PROVEN: Final = (POSSIBLY, "proven", "info")
BEYOND: Final = (POSSIBLY, "read_beyond_epoch_end", "critical")


def read_to(offset: int, *, epoch: int = 5) -> dict[str, Any]:
    """Return a group that has read so far, in an epoch whose end is told."""
    return {"groups": (group(),), "commits": commits((0, 0, offset), epochs=[epoch])}


def why(*observations: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one.number, *one.why) for one in play(*observations)]


def test_what_a_group_had_read_is_proven_with_the_loss() -> None:
    """The answer about the group's epoch is the answer about the last observation's."""
    found = play(led_by_1(), led_by_2() | read_to(100))
    assert [one.why for one in found] == [LOST, PROVEN]
    told = found[1].finding.evidence
    assert (told["at_least_offsets"], told["proven_committed_offsets"]) == (27, 27)
    assert told["proven_by"] == COMMITTED


def test_what_a_group_had_read_before_is_proven_when_the_old_leader_returns() -> None:
    observations = (led_by_1(watermark=73), led_by_2() | read_to(95), LATER | read_to(95))
    lines = LATER | read_to(95) | written(started(), cut(), went_back(95))
    assert why(*observations, lines, LATER | read_to(95)) == [
        (1, *BEYOND),
        (3, COMMITTED, RETURNED, "critical"),
        (3, *PROVEN),
    ]


def test_another_group_that_had_read_it_is_no_second_loss() -> None:
    late = LATER | read_to(90) | {"epoch_ends": epoch_ends((0, 5, 73))}
    assert why(led_by_1(), led_by_2(), late) == [(1, *LOST), (2, *PROVEN)]


def test_what_a_group_had_read_of_another_epoch_is_another_loss() -> None:
    late = LATER | read_to(90, epoch=4) | {"epoch_ends": epoch_ends((0, 4, 60))}
    assert why(led_by_1(), led_by_2(), late) == [(1, *LOST), (2, *BEYOND)]


def test_a_range_that_grows_after_the_proof_is_told_by_the_proof_alone() -> None:
    first, second = written(started(90), cut(), went_back(85)), written(started(100, second=40.5))
    observations = (led_by_1(watermark=73), led_by_2(), LATER | first, LATER | second)
    assert [one[2:] for one in why(*observations) if one[0] == 2] == [
        (RETURNED, "critical"),
        PROVEN[1:],
    ]
    assert all(one[1] == COMMITTED for one in why(*observations) if one[0] == 3)


def led_again(
    *told: tuple[int, int, int], leader: int = 1, epoch: int = 7, end: int = 100, **more: Any
) -> dict[str, Any]:
    """Return an observation of a later leader; `told` are epoch asked about, epoch found, its end."""
    answers = EpochEnds(
        row=np.zeros(len(told), np.int64),
        epoch=np.array([asked for asked, _, _ in told], np.int64),
        found_epoch=Column.of([found for _, found, _ in told]),
        end_offset=Column.of([at_end for _, _, at_end in told]),
    )
    ends = [end]
    placed = replace(LATER["partitions"], leader=Column.of([leader]), isr=Ragged.of([(leader,)]))
    columns = {"last_stable_offset": ends, "high_watermark": ends, "log_end_offset": ends}
    return {
        "partitions": placed,
        "offsets": offsets(1, leader_epoch=[epoch], **columns),
        "epoch_ends": answers,
        **more,
    }


# Broker 2 wrote nothing in epoch 6, which began at 73; broker 1 has its old log.
QUIET: Final = {
    "offsets": offsets(
        1, leader_epoch=[6], last_stable_offset=[73], high_watermark=[73], log_end_offset=[73]
    )
}
LOSS: Final = (led_by_1(), led_by_2() | QUIET)
BACK: Final = led_again((5, 5, 100), (6, 5, 100))


def restored(*observations: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [one for one in why(*observations) if "restored" in one]


def test_an_old_leader_that_leads_again_with_its_log_has_all_that_was_lost() -> None:
    assert restored(*LOSS, BACK, BACK) == [(2, COMMITTED, "restored", "info")]
    [one] = [said for said in play(*LOSS, BACK) if said.finding.reason == "restored"]
    told = one.finding.evidence
    assert (told["restored_from"], told["restored_to"]) == (73, 100)
    assert (told["leader_epoch_before"], told["restored_in_epoch"]) == (5, 7)


def test_it_is_found_by_a_process_that_was_restarted_meanwhile() -> None:
    _, memory = played(*LOSS)
    kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    said = play(BACK, memory=kept, first=2)
    assert (COMMITTED, "restored", "info") in [one.why for one in said]


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(led_again((5, 5, 73), (6, 6, 73)), id="it-has-truncated"),
        pytest.param(led_again((5, 5, 99), (6, 5, 99), leader=3), id="another-has-less"),
        pytest.param(led_again((6, 6, 73)), id="nobody-tells"),
        pytest.param(LATER | QUIET | {"epoch_ends": epoch_ends((0, 5, 100))}, id="the-same-leader"),
    ],
)
def test_nothing_is_back_that_is_not(later: dict[str, Any]) -> None:
    assert restored(*LOSS, later) == []


def test_another_replica_may_bring_it_back() -> None:
    back = led_again((5, 5, 100), (6, 5, 100), leader=3)
    assert restored(*LOSS, back) == [(2, COMMITTED, "restored", "info")]


def test_of_what_was_possibly_lost_nobody_knows_whether_all_is_back() -> None:
    unseen = (led_by_1(watermark=73), led_by_2() | QUIET)
    assert why(*unseen, BACK) == [
        (1, POSSIBLY, "election_not_known", "info"),
        (2, POSSIBLY, "election_not_known", "info"),
    ]


def test_what_was_written_meanwhile_is_a_loss_of_its_own() -> None:
    """Broker 1 has nothing of epoch 6: it tells the end of epoch 5, which lies beyond."""
    meanwhile = {
        "offsets": offsets(
            1, leader_epoch=[6], last_stable_offset=[90], high_watermark=[90], log_end_offset=[90]
        )
    }
    found = play(led_by_1(), led_by_2() | meanwhile, BACK)
    last = [one for one in found if one.number == 2]
    assert LOST in [one.why for one in last]
    [lost] = [one.finding.evidence for one in last if one.why == LOST]
    assert (lost["certain_from"], lost["certain_to"], lost["leader_epoch_before"]) == (73, 90, 6)


def test_an_epoch_that_nobody_observed_moved_the_log_on() -> None:
    """Epoch 6 went from 73 to 100 between two observations; nothing was written in epoch 7."""
    seventh = led_again((5, 5, 73), leader=2, epoch=7)
    eighth = led_again((7, 6, 100), leader=1, epoch=8)
    reported = why(led_by_1(watermark=73), seventh, eighth)
    assert COMMITTED not in [entry[1] for entry in reported], reported


def test_later_leaders_are_asked_once_each() -> None:
    def asked(memory: Any, number: int, observation: dict[str, Any]) -> tuple[list[int], Any]:
        view = view_of_round(snapshot(taken_at=at(15 * number), **observation), memory)
        questions = committed_records_lost.judge(view).questions
        epochs = [
            epoch
            for one in questions
            if isinstance(one, EpochEndQuestion)
            for epoch in one.epochs.tolist()
        ]
        return epochs, view.memory

    _, memory = played(*LOSS)
    epochs, memory = asked(memory, 2, LATER | QUIET)
    assert epochs == []
    epochs, memory = asked(memory, 3, led_again(leader=3, end=73))
    assert sorted(epochs) == [5, 6]
    epochs, memory = asked(memory, 4, led_again((5, 5, 73), (6, 6, 73), leader=3, end=73))
    assert epochs == []
    epochs, _ = asked(memory, 5, led_again(leader=2, end=73, epoch=8))
    assert sorted(epochs) == [5, 7]
