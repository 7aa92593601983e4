"""What a person reads of an alert at 3 a.m.: what it is, who was told, what to type."""

from __future__ import annotations

import re
from typing import Any

import pytest

from rules.catalogue.all_rules import RULES
from rules.verdict import Kind, SubjectKind
from service.cli.alerts import command as alerts
from service.cli.alerts.next_steps import next_steps
from service.cli.server.listing import Listed
from service.cli.server.server_options import DEFAULT
from tests.factories import at
from tests.unit.service.cli.api_rows import FINGERPRINT, alert, delivery, detail
from tests.unit.service.cli.printing import printed

SILENT = {"by": "ann", "at": at(3), "comment": "on it"}
LABELS = {
    SubjectKind.TOPIC: {"topic": "orders"},
    SubjectKind.PARTITION: {"topic": "orders", "partition": "3"},
    SubjectKind.COMMIT: {"group": "billing", "topic": "orders", "partition": "3"},
    SubjectKind.GROUP: {"group": "billing"},
    SubjectKind.TRANSACTION: {"transactional_id": "payments-7"},
    SubjectKind.CLIENT: {"client": "orders-1", "topic": "orders"},
    SubjectKind.CHECK: {"check": "topic_replication"},
    SubjectKind.RULE: {"rule": "partition_offline"},
    SubjectKind.CLUSTER: {},
    SubjectKind.BROKER: {"broker": "2"},
}


def found(*rows: dict[str, Any], is_current: bool = True) -> Listed:
    page = {"as_of": "2025-06-02T12:00:00Z", "is_current": is_current, "age_seconds": 3.2}
    return Listed(server=DEFAULT, page=page, rows=rows)


def test_an_alert_is_one_line_with_its_time_in_utc() -> None:
    head, columns, line, hint = printed(alerts.render_list(found(alert()))).splitlines()
    assert head.split("  ") == ["as of 2025-06-02 12:00:00 UTC (3 s ago)", "1 firing", "current"]
    assert "since (UTC)" in columns
    assert re.split(r"  +", line.strip()) == [
        "firing",
        "critical",
        "committed_records_lost",
        "topic orders, partition 3, cluster default",
        "2025-06-02 12:00:00",
        "pager",
        FINGERPRINT,
    ]
    assert "tidemark alerts show" in hint


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"acknowledged": SILENT}, "acknowledged by ann"),
        ({"silenced_by": ["x"]}, "silenced"),
        ({"inhibited_by": "0" * 16}, "explained by another"),
        ({"receivers": []}, "nobody"),
    ],
)
def test_who_is_not_told_is_told_why(overrides: dict[str, Any], told: str) -> None:
    assert f"  {told}  " in printed([alerts.ALERTS.table([alert(**overrides)])]).splitlines()[1]


def test_a_list_that_is_not_of_now_says_so() -> None:
    assert "NOT CURRENT" in printed(alerts.render_list(found(is_current=False)))
    never = Listed(server="", page={"as_of": None, "is_current": False}, rows=[])
    assert "as of never  no alert" in printed(alerts.render_list(never))


def test_an_alert_in_full_names_the_page_of_its_rule_and_what_to_type() -> None:
    told = printed(alerts.render_details(detail(notified=[delivery()]), DEFAULT))
    assert told.startswith("FIRING critical committed_records_lost  topic orders, partition 3")
    assert re.search(r"rule page +docs/rules/committed_records_lost.md\n", told)
    assert re.search(rf"runbook +tidemark runbook run {FINGERPRINT}\n", told)
    assert re.search(r"firing since +2025-06-02 12:00:00 UTC\n", told)
    assert re.search(r"  certain_from +73\n", told)
    assert "advice" not in told  # absent, and so not shown
    steps = told.partition("NEXT\n")[2].partition("NOTIFICATIONS")[0]
    assert [line.strip() for line in steps.splitlines()] == [
        "tidemark loss show orders-3",
        f"tidemark alerts ack {FINGERPRINT}",
        f"tidemark alerts close {FINGERPRINT} --why 'WHAT WAS DONE'",
    ]
    assert "delivered" in told.partition("NOTIFICATIONS")[2]


def test_what_became_of_an_alert_is_told_with_who_did_it() -> None:
    closing = {"by": "bob", "at": at(8), "why": "written again", "done_at": None, "outcome": None}
    steps = [{"at": at(0), "step": "fired", "reason": "below", "evidence": {}}]
    page = detail(acknowledged=SILENT, closing=closing, steps=steps, runbook_url="https://w/x.md")
    told = printed(alerts.render_details(page, DEFAULT))
    assert re.search(r"acknowledged +by ann, 2025-06-02 12:00:03 UTC: on it\n", told)
    assert re.search(r"closing +by bob, .* UTC: written again; the next round does it\n", told)
    assert re.search(r"rule page +https://w/x.md\n", told)
    assert re.search(r"2025-06-02 12:00:00 +UTC  fired  below\n", told)
    assert "No notification was sent." in told
    assert f"alerts ack {FINGERPRINT}" not in told


def test_a_name_of_others_cannot_write_on_the_screen() -> None:
    labels = {"alertname": "a", "topic": "x\x1b[2J\ny", "partition": "0"}
    page = detail(labels=labels, evidence={"repair": "run\nrm -rf"})
    told = printed(alerts.render_details(page, DEFAULT)) + printed(
        [alerts.ALERTS.table([alert(labels=labels)])]
    )
    assert "\x1b" not in told
    assert "\nrm" not in told


@pytest.mark.parametrize("rule", [rule.meta for rule in RULES], ids=lambda meta: meta.rule_id)
def test_every_rule_has_a_command_to_type_next(rule: Any) -> None:
    of = LABELS[rule.subject]
    row = alert(rule=rule.rule_id, kind=rule.kind, labels={"cluster": "default", **of})
    steps = next_steps(row, DEFAULT)
    assert steps[0].startswith("tidemark ")
    assert steps[0].split()[1] != "alerts"
    assert any("alerts close" in step for step in steps) == (rule.kind is Kind.EVENT)


@pytest.mark.parametrize(
    ("rule", "labels", "command"),
    [
        (
            "transaction_too_small",
            {"transactional_id": "pay ments"},
            "tidemark tx cost --transactional-id 'pay ments'",
        ),
        ("coordinator_slow", {"broker": "2"}, "tidemark tx cost"),
        (
            "partition_skewed",
            {"topic": "a.b"},
            r"tidemark collect --once --topics 'a\.b' -o table --bootstrap-servers HOST:PORT",
        ),
    ],
)
def test_what_costs_is_shown_by_its_numbers(
    rule: str, labels: dict[str, str], command: str
) -> None:
    row = alert(rule=rule, kind=Kind.STATE, labels=labels)
    assert next_steps(row, DEFAULT)[0] == command


def test_blindness_is_observed_at_in_the_status() -> None:
    row = alert(rule="observation_stale", kind=Kind.STATE, labels=LABELS[SubjectKind.RULE])
    assert next_steps(row, DEFAULT)[0] == "tidemark status"


@pytest.mark.parametrize(
    ("transaction", "is_shown"), [("aborted", True), ("committed", False), (None, False)]
)
def test_a_transaction_that_failed_is_shown_after_its_sequences(
    transaction: str | None, *, is_shown: bool
) -> None:
    evidence = {"transactional_id": "payments 1", "transaction": transaction}
    row = alert(rule="sequence_gap_reordering", kind=Kind.EVENT, evidence=evidence)
    first, second, *_ = next_steps(row, DEFAULT)
    assert first == "tidemark sequence show orders-3"
    show = f"tidemark tx show 'payments 1' --bootstrap-servers HOST:PORT --server {DEFAULT}"
    assert (second == show) == is_shown


def test_commands_can_be_copied_whatever_names_hold() -> None:
    labels = {"topic": "a.b", "partition": "0", "group": "it's; rm"}
    row = alert(rule="consumer_group_stalled", kind=Kind.STATE, labels=labels)
    to = " --server https://tidemark.example:8780"
    observed, taken = next_steps(row, "https://tidemark.example:8780")
    assert observed == f"""tidemark lag 'it'"'"'s; rm'{to}"""
    assert taken == f"tidemark alerts ack {FINGERPRINT}{to}"
    partition = {"labels": {"topic": "it's; rm", "partition": "0"}, "rule": "partition_offline"}
    observed, *_ = next_steps(alert(**partition), DEFAULT)
    assert r"""--topics 'it'"'"'s;\ rm'""" in observed


def test_a_repair_comes_first_while_it_is_needed() -> None:
    given = {"rule": "transaction_hanging", "kind": Kind.STATE, "evidence": {"repair": "kafka-x"}}
    assert next_steps(alert(**given), DEFAULT)[0] == "kafka-x"
    assert "kafka-x" not in next_steps(alert(state="resolved", **given), DEFAULT)
