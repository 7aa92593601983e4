"""What can be compared, and what cannot: nothing of it may pass for "nothing is missing"."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rules.facts.log_states import EpochStart
from rules.log_files.epochs import EpochEnd
from rules.log_files.histories import SENTENCES, DiffReason, NewLog, OldLog, part

OLD = OldLog(topic_id="id", epochs=(EpochStart(0, 0),), log_start=0, log_end=37, high_watermark=37)
NEW = NewLog(topic_id="id", latest_epoch=2, log_start=0, log_end=50, ends={0: EpochEnd(0, 10)})


def test_after_an_unclean_election_they_part_where_the_new_epoch_begins() -> None:
    parting = part(OLD, NEW)
    assert (parting.offset, parting.reason) == (10, None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        pytest.param(
            {}, {"topic_id": "other"}, DiffReason.OTHER_TOPIC_ID,
            id="a topic that was created again has the same name and epochs",
        ),
        pytest.param({"topic_id": None}, {}, DiffReason.NO_TOPIC_ID, id="it may be another topic"),
        pytest.param({}, {"topic_id": None}, DiffReason.NO_TOPIC_ID, id="as may the new one"),
        pytest.param({"log_end": 0}, {}, DiffReason.COPY_IS_EMPTY, id="no batch can be read"),
        pytest.param({"epochs": ()}, {}, DiffReason.NO_LEADER_EPOCHS, id="nothing to compare by"),
        pytest.param({}, {"ends": {}}, DiffReason.NO_LEADER_EPOCHS, id="no epoch in common"),
        pytest.param(
            {"epochs": (EpochStart(0, 0), EpochStart(2, 10))}, {"latest_epoch": 0},
            DiffReason.NEW_IS_NOT_LATER, id="the arguments are swapped",
        ),
        pytest.param(
            {}, {"latest_epoch": 0, "log_end": 10, "ends": {0: EpochEnd(0, 10)}},
            DiffReason.NEW_IS_NOT_LATER, id="a follower of the old leader is no new leader",
        ),
        pytest.param(
            {"epochs": (EpochStart(0, 0), EpochStart(2, 10)), "log_end": 40}, {},
            DiffReason.FOLLOWED_NEW_LEADER, id="it was copied after its broker had truncated",
        ),
        pytest.param(
            {}, {"log_start": 45, "ends": {0: EpochEnd(0, 45)}}, DiffReason.NEW_LOG_STARTS_LATER,
            id="retention took the place, and the answer is the log start: 37 is below it by chance",
        ),
        pytest.param(
            {}, {"log_start": 20, "ends": {0: EpochEnd(0, 20)}}, DiffReason.NEW_LOG_STARTS_LATER,
            id="what lay between 10 and 20 may have been there",
        ),
        pytest.param(
            {"log_end": 10}, {}, DiffReason.COPY_IS_CUT,
            id="its broker knew 37 to be replicated: a copy that ends at 10 is not all of it",
        ),
        pytest.param(
            {"log_end": 10, "high_watermark": 8, "is_cut": True}, {}, DiffReason.COPY_IS_CUT,
            id="behind what can be read there was more",
        ),
        pytest.param(
            {"log_end": 10, "high_watermark": 10}, {}, DiffReason.NOTHING_MISSING,
            id="a clean failover",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_named(
    old: dict[str, Any], new: dict[str, Any], reason: DiffReason
) -> None:
    assert part(replace(OLD, **old), replace(NEW, **new)).reason is reason


def test_a_later_log_start_of_the_copy_is_no_loss() -> None:
    assert part(replace(OLD, log_start=5), NEW).offset == 10
    assert part(replace(OLD, log_start=0), replace(NEW, log_start=5)).offset == 10


def test_every_reason_has_a_sentence() -> None:
    assert set(SENTENCES) == set(DiffReason)
