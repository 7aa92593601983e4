"""What a healthy application's watcher may say above info."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.applications.judging import Said, by_rule, false_alarms, said_of


def said(rule: str, severity: str, subject: str = "a", reason: str = "any") -> Said:
    return Said(rule, severity, reason, (("transactional_id", subject),))


FENCED = said("producer_fenced", "warning", reason="coordinator_timeout")
ZOMBIE = said("producer_fenced", "warning", reason="zombie")
WAITED = said("read_committed_consumers_blocked", "warning", reason="overdue")
HANGS = said("read_committed_consumers_blocked", "warning", reason="hanging")


@pytest.mark.parametrize(
    ("told", "kills", "wrong"),
    [
        pytest.param([], 0, [], id="silence"),
        pytest.param([said("duplicates_possible", "info")], 0, [], id="info is no alarm"),
        pytest.param([FENCED], 1, [], id="what a kill left open was cut"),
        pytest.param(
            [FENCED, replace(FENCED, subject=(("transactional_id", "b"),))], 1, [], id="of two ids"
        ),
        pytest.param([ZOMBIE], 1, [ZOMBIE], id="a killed instance is no zombie"),
        pytest.param([FENCED], 0, [FENCED], id="nobody was killed"),
        pytest.param([WAITED, FENCED], 1, [], id="readers waited for what was cut"),
        pytest.param([WAITED], 0, [WAITED], id="readers waited for nobody who was killed"),
        pytest.param([HANGS], 1, [HANGS], id="nothing hangs after a kill"),
        pytest.param([FENCED] * 3, 2, [FENCED] * 3, id="more often than somebody was killed"),
        pytest.param(
            [FENCED, said("sequence_gap_loss", "critical")],
            1,
            [said("sequence_gap_loss", "critical")],
            id="nothing was lost",
        ),
        pytest.param(
            [said("consumer_group_stalled", "warning")],
            5,
            [said("consumer_group_stalled", "warning")],
            id="the others went on",
        ),
    ],
)
def test_only_a_cut_after_a_kill_is_true(told: list[Said], kills: int, wrong: list[Said]) -> None:
    assert false_alarms(told, kills=kills) == wrong


def event(**more: str) -> dict[str, Any]:
    return {
        "time": "2026-01-01T00:00:00Z",
        "event": "finding",
        "rule": "producer_fenced",
        "step": "opened",
        "reason": "timeout",
        "cluster": "c",
        "transactional_id": "a",
        **more,
    }


def test_only_a_breach_is_said_and_its_subject_is_what_labels_it() -> None:
    ended, doubted = event(), event(verdict="unknown")
    [one] = said_of([event(verdict="breach", severity="warning"), doubted, ended])
    assert one.subject == (("cluster", "c"), ("transactional_id", "a"))
    assert (one.rule, one.severity, one.reason) == ("producer_fenced", "warning", "timeout")


def test_what_was_said_is_counted_the_loudest_first() -> None:
    told = [said("b", "info"), FENCED, FENCED, said("a", "critical")]
    assert by_rule(told) == "1 a (critical), 2 producer_fenced (warning), 1 b (info)"
    assert by_rule([]) == "none"
