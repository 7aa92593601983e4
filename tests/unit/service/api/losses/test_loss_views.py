"""Evidence of any version is readable, and what to do follows from it."""

from __future__ import annotations

from typing import Any

import pytest

from service.api.findings.views import from_memory, from_storage
from service.api.losses.models import Loss, LossClass
from service.api.losses.views import facts_of, groups_in, loss_of
from tests.unit.service.api.losses.losses import BEYOND, PROVEN, SETTLED, open_loss, past_loss


def loss(evidence: dict[str, Any], **more: Any) -> Loss:
    return loss_of(from_memory(open_loss(evidence=evidence, **more), None))


def commands(found: Loss) -> list[str]:
    shown = ("kafka-", "cp -a", "log diff SAFE_PLACE")
    return [step for step in found.next_steps if any(word in step for word in shown)]


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"certain_from": 73},
        {"certain_from": "73", "certain_to": True, "leader": 1.5, "advice": 7},
        {"last_observation": "yesterday", "unknown_since": "2025-06-02T11:59:59"},
        {"groups_beyond": None, "open_transactions": "payments-7"},
        {"groups_beyond": {"group": "billing"}, "group_count": None},
    ],
)
def test_evidence_that_is_missing_or_of_another_kind_is_null(evidence: dict[str, Any]) -> None:
    facts = facts_of("lost", evidence)
    told = {name: value for name, value in facts if value is not None}
    assert told == {"reason": "lost", "more": {}}
    assert loss(evidence).next_steps


def test_rows_that_name_nobody_are_left_out() -> None:
    rows = [{"group": "billing", "new": [1]}, {"group": 7}, "audit", {}]
    found = loss({"groups_beyond": rows, "lost_transactions": [{"producer_id": 4}]})
    assert [one.group for one in found.groups_beyond or ()] == ["billing"]
    assert found.lost_transactions == []
    assert list(groups_in({"groups_beyond": rows})) == ["billing"]


def test_what_has_no_field_is_passed_on() -> None:
    new = {"settled_to": 117, "ratio": 0.5, "log_lines": [{"at": {"deep": [1]}}]}
    finding = from_storage(past_loss(evidence=PROVEN | new))
    assert loss_of(finding).more == new
    assert loss_of(finding).model_dump(mode="json")["more"] == new


def test_no_range_is_no_count() -> None:
    found = loss(PROVEN | {"certain_from": None, "certain_to": None, "certain_offsets": 0})
    assert (found.certain_offsets, found.visible_to_read_committed) == (None, None)
    assert found.possible_offsets == 20


@pytest.mark.parametrize("partition", ["", "x", "٣"])
def test_labels_of_another_form_are_null(partition: str) -> None:
    labels = {"partition": partition, "of": "another version"}
    found = loss_of(from_storage(past_loss(labels=labels)))
    assert (found.topic, found.partition, found.cluster) == (None, None, None)


def test_a_transaction_that_is_lost_whole_is_named() -> None:
    row = {
        "transactional_id": "payments-7",
        "producer_id": 4,
        "committed_at": "2025-06-02T11:59:58.000+00:00",
    }
    found = loss({"lost_transactions": [row], "lost_transaction_count": 1})
    assert found.lost_transactions is not None
    assert (found.lost_transactions[0].producer_id, found.lost_transaction_count) == (4, 1)


def test_first_the_only_copy_is_saved_then_groups_are_moved() -> None:
    beginnings = (
        "Keep broker 1 down: its disk holds the only copy",
        "Copy the folder orders-0 of its log directory (log.dirs), while it is down, and its checkpoint: cp -a ",
        "Write out of the copy what the new leader lacks, from offset 73 on: tidemark log diff SAFE_PLACE/orders-0 ",
        "Stop the consumers of billing, audit: ",
        "See which of these groups are still beyond it: tidemark loss check orders-0",
        "If it is, move it to where the loss begins: kafka-consumer-groups.sh ",
        "If it is, move it to where the loss begins: kafka-consumer-groups.sh ",
        "Have the producers write the lost records again",
        "Only then start the old leader.",
        "Turn off unclean.leader.election.enable for orders",
    )
    steps = loss(PROVEN).next_steps
    for step, beginning in zip(steps, beginnings, strict=True):
        assert step.startswith(beginning)
    assert steps[5].endswith(
        "--group billing --topic orders:0 --reset-offsets --to-offset 73 --execute"
    )
    assert "nothing of aborted or open ones" in steps[7]


def test_a_group_that_has_gone_on_is_not_moved() -> None:
    evidence = PROVEN | {"groups_gone_on": [{"group": "billing", "committed_offset": 140}]}
    steps = loss(evidence).next_steps
    assert [step for step in steps if "--group billing" in step] == []
    assert any(step.startswith("Stop the consumers of audit:") for step in steps)
    assert any(step.startswith("Do not move billing:") for step in steps)


def test_an_old_leader_that_is_up_is_stopped() -> None:
    first = loss(PROVEN | {"former_leader_end": 117}).next_steps[0]
    assert first.startswith("Stop broker 1 at once")
    assert "offset 117" in first


def test_an_old_leader_that_has_come_back_tells_exactly_what_is_gone() -> None:
    found = loss(SETTLED, reason="former_leader_returned")
    assert (found.exact_from, found.exact_to, found.exact_offsets) == (73, 117, 44)
    assert (found.proven_committed_offsets, found.former_leader) == (27, 1)
    assert str(found.sole_in_sync_since) == "2025-06-02 11:59:30+00:00"
    assert (found.unknown_since, found.advice, found.more) == (None, None, {})


def test_nobody_is_told_to_save_what_is_cut_already() -> None:
    first, second, *rest = loss(SETTLED, reason="former_leader_returned").next_steps
    assert first.startswith(
        "Broker 1 has come back and cut its log: offsets 73 to 116 are all that is"
    )
    assert second.startswith("Stop the consumers")
    assert not any("old leader" in step or "cp -a" in step for step in rest)


def test_a_leader_that_lost_its_own_log_has_no_other_copy() -> None:
    first, second, *_ = loss(PROVEN | {"leader": 1}).next_steps
    assert first.startswith("Broker 1 leads again")
    assert second.startswith("Stop the consumers")


def test_nothing_is_guessed_where_the_old_leader_is_not_known() -> None:
    seen = {"groups_beyond": [{"group": "billing"}], "group_count": 31}
    found = loss(seen, rule="records_possibly_lost", reason="read_beyond_epoch_end")
    assert found.next_steps[0].startswith("Whether anything is lost is not proven.")
    assert not any("eep every broker down" in step for step in found.next_steps)
    proven = loss(PROVEN | {"leader_before": None})
    assert proven.next_steps[0].startswith("Keep every broker down that was a replica")
    assert "the new leader lacks: tidemark log diff" in commands(found)[1]
    assert "--to-offset OFFSET --execute" in commands(found)[2]
    assert any("billing and 26 more" in step for step in found.next_steps)


def test_the_epoch_that_a_group_has_read_tells_where_the_loss_begins() -> None:
    groups = [
        {"group": "a", "committed_offset": 34, "read_beyond": 24},
        {"group": "b", "committed_offset": 30, "read_beyond": 18},
    ]
    found = loss({"groups_beyond": groups}, rule="records_possibly_lost")
    assert "lacks, from offset 10 on: tidemark log diff" in commands(found)[1]
    assert "--group a --topic orders:0 --reset-offsets --to-offset 10" in commands(found)[2]
    assert "--group b --topic orders:0 --reset-offsets --to-offset 12" in commands(found)[3]


def test_records_that_were_never_committed_concern_producers() -> None:
    found = loss(PROVEN | {"groups_beyond": []}, rule="unreplicated_records_lost")
    assert found.class_ is LossClass.UNREPLICATED_LOST
    assert "acks=1" in found.next_steps[0]
    assert "around 2025-06-02 11:59:59 UTC" in found.next_steps[1]
    assert commands(found) == []


def test_a_group_beyond_the_end_is_moved_by_a_command_that_can_be_typed() -> None:
    found = loss(BEYOND, topic="orders", rule="committed_beyond_log_end", group="it's; $(rm)")
    assert found.next_steps[0] == "See what is lost there: tidemark loss show orders-0"
    assert (
        """--group 'it'"'"'s; $(rm)' --topic orders:0 --reset-offsets --to-offset EPOCH_END --execute"""
        in (found.next_steps[2])
    )
    assert found.next_steps[3].startswith("Do not move it to the end of the log")


def test_an_unclean_election_points_to_what_is_told_of_its_loss() -> None:
    """It was told once, and does not know that the old leader has come back since."""
    election = open_loss(evidence=PROVEN, rule="unclean_leader_election")
    see, forbid = loss_of(from_memory(election, None)).next_steps
    assert see.endswith("tidemark loss show orders-0")
    assert forbid.startswith("Turn off unclean.leader.election.enable")


@pytest.mark.parametrize(
    ("rule", "reason", "begins"),
    [
        ("records_possibly_lost", "proven", "Nothing more is known here; see"),
        ("committed_records_lost", "restored", "A replica that has the lost records leads again"),
    ],
)
def test_a_loss_that_is_settled_elsewhere_needs_one_step(
    rule: str, reason: str, begins: str
) -> None:
    [step] = loss(PROVEN, rule=rule, reason=reason).next_steps
    assert step.startswith(begins)
    assert "tidemark loss show " in step


@pytest.mark.parametrize(
    ("rule", "reason", "evidence"),
    [
        ("records_possibly_lost", "possible", PROVEN),
        ("records_possibly_lost", "unseen", PROVEN | {"former_leader_end": 117}),
        ("records_possibly_lost", "former_leader_returned", SETTLED),
        ("records_possibly_lost", "read_beyond_epoch_end", {"at_least_offsets": 4}),
        ("records_possibly_lost", "not_determinable", PROVEN),
        ("unclean_leader_election", "possibly_lost", PROVEN),
        ("committed_beyond_log_end", "beyond", BEYOND),
    ],
)
def test_nobody_is_told_to_write_again_what_is_not_proven_to_be_lost(
    rule: str, reason: str, evidence: dict[str, Any]
) -> None:
    steps = "\n".join(loss(evidence, rule=rule, reason=reason).next_steps)
    assert "the only copy" not in steps
    assert "the lost records again" not in steps
    assert "1 offsets" not in steps


def test_a_possible_loss_is_copied_and_compared_first() -> None:
    steps = loss(PROVEN, rule="records_possibly_lost", reason="unseen").next_steps
    assert steps[0].startswith("Whether anything is lost is not proven.")
    assert "broker 1" in steps[0]
    assert any(step.startswith("Compare the copy with the topic from offset 73") for step in steps)


def test_one_offset_is_one() -> None:
    one = SETTLED | {"exact_from": 73, "exact_to": 74}
    assert (
        "offset 73 is all that is gone" in loss(one, reason="former_leader_returned").next_steps[0]
    )


@pytest.mark.parametrize("tail", [0, 20])
def test_what_may_be_the_only_copy_is_saved_also_where_the_election_is_not_known(tail: int) -> None:
    span = {"possible_from": 100, "possible_to": 100 + tail} if tail else {}
    evidence = {"leader_before": 1, "leader": 2, "election": "not_known", **span}
    found = loss(evidence, rule="records_possibly_lost", reason="election_not_known")
    assert found.class_ is LossClass.NOT_DETERMINABLE
    assert any("cp -a" in step for step in found.next_steps) is bool(tail)
    assert "active at the election" in found.next_steps[-1]
