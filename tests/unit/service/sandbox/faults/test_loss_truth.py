"""What a truth about losses counts, and when it is rejected."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rules.errors import SandboxError
from rules.facts.identity import BrokerId, TopicId
from service.sandbox.faults.loss_truth import (
    GroupTruth,
    LossTruth,
    LostTransaction,
    PartitionState,
    PartitionTruth,
    require_agreement,
    require_expected,
)

BEFORE = PartitionState(
    leader=BrokerId(1),
    leader_epoch=4,
    isr=(BrokerId(1),),
    log_start_offset=0,
    last_stable_offset=16,
    high_watermark=18,
    log_end_offset=20,
)
AFTER = replace(
    BEFORE,
    leader=BrokerId(2),
    leader_epoch=5,
    last_stable_offset=10,
    high_watermark=10,
    log_end_offset=10,
)
LOST = PartitionTruth(
    partition=0, before=BEFORE, after=AFTER, epoch_end=10, lost_from=10, lost_to=20
)
KEPT = PartitionTruth(
    partition=1, before=BEFORE, after=BEFORE, epoch_end=20, lost_from=None, lost_to=None
)
TRUTH = LossTruth(
    fault="committed-loss",
    topic="orders",
    topic_id=TopicId("id"),
    new_topic_id=TopicId("id"),
    rule="committed_records_lost",
    also=("unclean_leader_election",),
    silent=("unreplicated_records_lost",),
    was_unclean=True,
    partitions=(LOST,),
    ends="never",
)
RECORDS = {offset: b"%d" % offset for offset in range(18)}  # those that readers saw
FIRST_TEN = {offset: RECORDS[offset] for offset in range(10)}


def test_what_is_lost_is_parted_by_what_readers_could_see() -> None:
    assert (LOST.lost_offsets, LOST.committed_to, LOST.visible_to) == (10, 18, 16)
    assert (KEPT.lost_offsets, KEPT.committed_to, KEPT.visible_to) == (0, None, None)
    assert TRUTH.lost_offsets == 10


def test_nothing_below_the_high_watermark_is_lost_where_the_epoch_ends_at_it() -> None:
    unreplicated = replace(LOST, epoch_end=18, lost_from=18)
    assert (unreplicated.lost_offsets, unreplicated.committed_to) == (2, None)


def test_the_truth_is_plain_values() -> None:
    partition = replace(
        LOST,
        groups=(GroupTruth(group="readers", committed_offset=18, leader_epoch=4),),
        transactions=(
            LostTransaction(
                transactional_id="billing",
                producer_id=7,
                producer_epoch=0,
                start_offset=10,
                records=5,
            ),
        ),
    )
    document = json.loads(json.dumps(replace(TRUTH, partitions=(partition,)).document()))
    [row] = document["partitions"]
    assert (document["topic"], document["rule"]) == ("orders", "committed_records_lost")
    assert (row["old_leader"], row["old_leader_epoch"]) == (1, 4)
    assert (row["new_leader"], row["new_leader_epoch"]) == (2, 5)
    assert (row["lost_from"], row["lost_to"], row["committed_to"]) == (10, 20, 18)
    assert row["groups"][0]["committed_offset"] == 18
    assert row["transactions"][0]["transactional_id"] == "billing"
    assert row["before"]["isr"] == [1]


def test_a_claim_that_the_log_bears_out_is_taken() -> None:
    require_agreement(LOST, RECORDS, FIRST_TEN)
    require_agreement(KEPT, RECORDS, RECORDS)


@pytest.mark.parametrize(
    ("claim", "after"),
    [
        pytest.param(LOST, RECORDS, id="nothing is gone"),
        pytest.param(LOST, {**FIRST_TEN, 10: RECORDS[10]}, id="one record less is gone"),
        pytest.param(LOST, {at: FIRST_TEN[at] for at in range(9)}, id="one more is gone"),
        pytest.param(KEPT, FIRST_TEN, id="records are gone"),
        pytest.param(KEPT, {**RECORDS, 3: b"other"}, id="another record has the offset"),
    ],
)
def test_a_claim_that_the_log_contradicts_is_rejected(
    claim: PartitionTruth, after: dict[int, bytes]
) -> None:
    with pytest.raises(SandboxError, match=f"partition {claim.partition}: the epoch's end"):
        require_agreement(claim, RECORDS, after)


def test_a_record_that_replaced_a_lost_one_does_not_hide_the_loss() -> None:
    require_agreement(LOST, RECORDS, {**RECORDS, **dict.fromkeys(range(10, 18), b"new")})


def test_what_was_deleted_on_purpose_is_not_missed() -> None:
    deleted = replace(KEPT, after=replace(BEFORE, log_start_offset=8))
    require_agreement(deleted, RECORDS, {at: RECORDS[at] for at in range(8, 18)})


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"was_unclean": False}, id="the election was clean"),
        pytest.param({"partitions": (KEPT,)}, id="nothing was lost"),
        pytest.param({"partitions": (LOST, KEPT)}, id="one partition lost nothing"),
        pytest.param({"silent": ("committed_records_lost",)}, id="nothing was to be lost"),
        pytest.param({"rule": "unreplicated_records_lost"}, id="it was acknowledged"),
        pytest.param({"silent": ("unclean_leader_election",)}, id="it was to be clean"),
    ],
)
def test_a_truth_of_another_kind_than_was_to_be_made_is_rejected(changes: dict[str, Any]) -> None:
    require_expected(TRUTH)
    with pytest.raises(SandboxError, match="committed-loss came otherwise"):
        require_expected(replace(TRUTH, **changes))
