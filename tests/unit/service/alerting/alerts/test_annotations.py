"""What an alert says beside its labels: its reason, its page, its evidence, and not too much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rules.verdict import Severity
from service.alerting.alerts.alert import Alert, AlertEnd
from service.alerting.alerts.annotations import LONGEST_TOGETHER, LONGEST_VALUE, annotations_of
from tests.alerting import identity_of, rule
from tests.factories import at


def alert(**evidence: Any) -> Alert:
    return Alert.begin(
        (identity_of("orders-0"), Severity.CRITICAL),
        reason="no_leader",
        evidence=evidence,
        active_at=at(0),
    )


def test_an_alert_says_what_where_and_what_to_do() -> None:
    assert annotations_of(alert(), rule(), "https://tidemark.example/rules/") == {
        "summary": "For tests.",
        "description": "No leader: cluster default, partition 0, topic orders.",
        "reason": "no_leader",
        "runbook_url": "https://tidemark.example/rules/some_rule.md",
    }


def test_what_is_not_known_is_left_out() -> None:
    said = annotations_of(alert(leader=None, groups=[], lag=0, is_open=False), None)
    assert "summary" not in said
    assert "runbook_url" not in said
    assert "leader" not in said
    assert "groups" not in said
    assert (said["lag"], said["is_open"]) == ("0", "false")


def test_evidence_is_text_that_a_person_reads() -> None:
    rows = [{"group": "zähler", "read_beyond": 7, "may_skip_offsets": None}, {"group": "[audit]"}]
    said = annotations_of(alert(repair="kafka-transactions.sh abort", groups=rows), None)
    assert said["repair"] == "kafka-transactions.sh abort"
    assert said["groups"] == "group zähler, read_beyond 7; group [audit]"


def test_evidence_takes_no_name_of_ours() -> None:
    said = annotations_of(alert(reason="other", summary="x"), rule())
    assert (said["reason"], said["summary"]) == ("no_leader", "For tests.")
    assert (said["evidence_reason"], said["evidence_summary"]) == ("other", "x")


def test_why_it_ended_is_said_once_it_has() -> None:
    ended = alert().resolved(AlertEnd.SUBJECT_GONE, at(60))
    assert annotations_of(ended, None)["end_reason"] == "subject_gone"
    assert "end_reason" not in annotations_of(replace(alert(), end=AlertEnd.OK), None)


def test_a_long_value_is_cut() -> None:
    said = annotations_of(alert(text="x" * 5000), None)
    assert said["text"] == "x" * (LONGEST_VALUE - 1) + "…"


def test_what_does_not_fit_is_counted() -> None:
    said = annotations_of(alert(**{f"value_{number:02}": "x" * 1000 for number in range(20)}), None)
    kept = [name for name in said if name.startswith("value_")]
    assert sum(len(name) + len(said[name]) for name in kept) <= LONGEST_TOGETHER
    assert len(kept) + int(said["evidence_left_out"]) == 20
