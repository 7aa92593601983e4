"""What a person reads: what to do first, and never a number that nobody knows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from service.api.findings.views import from_memory
from service.api.losses.views import loss_of
from service.cli.loss import tables
from service.cli.loss.queries import LossReport
from service.terminal.parts import SHOWN, Table
from tests.unit.service.api.losses.losses import BEYOND, PROVEN, SETTLED, open_loss
from tests.unit.service.cli.printing import at_terminal, printed

UNSEEN = {"last_observation": PROVEN["last_observation"], "unknown_since": PROVEN["unknown_since"]}


def row(**overrides: Any) -> dict[str, Any]:
    finding = from_memory(open_loss(**overrides), None)
    return loss_of(finding).model_dump(mode="json", by_alias=True)


def line(**overrides: Any) -> str:
    return printed([tables.losses_table([row(**overrides)])]).splitlines()[1]


def known(*losses: dict[str, Any], errors: tuple[str, ...] = ()) -> LossReport:
    return LossReport(
        server="http://a",
        cluster="default",
        as_of=None,
        name="incidents",
        rows=(incident(*losses),) if losses else (),
        errors=errors,
    )


def incident(*lines: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "summary": "Broker 1 lost leadership",
        "severity": "critical",
        "partition_count": len(lines),
        "partitions": list(lines),
        **more,
    }


def test_a_proven_loss_is_one_line() -> None:
    assert re.split(r"  +", line().strip()) == [
        "committed_lost",
        "orders-0",
        "[73, 100) 27",
        "[100, 120) 20, after 11:59:59",
        "06-02 12:00:00",
        "billing, audit",
    ]


def test_a_loss_that_is_settled_shows_all_of_it_and_nothing_unknown() -> None:
    told = re.split(r"  +", line(evidence=SETTLED).strip())
    assert told[2:4] == ["[73, 100) 27", "[73, 117) 44, all"]
    full = printed(tables.render_details(row(evidence=SETTLED, reason="former_leader_returned")))
    assert re.search(r"possible +\[73, 117\) 44 offsets in all\n", full)
    assert "broker 1: its log had reached offset 117 and was cut at 73" in full
    assert re.search(r"sole in-sync since +2025-06-02 11:59:30", full)


def test_a_burst_that_no_observation_saw_is_shown_when_it_is_settled() -> None:
    evidence = {"exact_from": 73, "exact_to": 117, "former_leader": 1}
    told = line(rule="records_possibly_lost", reason="former_leader_returned", evidence=evidence)
    assert re.search(r" -  +\[73, 117\) 44, all", told)


def test_what_nobody_saw_is_no_number() -> None:
    told = line(rule="records_possibly_lost", reason="unseen", evidence=UNSEEN)
    assert re.search(r" -  +after 11:59:59  ", told)
    assert " 0 " not in told


def test_a_lower_bound_is_told_as_one() -> None:
    told = line(rule="records_possibly_lost", evidence={"at_least_offsets": 17})
    assert re.search(r" -  +at least 17  ", told), "possible: a topic may have been created again"
    gone = {"lost_transactions": [{"transactional_id": "a"}], "lost_transaction_count": 3}
    assert "3 committed transactions" in line(evidence=gone)


def test_what_was_never_committed_is_said_to_be() -> None:
    told = line(rule="unreplicated_records_lost", evidence={**PROVEN, "possible_from": None})
    assert "[100, 120) 20, not committed" in told


def test_a_group_beyond_the_end_and_groups_that_are_not_named() -> None:
    told = line(rule="committed_beyond_log_end", group="[bold]", evidence=BEYOND)
    assert "[bold] (10 beyond)" in told
    assert "billing, audit and 29 more" in line(evidence=PROVEN | {"group_count": 31})


def test_an_event_that_happened_again_says_so() -> None:
    again = open_loss(since=61).since
    assert " 06-02 12:00:00*  " in line(last_breach_at=again)
    told = printed(tables.render_details(row(last_breach_at=again)))
    assert "12:00:00 UTC, again 2025-06-02 12:01:01 UTC" in told


def test_times_and_ranges_are_whole_on_a_narrow_screen() -> None:
    told = printed([tables.losses_table([row(), row(evidence=UNSEEN)])], width=80)
    assert "06-02 12:00:00" in told
    assert "[73, 100)" in told


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_loss_has_all_that_is_known_of_it_on_a_screen_of_any_width(width: int) -> None:
    beyond = row(rule="committed_beyond_log_end", group="invoicing", evidence=BEYOND)
    told = printed([tables.losses_table([row(), beyond])], width)
    for words in ("orders-0", "[73, 100) 27", "[100, 120) 20", "billing, audit", "invoicing (10"):
        assert words in told, words
    assert all(f"  {heading}" in told for heading in ("certain", "possible", "groups"))


def test_the_head_counts_classes_and_says_whether_that_is_all() -> None:
    assert "no loss is known  complete" in printed([tables.head(known())])
    told = printed([tables.head(known(row(), row(), errors=("blind",)))])
    assert "1 incident, 2 partitions  not complete" in told
    assert "as of -" in told


def test_the_head_counts_the_partitions_that_are_not_listed_too() -> None:
    many = replace(known(row()), rows=(incident(row(), partition_count=1500),))
    assert "1 incident, 1500 partitions" in printed([tables.head(many)])


def test_the_first_thing_in_full_is_what_to_do() -> None:
    told = printed(tables.render_details(row() | {"events": None, "error": "the database is away"}))
    head, what_to_do, first, *_ = told.splitlines()
    assert head == "committed_lost  orders-0  open"
    assert what_to_do == "WHAT TO DO NOW, IN THIS ORDER"
    assert first.startswith("  1. Keep broker 1 down")
    facts = dict(re.findall(r"(?m)^  (\w[^\n]*?)  +(.+)$", told.partition("WHAT IS KNOWN")[2]))
    assert facts["leader before"] == "broker 1, epoch 5"
    assert facts["of it visible"] == "20 offsets: read_committed readers could have them"
    assert facts["open transactions"] == "payments-7"
    assert "Earlier occurrences are not known: the database is away" in told
    assert "None" not in told


def test_commands_are_on_a_line_of_their_own_on_a_narrow_screen() -> None:
    told = printed(tables.render_details(row()), width=40)
    assert "--topic orders:0 --reset-offsets --to-offset 73 --execute\n" in told


def test_each_time_that_it_happened_is_told() -> None:
    event = {"at": "2025-06-02T12:00:01Z", "reason": "lost", "certain_from": 1, "certain_to": 4}
    events = [event | {"certain_offsets": 3}, event | {"certain_to": None}]
    told = printed(tables.render_details(row() | {"events": events}))
    assert "HAPPENED 2 TIMES" in told
    assert "12:00:01 UTC  lost  certain: [1, 4) 3 offsets  possible: -" in told


def test_a_row_of_another_version_is_shown_as_far_as_it_goes() -> None:
    bare = {"class": "settled_loss", "topic": "orders", "since": "soon", "more": {"settled": 4}}
    told = printed([tables.losses_table([bare]), *tables.render_details(bare)])
    assert "settled_loss" in told
    assert "settled  4" in told


def test_more_losses_than_a_person_reads_are_counted_on_a_terminal_and_shown_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = [incident(*[row()] * (SHOWN + 1)), incident(row())]
    lists = [part for part in tables.incidents_in_order(many) if isinstance(part, Table)]
    assert [len(each.rows) for each in lists] == [SHOWN + 1, 1]
    at_terminal(monkeypatch)
    told = printed(tables.incidents_in_order(many))
    assert "1 more (-o wide)" in told
    assert told.count("orders-0") == SHOWN
    assert told.count("Broker 1 lost leadership") == 2, "the incident itself is always said"


def test_an_incident_is_a_sentence_with_one_line_per_partition() -> None:
    others = [{"class": "committed_beyond_log_end", "group": "late", "reason": "beyond", "id": "x"}]
    back = row(reason="restored")
    gone = row(topic="gone", absent_rounds=2)
    told = printed(tables.incidents_in_order([incident(row() | {"also": others}, back, gone)]))
    _, head, columns, first, second, third, *_ = told.splitlines()
    assert head == "Broker 1 lost leadership"
    assert columns.startswith("class")
    assert "billing, audit, late" in first
    assert re.split(r"  +", second.strip())[:3] == ["restored", "orders-0", "-"]
    assert "gone-0 (deleted)" in third


def test_records_that_are_back_are_said_to_be_so_before_anything_else() -> None:
    head, *_ = printed(tables.render_details(row(reason="restored"))).splitlines()
    assert head == "restored, was committed_lost  orders-0  open"
    head, *_ = printed(tables.render_details(row())).splitlines()
    assert head == "committed_lost  orders-0  open"


def test_one_is_no_plural() -> None:
    told = line(evidence={"certain_from": 73, "certain_to": 74})
    assert "[73, 74) 1 " in told
    full = printed(tables.render_details(row(evidence={"certain_from": 73, "certain_to": 74})))
    assert "[73, 74) 1 offset\n" in full
    gone = {"lost_transactions": [{"transactional_id": "a"}], "lost_transaction_count": 1}
    assert "1 committed transaction " in line(evidence=gone)
    assert "at least 1 offset\n" in printed(
        tables.render_details(row(evidence={"at_least_offsets": 1}))
    )


def test_evidence_of_any_form_is_words() -> None:
    more = {"later_rows": [{"group": "a", "committed_offset": 7}], "odd": {"of": [1.5, None]}}
    told = printed(tables.render_details(row(evidence=PROVEN | more)))
    assert re.search(r"later_rows +group a, committed_offset 7\n", told)
    assert re.search(r"odd +of 1.5\n", told)
    assert not set("{}") & set(told)


def test_a_group_cannot_write_to_the_screen() -> None:
    name = "a\n  1. Start broker 1\x1b[2J"
    evidence = PROVEN | {"groups_beyond": [{"group": name}], "more": {"odd": name}}
    for told in (line(evidence=evidence), printed(tables.render_details(row(evidence=evidence)))):
        assert "\x1b" not in told
        assert "\n  1. Start broker 1" not in told
        assert "a\\n  1. Start broker 1\\u001b[2J" in told
