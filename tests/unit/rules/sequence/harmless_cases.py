"""Batches that arrived in another order, were sent again, or begin above 0: nothing is missing."""

from __future__ import annotations

from typing import Final

from tests.unit.rules.sequence.case_observations import (
    ALONE,
    CONFIRMED,
    OLD_BATCH,
    REORDERED,
    SUSPECTED,
    Case,
    line_of_2,
    of_2,
)
from tests.unit.rules.sequence.lines import (
    BIGGEST,
    earliest_seen,
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
    remembered,
)

HARMLESS: Final = {
    "just-seen": Case(
        because="nobody has observed yet: the numbers suspect",
        observations=(Observation(second=0), REORDERED),
        says=("reordering", SUSPECTED, "small_gap"),
    ),
    "same-leader-epoch": Case(
        because="the last sequence was appended in the epoch that is still current",
        observations=(
            Observation(second=0),
            REORDERED,
            Observation(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "a-large-gap-in-the-same-epoch": Case(
        because="a leader loses nothing that it appended, however large the gap is",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(500, 2),)),
            Observation(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "filled": Case(
        because="what was missing came after the rejection, in the same producer epoch",
        observations=(
            Observation(second=0),
            REORDERED,
            Observation(
                second=12, found=[found(batch(97, 0, 3), batch(100, 3, 3), batch(103, 6, 3))]
            ),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "filled-after-a-change-of-leader": Case(
        because="nobody sends again what was acknowledged, whoever leads",
        observations=(
            ALONE,
            line_of_2(),
            of_2(12, found=[found(OLD_BATCH, batch(100, 3, 24, leader_epoch=6))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "bumped-in-the-same-epoch": Case(
        because="librdkafka raises its epoch after a healed reordering: continuity still proves it",
        observations=(
            Observation(second=0),
            REORDERED,
            Observation(second=12, found=[found(batch(97, 0, 3), batch(100, 0, 6, epoch=1))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "filled-by-the-state": Case(
        because="the leader remembered the last sequence after the rejection, and then a later one",
        observations=(
            Observation(second=0),
            REORDERED,
            Observation(second=12, states=remembered(2)),
            Observation(second=13, states=remembered(8)),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "another-epoch-in-the-state": Case(
        because="a raised epoch proves nothing",
        observations=(
            Observation(second=0),
            REORDERED,
            Observation(second=12, states=remembered(2)),
            Observation(second=13, states=remembered(8, epoch=1)),
        ),
        says=("reordering", SUSPECTED, "small_gap"),
    ),
    "moved-within-the-epoch": Case(
        because="it was another one before, while the leader stayed; the first is proven by the log",
        observations=(
            Observation(second=0),
            Observation(
                second=15,
                lines=(
                    rejected(6, 2, second=10, offset=100),
                    rejected(12, 8, second=12, offset=106),
                ),
            ),
            Observation(second=16, found=[found(batch(97, 0, 3), observed=(0, 101))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "first-leader-epoch": Case(
        because="a partition that never had another leader has lost nothing",
        observations=(
            Observation(second=0, epoch=0),
            Observation(second=11, epoch=0, lines=(rejected(27, 2),)),
            Observation(second=12, epoch=0),
        ),
        says=("reordering", CONFIRMED, "first_leader_epoch"),
    ),
    "earliest-seen": Case(
        because="the broker says itself that an earlier one came later",
        observations=(Observation(second=0), Observation(second=11, lines=(earliest_seen(3, 0),))),
        says=("reordering", CONFIRMED, "earliest_seen"),
    ),
    "over-the-wrap": Case(
        because="0 follows 2^31-1",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(2, BIGGEST),)),
            Observation(second=12, found=[found(batch(98, BIGGEST - 1, 2), batch(100, 0, 2))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "start-of-a-transaction": Case(
        because="the same text as of a lost start, and the start came",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(expected_zero(3),)),
            Observation(second=12, found=[found(batch(100, 0, 3), batch(103, 3, 3))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "starts-of-several-transactions": Case(
        because="brokers write the same text and numbers for each transaction of a healthy producer",
        observations=(
            Observation(second=0),
            *(
                Observation(
                    second=11 + n, lines=(expected_zero(8, second=10 + n, offset=100 + 10 * n),)
                )
                for n in range(6)
            ),
        ),
        says=("reordering", SUSPECTED, "transaction_start"),
    ),
    "start-of-a-transaction-that-does-not-come": Case(
        because="the same transaction again and again, wherever others write: nothing is lost yet",
        observations=(
            Observation(second=0),
            *(
                Observation(
                    second=11 + n,
                    lines=(expected_zero(8, second=10 + n, offset=100 + 10 * n),),
                    found=[found(batch(90, 0), markers=(marker(91, epoch=1),))] if n else (),
                    states=remembered(None, epoch=1) if n else None,
                )
                for n in range(6)
            ),
            Observation(
                second=17,
                found=[found(batch(90, 0), markers=(marker(91, epoch=1),))],
                states=remembered(None, epoch=1),
            ),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "start-of-an-epoch": Case(
        because="the new epoch came in order after all",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(new_epoch(3, 1),)),
            Observation(second=12, found=[found(batch(97, 0, 3), batch(100, 0, 6, epoch=1))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "after-a-marker": Case(
        because="the epoch of the last marker is the one of the next transaction",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(3, -1),)),
            Observation(
                second=12,
                found=[found(batch(100, 0, 6, epoch=1), markers=(marker(99, epoch=1),))],
            ),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "stale-retry": Case(
        because="the rejected batch is in the log",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(0, 5),)),
            Observation(second=12, found=[found(*(batch(94 + n, n) for n in range(6)))]),
        ),
        says=("stale_retry", CONFIRMED, "persisted"),
    ),
    "stale-retry-compacted": Case(
        because="the last one was appended in this leader epoch, and what is behind it before",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(0, 5),)),
            Observation(second=12, found=[found(batch(99, 5))]),
        ),
        says=("stale_retry", CONFIRMED, "same_leader_epoch"),
    ),
    "stale-retry-after-a-loss": Case(
        because="what is behind is there, whatever was lost",
        observations=(
            ALONE,
            line_of_2(0, 5),
            of_2(12, found=[found(*(batch(94 + n, n) for n in range(6)))]),
        ),
        says=("stale_retry", CONFIRMED, "persisted"),
    ),
    "epochs-above-zero": Case(
        because="two new epochs began above 0 and nothing was lost: the client does not begin anew",
        observations=(
            Observation(second=0),
            Observation(
                second=11, lines=(new_epoch(5, 1), new_epoch(7, 2, second=10.5, current_epoch=0))
            ),
            Observation(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("sequence_restart", CONFIRMED, "epochs_above_zero"),
    ),
    "epochs-that-were-overtaken-at-their-start": Case(
        because="each epoch was accepted before the next one began: the client does begin anew",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(new_epoch(5, 1), new_epoch(7, 2, second=10.5))),
            Observation(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "one-epoch-above-zero-again-and-again": Case(
        because="it may still heal",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=[new_epoch(5, 1, second=7 + n) for n in range(4)]),
            Observation(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("reordering", SUSPECTED, "same_leader_epoch"),
    ),
    "one-epoch-above-zero-for-good": Case(
        because="it did not heal in the time of a client",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=[new_epoch(5, 1, second=7 + n) for n in range(4)]),
            Observation(second=12, found=[found(batch(97, 0, 3))]),
            Observation(second=11 + PATIENCE),
            Observation(second=12 + PATIENCE, found=[found(batch(97, 0, 3))]),
        ),
        says=("sequence_restart", CONFIRMED, "epochs_above_zero"),
    ),
}
