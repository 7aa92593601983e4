"""Rejections of which something is missing that would decide them."""

from __future__ import annotations

from typing import Final

from tests.factories import partitions, topic_id, unseen_offsets
from tests.unit.rules.sequence.case_observations import (
    ALONE,
    CONFIRMED,
    NOT_READABLE,
    REORDERED,
    SILENT,
    SUSPECTED,
    Case,
    line_of_2,
    of_2,
)
from tests.unit.rules.sequence.lines import (
    expected_zero,
    new_epoch,
    rejected,
)
from tests.unit.rules.sequence.stage import (
    PATIENCE,
    Observation,
    batch,
    found,
    marker,
)

# A transaction before, and its marker: its leader had a state of the producer.
WROTE_BEFORE: Final = found(batch(90, 0, 3), markers=(marker(93, epoch=1),))
WROTE_IN_0: Final = found(
    batch(90, 0, 3, leader_epoch=0), markers=(marker(93, epoch=1, leader_epoch=0),)
)

UNSEEN: Final = {
    "no-state": Case(
        because="it may still come in order",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(7),)),
            Observation(second=12, states={}, found=[WROTE_BEFORE]),
        ),
        says=("producer_state_lost", SUSPECTED, "healing"),
    ),
    "no-state-in-the-first-leader-epoch": Case(
        because="nothing is lost, and yet the producer cannot go on",
        observations=(
            Observation(second=0, epoch=0),
            Observation(second=11, epoch=0, lines=(expected_zero(7),)),
            Observation(second=12, epoch=0, states={}, found=[WROTE_IN_0]),
            Observation(second=11 + PATIENCE, epoch=0),
            Observation(second=12 + PATIENCE, epoch=0, states={}, found=[WROTE_IN_0]),
        ),
        says=("producer_state_lost", CONFIRMED, "no_state"),
    ),
    "no-state-for-good": Case(
        because="it did not come within the time of a client",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(7),)),
            Observation(second=12, states={}, found=[WROTE_BEFORE]),
            Observation(second=11 + PATIENCE),
            Observation(second=12 + PATIENCE, states={}, found=[WROTE_BEFORE]),
        ),
        says=("producer_state_lost", CONFIRMED, "no_state"),
    ),
    "no-state-before-the-first-transaction": Case(
        because="it never wrote here: there is no state that could be lost",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(7),)),
            Observation(second=12, states={}, found=[found(largest=None)]),
        ),
        says=("reordering", SUSPECTED, "transaction_start"),
    ),
    "no-state-and-the-first-transaction-never-came": Case(
        because="likewise, and nothing is known of what was missing",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(7),)),
            *(Observation(second=12 + n, states={}, found=[found()]) for n in range(4)),
            *(Observation(second=12 + PATIENCE + n, states={}, found=[found()]) for n in range(5)),
        ),
        says=("undetermined", SUSPECTED, "batch_not_found"),
    ),
    "no-offsets": Case(
        because="there is only the line: that nothing is seen is no ground to suspect a loss",
        observations=tuple(
            Observation(second=second, lines=lines, more={"partitions": partitions({"other": 1})})
            for second, lines in ((0, ()), (11, (rejected(27, 2),)), (12, ()), (300, ()))
        ),
        says=("undetermined", SUSPECTED, "partition_not_seen"),
    ),
    "no-offsets-and-a-small-gap": Case(
        because="nothing speaks for a loss, and nothing is proven",
        observations=tuple(
            Observation(second=second, lines=lines, more={"partitions": partitions({"other": 1})})
            for second, lines in ((0, ()), (11, (rejected(4, 2),)), (12, ()), (300, ()))
        ),
        says=("undetermined", SUSPECTED, "partition_not_seen"),
    ),
    "leader-away": Case(
        because="the leader answers without an epoch",
        observations=(
            Observation(second=0),
            REORDERED,
            Observation(second=12, more={"offsets": unseen_offsets(1)}),
        ),
        says=("reordering", SUSPECTED, "partition_not_seen"),
    ),
    "no-read": Case(
        because="without READ it stays open in which epoch the last batch was appended",
        observations=(
            Observation(second=0),
            REORDERED,
            *(Observation(second=12 + n, gaps=(NOT_READABLE,)) for n in range(4)),
            *(Observation(second=12 + PATIENCE + n, gaps=(NOT_READABLE,)) for n in range(5)),
        ),
        says=("undetermined", SUSPECTED, "not_readable"),
    ),
    "no-read-and-a-loss": Case(
        because="what is lost is proven by itself; that it is this producer's is suspected",
        observations=(
            ALONE,
            line_of_2(),
            *(of_2(12 + n, gaps=(NOT_READABLE,)) for n in range(4)),
            *(of_2(12 + PATIENCE + n, gaps=(NOT_READABLE,)) for n in range(5)),
        ),
        says=("loss", SUSPECTED, "not_readable"),
    ),
    "leader-does-not-answer": Case(
        because="the leader did not return its batches",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(27, 2),)),
            *(Observation(second=12 + n, gaps=(SILENT,)) for n in range(4)),
        ),
        says=("undetermined", SUSPECTED, "scan_failed"),
    ),
    "batch-not-found": Case(
        because="the last batch is not where it was searched for",
        observations=(
            Observation(second=0),
            REORDERED,
            *(Observation(second=12 + n, found=[found()]) for n in range(4)),
            *(Observation(second=12 + PATIENCE + n, found=[found()]) for n in range(5)),
        ),
        says=("undetermined", SUSPECTED, "batch_not_found"),
    ),
    "topic-recreated": Case(
        because="the line is of a topic that is gone",
        observations=(
            Observation(second=0),
            Observation(
                second=11, lines=(rejected(27, 2, topic_id=topic_id("orders", creation=1)),)
            ),
            Observation(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("undetermined", SUSPECTED, "topic_recreated"),
    ),
    "partition-not-reported": Case(
        because="the line of a broker before 2.2 has no partition",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(27, 2, topic=None),)),
        ),
        says=("undetermined", SUSPECTED, "partition_not_reported"),
    ),
    "producer-not-reported": Case(
        because="the line of a broker before 2.2 has no producer id either",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(new_epoch(3, 1, producer_id=None),)),
        ),
        says=("reordering", SUSPECTED, "producer_not_reported"),
    ),
}
