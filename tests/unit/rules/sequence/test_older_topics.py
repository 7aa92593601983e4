"""Lines of a topic that was created again: those of the older one are an event of their own."""

from __future__ import annotations

from itertools import permutations

import pytest

from rules.facts.broker_log import SequenceRejected
from tests.factories import topic_id
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import Observation, play

OLDER, PRESENT = topic_id("orders"), topic_id("orders", creation=1)
LINES = (
    rejected(9, 2, topic_id=OLDER, second=5),
    rejected(12, 2, topic_id=OLDER, second=6),
    rejected(6, 2, topic_id=PRESENT, second=10),
)


@pytest.mark.parametrize("lines", list(permutations(LINES)))
@pytest.mark.parametrize("is_known", [False, True])
def test_the_present_topic_s_stay_open_in_whatever_order_they_come(
    lines: tuple[SequenceRejected, ...], *, is_known: bool
) -> None:
    first = Observation(
        second=4, lines=(rejected(9, 2, topic_id=OLDER, second=3),) if is_known else ()
    )
    memory = play((first, Observation(second=11, creation=1, lines=lines)))[-1].memory.sequences
    [present], [older] = memory.open.values(), memory.ended
    assert (present.topic_id, present.rejection_count) == (PRESENT, 1)
    assert (older.topic_id, older.rejection_count) == (OLDER, 3 if is_known else 2)


def test_late_lines_of_the_older_topic_leave_the_present_one_s_open() -> None:
    observations = (
        Observation(second=9, creation=1),
        Observation(second=11, creation=1, lines=LINES[2:]),
        Observation(second=12, creation=1, lines=LINES[:2]),
        Observation(second=13, creation=1, lines=LINES[:2]),
    )
    views = play(observations)
    first, last = (views[number].memory.sequences for number in (1, 3))
    assert [episode.id for episode in last.open.values()] == [
        old_episode.id for old_episode in first.open.values()
    ]
    assert [episode.rejection_count for episode in last.ended] == [2]
