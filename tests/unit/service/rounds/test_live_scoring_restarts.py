"""What live scoring keeps over a restart, another cluster id and subjects that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.baseline.blocks import Outcome
from rules.baseline.live_series import DayJudge
from service.rounds.live_scoring import LiveScoring
from service.storage.formats.checkpoint import FORMAT, decode
from tests.factories import CLUSTER_ID, gap, partitions
from tests.unit.rules.baseline.flat_bands import flat_judge
from tests.unit.service.rounds.scored_rounds import (
    CALM,
    DAY,
    FAR,
    OTHER_CLUSTER_ID,
    Judges,
    Rounds,
    rate,
)


def test_a_restart_keeps_what_is_open_and_since_when() -> None:
    rounds = Rounds([rate(f"t{number:02}") for number in range(12)])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    before = rounds.scoring.latest().open
    rounds.restart(rounds.checkpoint())
    assert {reason for _, reason in rounds.said()} == {"not_scored"}, "until it has scored a round"
    rounds.put(3, FAR)
    after = rounds.scoring.latest().open
    assert after.opened_ms.tolist() == before.opened_ms.tolist()
    assert [finding.reason for finding in rounds.breaches()] == ["many_unusual"]


def test_what_is_stored_is_remembered_while_a_round_takes_it_over() -> None:
    rounds = Rounds([rate("orders")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.restart(rounds.checkpoint())
    before = rounds.checkpoint()
    seen: list[bytes] = []

    def at(_: int) -> DayJudge | None:
        seen.append(rounds.checkpoint())
        return rounds.judges.judge

    rounds.scoring = LiveScoring(Judges(rounds.judges.judge, at), interval_seconds=60)
    rounds.scoring.adopt(decode(before, FORMAT).scoring, CLUSTER_ID)
    rounds.put(1, FAR)
    assert seen, "the round judged the steps before it"
    assert set(seen) == {before}


def test_what_is_stored_and_read_late_is_open_again() -> None:
    rounds = Rounds([rate("orders")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    checkpoint, opened = rounds.checkpoint(), rounds.scoring.latest().open.opened_ms
    rounds.scoring = LiveScoring(rounds.judges, interval_seconds=60)
    rounds.put(5, FAR)
    assert not rounds.breaches(), "nothing opens for half an hour"
    rounds.scoring.adopt(decode(checkpoint, FORMAT).scoring, CLUSTER_ID)
    rounds.put(1, FAR)
    rounds.put(2, FAR)
    assert len(rounds.breaches()) == 1
    assert rounds.scoring.latest().open.opened_ms.tolist() == opened.tolist()


def test_what_is_open_of_another_cluster_id_is_not_open() -> None:
    rounds = Rounds([rate("orders")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    checkpoint = rounds.checkpoint()
    rounds.seen = replace(rounds.seen, cluster_id=OTHER_CLUSTER_ID)
    assert rounds.said() == [("", "not_scored")], "its first round is judged before it is scored"
    rounds.put(2, CALM)
    assert rounds.said() == [("orders", "usual"), ("", "usual")]
    rounds.restart(checkpoint)
    assert rounds.said() == [("", "not_scored")]
    rounds.put(2, CALM)
    assert rounds.said() == [("orders", "usual"), ("", "usual")]


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_topic_that_is_gone_ends_and_an_incomplete_list_proves_nothing(
    *, is_complete: bool
) -> None:
    rounds = Rounds([rate("orders"), rate("audit")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    gaps = () if is_complete else (gap(),)
    rounds.seen = replace(
        rounds.seen,
        partitions=partitions({"audit": 2}),
        placement_complete=is_complete,
        gaps=gaps,
    )
    rounds.series = [each for each in rounds.series if each.topic == "audit"]
    rounds.put(3, FAR)
    assert len(rounds.scoring.latest().open) == (1 if is_complete else 2)


def test_an_incomplete_list_is_none_of_the_two_that_end_a_topic() -> None:
    rounds = Rounds([rate("orders"), rate("audit")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.series = [each for each in rounds.series if each.topic == "audit"]
    rounds.seen = replace(rounds.seen, partitions=partitions({"audit": 2}))
    opened = []
    for is_complete in (False, True, False, True):
        rounds.seen = replace(rounds.seen, placement_complete=is_complete)
        rounds.put(1, FAR)
        opened.append(len(rounds.scoring.latest().open))
    assert opened == [2, 2, 2, 1]


def test_what_another_run_has_no_band_for_ends() -> None:
    rounds = Rounds([rate("orders"), rate("audit")])
    rounds.put(60, CALM)
    rounds.put(8, FAR)
    rounds.judges.judge = flat_judge([rate("audit")], DAY, 60_000)
    rounds.put(2, FAR)
    assert [finding.labels["topic"] for finding in rounds.breaches()] == ["audit"]
    rounds.judges.judge = flat_judge([rate("audit")], DAY, 60_000, Outcome.VANISHED)
    rounds.put(2, FAR)
    assert not len(rounds.scoring.latest().open)
