"""Cases in which a wrong verdict lies near: a loss that looks healed, a reordering that looks lost.

The stage is that of `test_classes`: producer 7 writes to orders-0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from rules.facts.column import Column
from tests.factories import partitions, topic_id
from tests.unit.rules.sequence.lines import refused
from tests.unit.rules.sequence.stage import Look, batch, found, verdict
from tests.unit.rules.sequence.test_classes import (
    ALONE,
    CONFIRMED,
    SUSPECTED,
    Case,
)

OLD_ID: Final = topic_id("orders")


def again() -> dict[str, Any]:
    """Return a partition of a topic that was created again, in its first leader epoch."""
    new_id = topic_id("orders", creation=1)
    epoch = Column.of([0])
    placed = partitions({"orders": 1}, topic_ids=(new_id,), leader_epoch=epoch)
    return {"partitions": placed}


def of_2_in_1(second: float, **more: Any) -> Look:
    """Return a round in which broker 2 leads in the epoch after the first one."""
    return Look(second=second, leader=2, epoch=1, isr=(2,), **more)


CASES: Final = {
    # ---------------------------------------------------------------- the topic is another one
    "line-of-a-topic-that-is-gone": Case(
        because="that the new topic never had another leader says nothing of the old one",
        looks=(
            Look(second=0, epoch=0, more=again()),
            Look(second=11, epoch=0, more=again(), lines=(refused(5000, 2, topic_id=OLD_ID),)),
            Look(second=12, epoch=0, more=again()),
        ),
        says=("loss", SUSPECTED, "topic_recreated"),
    ),
    "loss-of-a-topic-that-is-gone": Case(
        because="the old topic lost its records, whatever the new one's leader epoch is",
        looks=(
            replace(ALONE, epoch=0),
            of_2_in_1(11, ends=((0, 0, 100),), lines=(refused(27, 2, broker=2, topic_id=OLD_ID),)),
            of_2_in_1(12, found=[found(batch(97, 0, 3, leader_epoch=0))]),
            Look(second=60, epoch=0, end=0, more=again()),
            Look(second=61, epoch=0, end=0, more=again()),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    assert verdict(*case.looks) == case.says, case.because
