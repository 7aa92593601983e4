"""Rejected sequences are counted, and shown by what they were."""

from __future__ import annotations

from rules.facts.broker_log import BrokerLog
from rules.facts.sequence_verdicts import Phase, SequenceClass
from service.metrics.log_stats import SequenceStats
from tests.unit.rules.sequence.cases import CASES
from tests.unit.rules.sequence.stage import Observation, play


def test_lines_add_up_and_episodes_are_shown_as_they_are_judged() -> None:
    stats = SequenceStats()
    for view in play(CASES["textbook"].observations):
        stats = stats.after(view)
    assert stats.rejections == 1
    assert stats.episodes[SequenceClass.LOSS, Phase.CONFIRMED] == 1
    assert sum(stats.episodes.values()) == 1


def test_every_class_has_a_number_so_that_an_alert_need_not_wait_for_its_first() -> None:
    [view] = play([Observation(second=0)])
    stats = SequenceStats().after(view)
    assert stats.rejections == 0
    assert len(stats.episodes) == len(SequenceClass) * len(Phase)


def test_nothing_is_shown_where_no_log_is_read() -> None:
    [view] = play([Observation(second=0, more={"broker_log": BrokerLog.unread()})])
    assert SequenceStats().after(view) == SequenceStats()


def test_a_round_that_saw_nothing_repeats_no_episode() -> None:
    views = play(CASES["textbook"].observations)
    seen = SequenceStats(rejections=4).after(views[-1])
    assert seen.after(None) == SequenceStats(rejections=4)
