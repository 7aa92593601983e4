"""Case table of the rule about skewed partitions.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import partition_skewed
from rules.verdict import Severity, Verdict
from tests.factories import offsets, partitions
from tests.unit.rules.transactions.cost_rounds import START, Case, observed, of_first, play

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def ends(*values: int | None) -> dict[str, Any]:
    return observed((*values, 0))


SKEWED = [
    Case(
        id="even",
        because="a factor of two is ordinary",
        rounds=(START, ends(2000, 2000, 4000)),
        verdict=OK,
        reason="even",
    ),
    Case(
        id="ten-times",
        because="one partition took ten times as much as half of them",
        rounds=(START, ends(1000, 900, 10_000)),
        verdict=BREACH,
        reason="skewed",
    ),
    Case(
        id="less-than-ten-times",
        because="it took a little less",
        rounds=(START, ends(1000, 900, 9999)),
        verdict=OK,
        reason="even",
    ),
    Case(
        id="one-key",
        because="all records have one key, and the other partitions nothing",
        rounds=(START, ends(0, 6000, 0)),
        verdict=BREACH,
        reason="skewed",
    ),
    Case(
        id="few-records",
        because="less than a hundred offsets per second are read by anybody",
        rounds=(START, ends(0, 5999, 0)),
        verdict=OK,
        reason="few_records",
    ),
    Case(
        id="a-burst",
        because="half a minute of one key is over soon",
        rounds=(START, ends(0, 6000, 0)),
        seconds=30,
        verdict=UNKNOWN,
        reason="observed_briefly",
    ),
    Case(
        id="leader-away",
        because="a partition that was not seen may have taken as much",
        rounds=(START, ends(None, 6000, 0)),
        verdict=UNKNOWN,
        reason="ends_not_seen",
    ),
]


@pytest.mark.parametrize("case", SKEWED, ids=lambda case: case.id)
def test_partition_skewed(case: Case) -> None:
    said = of_first(partition_skewed.judge, case, topic="orders")
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


def test_a_skewed_topic_is_told_with_its_busiest_partition() -> None:
    said = of_first(partition_skewed.judge, SKEWED[1])
    assert said.severity is Severity.INFO
    assert said.labels == {"cluster": "default", "topic": "orders"}
    assert said.evidence == {
        "offsets": 11_900,
        "busiest_partition": 2,
        "busiest_offsets": 10_000,
        "median_offsets": 1000,
        "partitions": 3,
        "window_ms": 60_000,
    }


def of_topics(counts: dict[str, int], *ends: int) -> dict[str, Any]:
    """Return a round of these topics, which read these high watermarks."""
    columns = dict.fromkeys(("high_watermark", "log_end_offset", "last_stable_offset"), ends)
    return {"partitions": partitions(counts), "offsets": offsets(len(ends), **columns)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"orders": 2}, {"orders": 2}, id="two-partitions"),
        pytest.param({"__consumer_offsets": 3}, {"__consumer_offsets": 3}, id="internal"),
        pytest.param({"other": 3}, {"orders": 3}, id="made-within-the-window"),
    ],
)
def test_topics_that_are_not_judged(before: dict[str, int], after: dict[str, int]) -> None:
    first = of_topics(before, *[0] * sum(before.values()))
    later = of_topics(after, 60_000, *[0] * (sum(after.values()) - 1))
    assert not len(partition_skewed.judge(play(first, later)).subjects)


def test_the_first_round_judges_no_skew_and_ends_no_alert() -> None:
    assert not len(partition_skewed.judge(play(START)).subjects)


def test_each_topic_is_judged_by_its_own_partitions() -> None:
    counts = {"even": 4, "__consumer_offsets": 1, "hot": 3, "small": 2}
    later = of_topics(counts, 2000, 2000, 2000, 3000, 99_999, 5, 6, 60_000, 9, 99_999)
    judgement = partition_skewed.judge(play(of_topics(counts, *[0] * 10), later))
    assert [judgement.finding(place).reason for place in range(2)] == ["even", "skewed"]
    assert judgement.finding(1).evidence["busiest_partition"] == 2
    assert len(judgement.subjects) == 2
