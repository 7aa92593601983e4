"""Rejections after a change of leader: what was acknowledged is gone, may be, or the client gave it up."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rules.facts.broker_log import (
    Origin,
    UncleanChange,
)
from rules.facts.identity import BrokerId
from tests.factories import at, topic_id
from tests.unit.rules.loss.replica_lines import elected
from tests.unit.rules.sequence.case_observations import (
    ALONE,
    CONFIRMED,
    OLD_BATCH,
    RETURNED,
    SEEMINGLY_CLEAN,
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

AFTER_CHANGES: Final = {
    "textbook-just-seen": Case(
        because="what the new leader lacks is proven, and nobody has observed whether it came since",
        observations=(ALONE, line_of_2()),
        says=("loss", SUSPECTED, "scan_pending"),
    ),
    "textbook": Case(
        because="expected 3, got 27: 24 records that broker 1 had acknowledged are gone",
        observations=(ALONE, line_of_2(), of_2(12, found=[found(OLD_BATCH)])),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "textbook-and-java-goes-on": Case(
        because="Java raises its epoch silently",
        observations=(
            ALONE,
            line_of_2(),
            of_2(12, found=[found(OLD_BATCH, batch(100, 0, 5, leader_epoch=6, epoch=1))]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "textbook-and-java-comes-to-the-same-number": Case(
        because="sequence 3 of the next epoch is not the missing one",
        observations=(
            ALONE,
            line_of_2(),
            of_2(
                12,
                found=[
                    found(
                        OLD_BATCH,
                        batch(100, 0, 3, leader_epoch=6, epoch=1),
                        batch(103, 3, 3, leader_epoch=6, epoch=1),
                    )
                ],
            ),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "loss-at-an-epoch's-start": Case(
        because="the same text as of a reordering, and the start never comes",
        observations=(
            ALONE,
            replace(line_of_2(), lines=(new_epoch(6, 1, broker=2),)),
            of_2(12, found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "loss-at-a-transaction's-start": Case(
        because="an aborted transaction that is followed by another one did not heal",
        observations=(
            ALONE,
            replace(line_of_2(), lines=(expected_zero(6, broker=2),)),
            of_2(
                12,
                found=[
                    found(
                        OLD_BATCH,
                        batch(101, 0, 9, leader_epoch=6, epoch=2),
                        markers=(marker(100, leader_epoch=6, epoch=2),),
                    )
                ],
            ),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "loss-of-all-that-a-producer-had": Case(
        because="the log has nothing of it, from before the change up to the rejection",
        observations=(
            ALONE,
            replace(line_of_2(), lines=(expected_zero(6, broker=2, offset=110),)),
            of_2(12, found=[found(observed=(50, 200))]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "the-old-leader's-line": Case(
        because="what broker 1 rejected before it died has nothing to do with its death",
        observations=(
            ALONE,
            replace(line_of_2(), lines=(rejected(6, 2),)),
            *(of_2(12 + n, found=[found(OLD_BATCH)]) for n in range(4)),
        ),
        says=("reordering", SUSPECTED, "changed_since"),
    ),
    "appended-after-the-loss": Case(
        because="a reordering after a loss is a reordering",
        observations=(
            ALONE,
            replace(line_of_2(), lines=(rejected(6, 2, broker=2, offset=110),)),
            of_2(12, found=[found(batch(105, 0, 3, leader_epoch=6))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "unclean-and-waiting": Case(
        because="a client tries again for two minutes",
        observations=(
            Observation(second=0, isr=(1,)),
            replace(line_of_2(4), lines=(*line_of_2(4).lines, elected())),
            of_2(12, found=[found(OLD_BATCH)]),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "unclean-and-unhealed": Case(
        because="what was appended after the last observation is gone: the gap bounds it",
        observations=(
            Observation(second=0, isr=(1,)),
            replace(line_of_2(4), lines=(*line_of_2(4).lines, elected())),
            of_2(12, found=[found(OLD_BATCH)]),
            of_2(11 + PATIENCE, found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
    "unclean-and-healed": Case(
        because="what was missing came within the time of a client",
        observations=(
            Observation(second=0, isr=(1,)),
            replace(line_of_2(4), ends=((0, 5, 100),)),
            of_2(12, found=[found(OLD_BATCH, batch(100, 3, 2, leader_epoch=6))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "not-known-how-it-was-elected": Case(
        because="nothing that was seen is missing, and the ISR may have shrunk unseen",
        observations=(
            Observation(second=0),
            Observation(
                second=11,
                leader=2,
                epoch=7,
                isr=(2,),
                ends=((0, 5, 100),),
                lines=(rejected(27, 2, broker=2),),
            ),
            Observation(second=12, leader=2, epoch=7, found=[found(OLD_BATCH)]),
            Observation(second=11 + PATIENCE, leader=2, epoch=7, found=[found(OLD_BATCH)]),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "the-controller's-line": Case(
        because="the controller says that the election was unclean, which the offsets do not",
        observations=(
            Observation(second=0),
            Observation(
                second=11,
                leader=2,
                epoch=7,
                ends=((0, 5, 100),),
                lines=(
                    rejected(27, 2, broker=2),
                    UncleanChange(
                        origin=Origin(source="controller", at=at(9)),
                        topic="orders",
                        partition=0,
                        topic_id=topic_id("orders"),
                        leader=BrokerId(2),
                        leader_epoch=7,
                    ),
                ),
            ),
            Observation(second=12, leader=2, epoch=7, found=[found(OLD_BATCH)]),
            Observation(second=11 + PATIENCE, leader=2, epoch=7, found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
    "clean-changes": Case(
        because="what was acknowledged is there: the client gave up a batch of its own",
        observations=(
            Observation(second=0, is_unclean_allowed=False),
            Observation(
                second=11,
                leader=2,
                epoch=6,
                is_unclean_allowed=False,
                ends=((0, 5, 100),),
                lines=(rejected(4, 2, broker=2),),
            ),
            Observation(second=12, leader=2, epoch=6, found=[found(OLD_BATCH)]),
        ),
        says=("client_failure", SUSPECTED, "clean_changes"),
    ),
    "seemingly-clean": Case(
        because="where elections may be unclean an ISR may shrink unseen in the time before",
        observations=SEEMINGLY_CLEAN,
        says=("loss", SUSPECTED, "seemingly_clean"),
    ),
    "seemingly-clean-and-a-small-gap": Case(
        because="nothing speaks for a loss",
        observations=(
            SEEMINGLY_CLEAN[0],
            replace(SEEMINGLY_CLEAN[1], lines=(rejected(4, 2, broker=2),)),
            SEEMINGLY_CLEAN[2],
        ),
        says=("client_failure", SUSPECTED, "seemingly_clean"),
    ),
    "seemingly-clean-and-the-old-leader-returns": Case(
        because="broker 1 cuts 24 records, and sets back its high watermark: they were committed",
        observations=(
            *SEEMINGLY_CLEAN,
            replace(SEEMINGLY_CLEAN[2], second=60, lines=RETURNED, found=()),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "changes-before-the-watch": Case(
        because="how broker 1 came to lead in epoch 5 was not seen",
        observations=(
            Observation(second=0),
            Observation(second=11, lines=(rejected(27, 2),)),
            Observation(second=12, found=[found(batch(97, 0, 3, leader_epoch=4))]),
        ),
        says=("loss", SUSPECTED, "changes_unseen"),
    ),
}
