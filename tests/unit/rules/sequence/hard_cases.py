"""Cases with a tempting wrong verdict: a loss that seems healed, a reordering that seems a loss.

Producer 7 writes to orders-0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from rules.facts.column import Column
from tests.factories import partitions, topic_id
from tests.unit.rules.loss.replica_lines import elected
from tests.unit.rules.sequence.case_observations import (
    ALONE,
    CONFIRMED,
    LOST,
    OLD_BATCH,
    SEEMINGLY_CLEAN,
    SUSPECTED,
    Case,
    line_of_2,
    of_2,
)
from tests.unit.rules.sequence.cases import CASES as CLASSES
from tests.unit.rules.sequence.lines import expected_zero, new_epoch, rejected
from tests.unit.rules.sequence.stage import PATIENCE, Observation, batch, found, marker, remembered
from tests.unit.rules.sequence.unseen_cases import WROTE_BEFORE

MARKED_BY_2: Final = found(markers=(marker(100, leader_epoch=6),))
BEGUN_ANEW: Final = batch(100, 0, 3, leader_epoch=6, epoch=1)
UNCLEAN: Final = CLASSES["unclean-and-waiting"].observations
FILLING: Final = batch(100, 3, 6, leader_epoch=6)
OVERTAKEN: Final = (
    ALONE,
    line_of_2(6, 2),
    of_2(12, found=[found(OLD_BATCH)]),
    of_2(22),
    of_2(41, found=[found(OLD_BATCH, FILLING)]),
)
OLD_ID: Final = topic_id("orders")


def again() -> dict[str, Any]:
    """Return a partition of a topic that was created again, in its first leader epoch."""
    new_id = topic_id("orders", creation=1)
    epoch = Column.of([0])
    placed = partitions({"orders": 1}, topic_ids=(new_id,), leader_epoch=epoch)
    return {"partitions": placed}


def of_2_in_1(second: float, **more: Any) -> Observation:
    """Return a round in which broker 2 leads in the epoch after the first one."""
    return Observation(second=second, leader=2, epoch=1, isr=(2,), **more)


CASES: Final = {
    "line-of-a-topic-that-is-gone": Case(
        because="that the new topic never had another leader says nothing of the old one",
        observations=(
            Observation(second=0, epoch=0, more=again()),
            Observation(
                second=11, epoch=0, more=again(), lines=(rejected(5000, 2, topic_id=OLD_ID),)
            ),
            Observation(second=12, epoch=0, more=again()),
        ),
        says=("undetermined", SUSPECTED, "topic_recreated"),
    ),
    "loss-of-a-topic-that-is-gone": Case(
        because="the old topic lost its records, whatever the new one's leader epoch is",
        observations=(
            replace(ALONE, epoch=0),
            of_2_in_1(11, ends=((0, 0, 100),), lines=(rejected(27, 2, broker=2, topic_id=OLD_ID),)),
            of_2_in_1(12, found=[found(batch(97, 0, 3, leader_epoch=0))]),
            Observation(second=60, epoch=0, end=0, more=again()),
            Observation(second=61, epoch=0, end=0, more=again()),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "the-state-of-another-epoch": Case(
        because="Java goes on under epoch 1, and comes to the same numbers",
        observations=(
            *UNCLEAN[:1],
            replace(UNCLEAN[1], lines=(rejected(27, 2, broker=2), elected())),
            of_2(12, found=[found(OLD_BATCH, BEGUN_ANEW)], states=remembered(2, epoch=1)),
            of_2(13, found=[found(OLD_BATCH, BEGUN_ANEW)], states=remembered(5, epoch=1)),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "the-state-of-an-epoch-that-is-not-known": Case(
        because="which epoch was rejected is not known, and the leader remembers a later one",
        observations=(
            *UNCLEAN[:1],
            replace(UNCLEAN[1], lines=(rejected(27, 2, broker=2), elected())),
            of_2(12, states=remembered(2, epoch=1)),
            of_2(13, states=remembered(5, epoch=1)),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "another-epoch-begins-at-0": Case(
        because="the leader knew nothing of the producer, which then begins a new epoch",
        observations=(
            *UNCLEAN[:1],
            replace(UNCLEAN[1], lines=(expected_zero(24, broker=2), elected())),
            of_2(12, found=[found(OLD_BATCH, BEGUN_ANEW)], states=remembered(2, epoch=1)),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "another-epoch-begins-at-0-where-none-is-known": Case(
        because="likewise, where nothing older is found",
        observations=(
            *UNCLEAN[:1],
            replace(UNCLEAN[1], lines=(rejected(24, -1, broker=2), elected())),
            of_2(12, found=[found(BEGUN_ANEW, observed=(90, 200))]),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "remembered-after-a-change-that-came-later": Case(
        because="the leader that had the last batch rejected the next one: no change lies between",
        observations=(
            Observation(second=0, is_unclean_allowed=False),
            Observation(second=11, is_unclean_allowed=False, lines=(expected_zero(7),)),
            Observation(second=12, is_unclean_allowed=False, states={}, found=[found(OLD_BATCH)]),
            Observation(
                second=20, is_unclean_allowed=False, leader=2, epoch=6, ends=((0, 5, 100),)
            ),
            *(
                Observation(
                    second=second,
                    leader=2,
                    epoch=6,
                    is_unclean_allowed=False,
                    states=remembered(2),
                    found=[found(OLD_BATCH)],
                )
                for second in (140, 141, 142)
            ),
        ),
        says=("undetermined", SUSPECTED, "changed_since"),
    ),
    "observed-up-to-the-rejected-batch-alone": Case(
        because="what is missing may have come in the part that was not scanned",
        observations=(
            *UNCLEAN[:2],
            of_2(12, end=5_000_000, found=[found(OLD_BATCH, observed=(0, 100))]),
            of_2(11 + PATIENCE, end=9_000_000, found=[found(OLD_BATCH, observed=(0, 101))]),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "observed-behind-the-rejected-batch-alone": Case(
        because="what came right after the rejection is deleted",
        observations=(
            *UNCLEAN[:2],
            of_2(12, found=[found(OLD_BATCH, observed=(0, 100))]),
            of_2(11 + PATIENCE, end=400, found=[found(observed=(150, 400))]),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "observed-to-the-end-over-many-rounds": Case(
        because="the observation goes on as long as it comes further",
        observations=(
            *UNCLEAN[:2],
            *(
                of_2(12 + n, end=9_000, found=[found(OLD_BATCH, observed=(0, 101))])
                for n in range(3)
            ),
            *(
                of_2(
                    11 + PATIENCE + n,
                    end=9_000,
                    found=[found(OLD_BATCH, observed=(0, 1_000 * n))] if n else (),
                )
                for n in range(10)
            ),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
    "the-state-is-past-the-gap": Case(
        because="the leader had the last sequence, and has a later one: it took all in between",
        observations=(
            *UNCLEAN[:2],
            of_2(12, end=5_000_000, found=[found(OLD_BATCH, observed=(0, 101))]),
            of_2(13, end=5_000_000, states=remembered(8)),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "overtaken-behind-a-loss-of-others": Case(
        because="what is gone is other producers': the client sends its own batches within its time",
        observations=OVERTAKEN,
        says=("reordering", CONFIRMED, "filled"),
    ),
    "overtaken-behind-a-loss-of-others-and-sent-late": Case(
        because="the last observation is made when the client has given up",
        observations=(
            *OVERTAKEN[:3],
            of_2(11 + PATIENCE),
            of_2(12 + PATIENCE, found=[found(OLD_BATCH, FILLING)]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "stale-retry-and-the-next-batch": Case(
        because="a client that goes on does not hide that it sent a batch again",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(0, 5),)),
            Observation(second=12, found=[found(*(batch(94 + n, n) for n in range(7)))]),
        ),
        says=("stale_retry", CONFIRMED, "persisted"),
    ),
    "no-state-of-a-leader-that-may-have-lost-all": Case(
        because="elections may be unclean, and the new leader may lack all that it wrote",
        observations=(
            Observation(second=0),
            replace(SEEMINGLY_CLEAN[1], lines=(expected_zero(5000, broker=2),)),
            *(
                Observation(second=second, leader=2, epoch=6, states={}, found=[found()])
                for second in (12, 140, 141, 142)
            ),
        ),
        says=("loss", SUSPECTED, "seemingly_clean"),
    ),
    "no-state-after-a-clean-change": Case(
        because="where elections are clean for certain the new leader had all that was acknowledged",
        observations=(
            Observation(second=0, is_unclean_allowed=False),
            replace(
                SEEMINGLY_CLEAN[1],
                is_unclean_allowed=False,
                lines=(expected_zero(5000, broker=2),),
            ),
            *(
                Observation(
                    second=second,
                    leader=2,
                    epoch=6,
                    is_unclean_allowed=False,
                    states={},
                    found=[WROTE_BEFORE],
                )
                for second in (12, 140, 141, 142)
            ),
        ),
        says=("producer_state_lost", CONFIRMED, "no_state"),
    ),
    "no-state-and-then-silence": Case(
        because="whether it is still so is not known, and at a transaction's start the numbers say nothing",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(5000),)),
            Observation(second=12, states={}),
            *(Observation(second=13 + n) for n in range(4)),
            *(Observation(second=140 + n) for n in range(6)),
        ),
        says=("undetermined", SUSPECTED, "batch_not_found"),
    ),
    "no-state-and-a-change-after-it": Case(
        because="a leader that changed after the rejection does not lie between",
        observations=(
            Observation(second=0, is_unclean_allowed=False),
            Observation(second=11, is_unclean_allowed=False, lines=(expected_zero(7),)),
            Observation(second=12, is_unclean_allowed=False, states={}, found=[found(OLD_BATCH)]),
            Observation(
                second=20, is_unclean_allowed=False, leader=2, epoch=6, ends=((0, 5, 100),)
            ),
            *(
                Observation(
                    second=second,
                    leader=2,
                    epoch=6,
                    is_unclean_allowed=False,
                    states={},
                    found=[found(OLD_BATCH)],
                )
                for second in (140, 141, 142)
            ),
        ),
        says=("producer_state_lost", CONFIRMED, "no_state"),
    ),
    "marker-of-a-new-leader": Case(
        because="broker 2 ends a transaction of which it lost all batches: its marker proves nothing",
        observations=(
            ALONE,
            of_2(5, ends=LOST),
            of_2(11, lines=(rejected(24, -1, broker=2, offset=101),)),
            *(of_2(second, found=[MARKED_BY_2]) for second in (12, 13, 14, 141, 142)),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "marker-of-a-new-leader-and-no-state": Case(
        because="likewise, where the leader says that it knows nothing of the producer",
        observations=(
            ALONE,
            of_2(5, ends=LOST),
            of_2(11, lines=(expected_zero(24, broker=2, offset=101),)),
            of_2(12, found=[MARKED_BY_2], states=remembered(None)),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "batch-and-marker-of-one-leader-epoch": Case(
        because="what the transaction before it wrote is of the present epoch: all came later",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(3, -1),)),
            Observation(second=12, found=[found(batch(96, 0, 3), markers=(marker(99, epoch=1),))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "marker-of-an-older-producer-epoch": Case(
        because="an epoch is given out when the markers of the older ones are written",
        observations=(
            ALONE,
            of_2(5, ends=LOST),
            of_2(11, lines=(new_epoch(3, 1, broker=2, offset=101),)),
            of_2(12, found=[replace(MARKED_BY_2, batches=(OLD_BATCH,))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "reordering-behind-a-marker": Case(
        because="of transactions v1 the sequence goes on behind a marker: the batch decides",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(600, 2),)),
            Observation(second=12, found=[found(batch(96, 0, 3), markers=(marker(99),))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "loss-behind-a-marker": Case(
        because="likewise",
        observations=(
            ALONE,
            of_2(5, ends=LOST),
            of_2(11, lines=(rejected(27, 2, broker=2, offset=101),)),
            of_2(12, found=[replace(MARKED_BY_2, batches=(OLD_BATCH,))]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
}
