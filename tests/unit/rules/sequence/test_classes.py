"""A case per class: what the rounds saw, and what has to be said of the episode.

Producer 7 writes to orders-0. Its last accepted sequence stands at offset 99 or below, and the
refused batch would have got offset 100.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import pytest

from rules.facts.broker_log import (
    FollowerStarted,
    LogEvent,
    LogTruncated,
    Origin,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import BrokerId
from rules.facts.sequence_verdicts import Phase, SequenceClass
from tests.factories import at, gap, partitions, topic_id, unseen_offsets
from tests.unit.rules.sequence.lines import (
    BIGGEST,
    earliest_seen,
    expected_zero,
    new_epoch,
    refused,
)
from tests.unit.rules.sequence.stage import (
    PATIENCE,
    Look,
    batch,
    found,
    marker,
    play,
    remembered,
    verdict,
    watched,
)

CONFIRMED, SUSPECTED = "confirmed", "suspected"
NOT_READABLE: Final = gap(scope=GapScope.BATCHES, cause=GapCause.NOT_AUTHORIZED)
SILENT: Final = gap(scope=GapScope.BATCHES, cause=GapCause.TIMEOUT)
ALONE: Final = Look(second=0, isr=(1,), end=124)  # broker 1 alone has what it acknowledged
LOST: Final = ((0, 5, 100),)  # broker 2 says that epoch 5 ended at 100: 24 offsets are gone


def line_of_2(incoming: int = 27, current: int = 2, *, second: float = 10.0) -> Look:
    """Return the round in which broker 2 leads and refuses the next batch; 24 offsets are lost."""
    refusal = refused(incoming, current, broker=2, second=second)
    return Look(second=second + 1, leader=2, epoch=6, isr=(2,), ends=LOST, lines=(refusal,))


def of_2(second: float, **more: object) -> Look:
    """Return a later round in which broker 2 leads."""
    return Look(second=second, leader=2, epoch=6, isr=(2,), **more)  # type: ignore[arg-type]


OLD_BATCH: Final = batch(97, 0, 3)  # sequences 0 to 2, of leader epoch 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the rounds saw, and what is said after the last one."""

    because: str
    looks: tuple[Look, ...]
    says: tuple[str, str, str]  # class, phase, reason


RETURNED: Final = (
    FollowerStarted(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(50)),
        topic="orders",
        partition=0,
        leader_epoch=6,
        log_end_offset=124,
        high_watermark=124,
        leader=BrokerId(2),
    ),
    LogTruncated(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(50.1)),
        topic="orders",
        partition=0,
        offset=100,
        epoch=5,
        epoch_end=100,
    ),
    WatermarkWentBack(
        origin=Origin(source="broker-1", broker_id=BrokerId(1), at=at(50.1)),
        topic="orders",
        partition=0,
        offset_before=124,
        offset=100,
    ),
)
SEEMINGLY_CLEAN: Final = (
    Look(second=0),
    Look(second=11, leader=2, epoch=6, ends=LOST, lines=(refused(27, 2, broker=2),)),
    Look(second=12, leader=2, epoch=6, found=[found(OLD_BATCH)]),
)
REORDERED: Final = Look(second=11, lines=(refused(6, 2),))
CASES: Final = {
    # ---------------------------------------------------------------- reordering
    "just-seen": Case(
        because="nobody has looked yet: the numbers suspect",
        looks=(Look(second=0), REORDERED),
        says=("reordering", SUSPECTED, "small_gap"),
    ),
    "same-leader-epoch": Case(
        because="the last sequence was appended in the epoch that is still current",
        looks=(Look(second=0), REORDERED, Look(second=12, found=[found(batch(97, 0, 3))])),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "a-large-gap-in-the-same-epoch": Case(
        because="a leader loses nothing that it appended, however large the gap is",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(500, 2),)),
            Look(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "filled": Case(
        because="what was missing came after the refusal, in the same producer epoch",
        looks=(
            Look(second=0),
            REORDERED,
            Look(second=12, found=[found(batch(97, 0, 3), batch(100, 3, 3), batch(103, 6, 3))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "filled-after-a-change-of-leader": Case(
        because="nobody sends again what was acknowledged, whoever leads",
        looks=(
            ALONE,
            line_of_2(),
            of_2(12, found=[found(OLD_BATCH, batch(100, 3, 24, leader_epoch=6))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "bumped-in-the-same-epoch": Case(
        because="librdkafka raises its epoch after a healed reordering: continuity still proves it",
        looks=(
            Look(second=0),
            REORDERED,
            Look(second=12, found=[found(batch(97, 0, 3), batch(100, 0, 6, epoch=1))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "filled-by-the-state": Case(
        because="the leader remembered the last sequence after the refusal, and then a later one",
        looks=(
            Look(second=0),
            REORDERED,
            Look(second=12, states=remembered(2)),
            Look(second=13, states=remembered(8)),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "another-epoch-in-the-state": Case(
        because="a raised epoch proves nothing",
        looks=(
            Look(second=0),
            REORDERED,
            Look(second=12, states=remembered(2)),
            Look(second=13, states=remembered(8, epoch=1)),
        ),
        says=("reordering", SUSPECTED, "small_gap"),
    ),
    "moved-within-the-epoch": Case(
        because="it was another one before, while the leader stayed; the first is proven by the log",
        looks=(
            Look(second=0),
            Look(
                second=15,
                lines=(
                    refused(6, 2, second=10, offset=100),
                    refused(12, 8, second=12, offset=106),
                ),
            ),
            Look(second=16, found=[found(batch(97, 0, 3), looked=(0, 101))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "first-leader-epoch": Case(
        because="a partition that never had another leader has lost nothing",
        looks=(
            Look(second=0, epoch=0),
            Look(second=11, epoch=0, lines=(refused(27, 2),)),
            Look(second=12, epoch=0),
        ),
        says=("reordering", CONFIRMED, "first_leader_epoch"),
    ),
    "earliest-seen": Case(
        because="the broker says itself that an earlier one came later",
        looks=(Look(second=0), Look(second=11, lines=(earliest_seen(3, 0),))),
        says=("reordering", CONFIRMED, "earliest_seen"),
    ),
    "over-the-wrap": Case(
        because="0 follows 2^31-1",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(2, BIGGEST),)),
            Look(second=12, found=[found(batch(98, BIGGEST - 1, 2), batch(100, 0, 2))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "start-of-a-transaction": Case(
        because="the same text as of a lost start, and the start came",
        looks=(
            Look(second=0),
            Look(second=11, lines=(expected_zero(3),)),
            Look(second=12, found=[found(batch(100, 0, 3), batch(103, 3, 3))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "start-of-an-epoch": Case(
        because="the new epoch came in order after all",
        looks=(
            Look(second=0),
            Look(second=11, lines=(new_epoch(3, 1),)),
            Look(second=12, found=[found(batch(97, 0, 3), batch(100, 0, 6, epoch=1))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "after-a-marker": Case(
        because="the epoch of the last marker is the one of the next transaction",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(3, -1),)),
            Look(
                second=12,
                found=[found(batch(100, 0, 6, epoch=1), markers=(marker(99, epoch=1),))],
            ),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    # ---------------------------------------------------------------- loss
    "textbook-just-seen": Case(
        because="what the new leader lacks is proven, and nobody has looked whether it came since",
        looks=(ALONE, line_of_2()),
        says=("loss", SUSPECTED, "looking"),
    ),
    "textbook": Case(
        because="expected 3, got 27: 24 records that broker 1 had acknowledged are gone",
        looks=(ALONE, line_of_2(), of_2(12, found=[found(OLD_BATCH)])),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "textbook-and-java-goes-on": Case(
        because="Java raises its epoch and tells nobody",
        looks=(
            ALONE,
            line_of_2(),
            of_2(12, found=[found(OLD_BATCH, batch(100, 0, 5, leader_epoch=6, epoch=1))]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "textbook-and-java-comes-to-the-same-number": Case(
        because="sequence 3 of the next epoch is not the missing one",
        looks=(
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
        looks=(
            ALONE,
            replace(line_of_2(), lines=(new_epoch(6, 1, broker=2),)),
            of_2(12, found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "loss-at-a-transaction's-start": Case(
        because="an aborted transaction that is followed by another one did not heal",
        looks=(
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
        because="the log has nothing of it, from before the change up to the refusal",
        looks=(
            ALONE,
            replace(line_of_2(), lines=(expected_zero(6, broker=2, offset=110),)),
            of_2(12, found=[found(looked=(50, 200))]),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "the-old-leader's-line": Case(
        because="what broker 1 refused before it died has nothing to do with its death",
        looks=(
            ALONE,
            replace(line_of_2(), lines=(refused(6, 2),)),
            *(of_2(12 + n, found=[found(OLD_BATCH)]) for n in range(4)),
        ),
        says=("reordering", SUSPECTED, "changed_since"),
    ),
    "appended-after-the-loss": Case(
        because="a reordering after a loss is a reordering",
        looks=(
            ALONE,
            replace(line_of_2(), lines=(refused(6, 2, broker=2, offset=110),)),
            of_2(12, found=[found(batch(105, 0, 3, leader_epoch=6))]),
        ),
        says=("reordering", CONFIRMED, "same_leader_epoch"),
    ),
    "unclean-and-waiting": Case(
        because="a client tries again for two minutes",
        looks=(
            Look(second=0, isr=(1,)),
            replace(line_of_2(4), ends=((0, 5, 100),)),
            of_2(12, found=[found(OLD_BATCH)]),
        ),
        says=("loss", SUSPECTED, "unclean_change"),
    ),
    "unclean-and-unhealed": Case(
        because="what was appended after the last look is gone: the gap bounds it",
        looks=(
            Look(second=0, isr=(1,)),
            replace(line_of_2(4), ends=((0, 5, 100),)),
            of_2(12, found=[found(OLD_BATCH)]),
            of_2(11 + PATIENCE, found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
    "unclean-and-healed": Case(
        because="what was missing came within the time of a client",
        looks=(
            Look(second=0, isr=(1,)),
            replace(line_of_2(4), ends=((0, 5, 100),)),
            of_2(12, found=[found(OLD_BATCH, batch(100, 3, 2, leader_epoch=6))]),
        ),
        says=("reordering", CONFIRMED, "filled"),
    ),
    "not-known-how-it-was-elected": Case(
        because="nothing that was seen is missing, and the ISR may have shrunk unseen",
        looks=(
            Look(second=0),
            Look(
                second=11,
                leader=2,
                epoch=7,
                ends=((0, 5, 100),),
                lines=(refused(27, 2, broker=2),),
            ),
            Look(second=12, leader=2, epoch=7, found=[found(OLD_BATCH)]),
            Look(second=11 + PATIENCE, leader=2, epoch=7, found=[found(OLD_BATCH)]),
        ),
        says=("loss", SUSPECTED, "change_not_known"),
    ),
    "the-controller's-line": Case(
        because="the controller says that the election was unclean, which the offsets do not",
        looks=(
            Look(second=0),
            Look(
                second=11,
                leader=2,
                epoch=7,
                ends=((0, 5, 100),),
                lines=(
                    refused(27, 2, broker=2),
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
            Look(second=12, leader=2, epoch=7, found=[found(OLD_BATCH)]),
            Look(second=11 + PATIENCE, leader=2, epoch=7, found=[found(OLD_BATCH)]),
        ),
        says=("loss", CONFIRMED, "unclean_and_unhealed"),
    ),
    # ---------------------------------------------------------------- the client's own
    "clean-changes": Case(
        because="what was acknowledged is there: the client gave up a batch of its own",
        looks=(
            Look(second=0, is_unclean_allowed=False),
            Look(
                second=11,
                leader=2,
                epoch=6,
                is_unclean_allowed=False,
                ends=((0, 5, 100),),
                lines=(refused(4, 2, broker=2),),
            ),
            Look(second=12, leader=2, epoch=6, found=[found(OLD_BATCH)]),
        ),
        says=("client_failure", SUSPECTED, "clean_changes"),
    ),
    "seemingly-clean": Case(
        because="where elections may be unclean an ISR may shrink unseen in the moment before",
        looks=SEEMINGLY_CLEAN,
        says=("loss", SUSPECTED, "seemingly_clean"),
    ),
    "seemingly-clean-and-a-small-gap": Case(
        because="nothing speaks for a loss",
        looks=(
            SEEMINGLY_CLEAN[0],
            replace(SEEMINGLY_CLEAN[1], lines=(refused(4, 2, broker=2),)),
            SEEMINGLY_CLEAN[2],
        ),
        says=("client_failure", SUSPECTED, "seemingly_clean"),
    ),
    "seemingly-clean-and-the-old-leader-returns": Case(
        because="broker 1 cuts 24 records, and sets back its high watermark: they were committed",
        looks=(
            *SEEMINGLY_CLEAN,
            replace(SEEMINGLY_CLEAN[2], second=60, lines=RETURNED, found=()),
        ),
        says=("loss", CONFIRMED, "loss_proven"),
    ),
    "changes-before-the-watch": Case(
        because="how broker 1 came to lead in epoch 5 was not seen",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(27, 2),)),
            Look(second=12, found=[found(batch(97, 0, 3, leader_epoch=4))]),
        ),
        says=("loss", SUSPECTED, "changes_unseen"),
    ),
    # ---------------------------------------------------------------- behind
    "stale-retry": Case(
        because="the refused batch is in the log",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(0, 5),)),
            Look(second=12, found=[found(*(batch(94 + n, n) for n in range(6)))]),
        ),
        says=("stale_retry", CONFIRMED, "persisted"),
    ),
    "stale-retry-compacted": Case(
        because="the last one was appended in this leader epoch, and what is behind it before",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(0, 5),)),
            Look(second=12, found=[found(batch(99, 5))]),
        ),
        says=("stale_retry", CONFIRMED, "same_leader_epoch"),
    ),
    "stale-retry-after-a-loss": Case(
        because="what is behind is there, whatever was lost",
        looks=(
            ALONE,
            line_of_2(0, 5),
            of_2(12, found=[found(*(batch(94 + n, n) for n in range(6)))]),
        ),
        says=("stale_retry", CONFIRMED, "persisted"),
    ),
    # ---------------------------------------------------------------- starting above 0
    "epochs-above-zero": Case(
        because="two new epochs began above 0 and nothing was lost: the client does not begin anew",
        looks=(
            Look(second=0),
            Look(second=11, lines=(new_epoch(5, 1), new_epoch(7, 2, second=10.5))),
            Look(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("sequence_restart", CONFIRMED, "epochs_above_zero"),
    ),
    "one-epoch-above-zero-again-and-again": Case(
        because="it may still heal",
        looks=(
            Look(second=0),
            Look(second=11, lines=[new_epoch(5, 1, second=7 + n) for n in range(4)]),
            Look(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("reordering", SUSPECTED, "same_leader_epoch"),
    ),
    "one-epoch-above-zero-for-good": Case(
        because="it did not heal in the time of a client",
        looks=(
            Look(second=0),
            Look(second=11, lines=[new_epoch(5, 1, second=7 + n) for n in range(4)]),
            Look(second=12, found=[found(batch(97, 0, 3))]),
            Look(second=11 + PATIENCE),
            Look(second=12 + PATIENCE, found=[found(batch(97, 0, 3))]),
        ),
        says=("sequence_restart", CONFIRMED, "epochs_above_zero"),
    ),
    # ---------------------------------------------------------------- the state is gone
    "no-state": Case(
        because="it may still come in order",
        looks=(
            Look(second=0),
            Look(second=11, lines=(expected_zero(7),)),
            Look(second=12, states={}, found=[found()]),
        ),
        says=("producer_state_lost", SUSPECTED, "healing"),
    ),
    "no-state-in-the-first-leader-epoch": Case(
        because="nothing is lost, and yet the producer cannot go on",
        looks=(
            Look(second=0, epoch=0),
            Look(second=11, epoch=0, lines=(expected_zero(7),)),
            Look(second=12, epoch=0, states={}, found=[found()]),
            Look(second=11 + PATIENCE, epoch=0),
            Look(second=12 + PATIENCE, epoch=0, states={}, found=[found()]),
        ),
        says=("producer_state_lost", CONFIRMED, "no_state"),
    ),
    "no-state-for-good": Case(
        because="it did not come within the time of a client",
        looks=(
            Look(second=0),
            Look(second=11, lines=(expected_zero(7),)),
            Look(second=12, states={}, found=[found()]),
            Look(second=11 + PATIENCE),
            Look(second=12 + PATIENCE, states={}, found=[found()]),
        ),
        says=("producer_state_lost", CONFIRMED, "no_state"),
    ),
    # ---------------------------------------------------------------- what is missing
    "no-offsets": Case(
        because="there is only the line: nothing can be proven",
        looks=tuple(
            Look(second=second, lines=lines, more={"partitions": partitions({"other": 1})})
            for second, lines in ((0, ()), (11, (refused(27, 2),)), (12, ()), (300, ()))
        ),
        says=("loss", SUSPECTED, "partition_not_seen"),
    ),
    "no-offsets-and-a-small-gap": Case(
        because="nothing speaks for a loss, and nothing is proven",
        looks=tuple(
            Look(second=second, lines=lines, more={"partitions": partitions({"other": 1})})
            for second, lines in ((0, ()), (11, (refused(4, 2),)), (12, ()), (300, ()))
        ),
        says=("undetermined", SUSPECTED, "partition_not_seen"),
    ),
    "leader-away": Case(
        because="the leader tells no epoch",
        looks=(
            Look(second=0),
            REORDERED,
            Look(second=12, more={"offsets": unseen_offsets(1)}),
        ),
        says=("reordering", SUSPECTED, "partition_not_seen"),
    ),
    "no-read": Case(
        because="without READ it stays open in which epoch the last batch was appended",
        looks=(
            Look(second=0),
            REORDERED,
            *(Look(second=12 + n, gaps=(NOT_READABLE,)) for n in range(4)),
            *(Look(second=12 + PATIENCE + n, gaps=(NOT_READABLE,)) for n in range(5)),
        ),
        says=("undetermined", SUSPECTED, "not_readable"),
    ),
    "no-read-and-a-loss": Case(
        because="what is lost is proven by itself; that it is this producer's is suspected",
        looks=(ALONE, line_of_2(), *(of_2(12 + n, gaps=(NOT_READABLE,)) for n in range(4))),
        says=("loss", SUSPECTED, "not_readable"),
    ),
    "leader-does-not-answer": Case(
        because="the leader did not tell its batches",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(27, 2),)),
            *(Look(second=12 + n, gaps=(SILENT,)) for n in range(4)),
        ),
        says=("loss", SUSPECTED, "look_failed"),
    ),
    "batch-not-found": Case(
        because="the last batch is not where it was looked for",
        looks=(
            Look(second=0),
            REORDERED,
            *(Look(second=12 + n, found=[found()]) for n in range(4)),
            *(Look(second=12 + PATIENCE + n, found=[found()]) for n in range(5)),
        ),
        says=("undetermined", SUSPECTED, "batch_not_found"),
    ),
    "topic-recreated": Case(
        because="the line is of a topic that is gone",
        looks=(
            Look(second=0),
            Look(second=11, lines=(refused(27, 2, topic_id=topic_id("orders", creation=1)),)),
            Look(second=12, found=[found(batch(97, 0, 3))]),
        ),
        says=("loss", SUSPECTED, "topic_recreated"),
    ),
    "partition-not-told": Case(
        because="a broker before 2.2 does not tell it",
        looks=(Look(second=0), Look(second=11, lines=(refused(27, 2, topic=None),))),
        says=("loss", SUSPECTED, "partition_not_told"),
    ),
    "producer-not-told": Case(
        because="a broker before 2.2 does not tell it either",
        looks=(Look(second=0), Look(second=11, lines=(new_epoch(3, 1, producer_id=None),))),
        says=("reordering", SUSPECTED, "producer_not_told"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case) -> None:
    assert verdict(*case.looks) == case.says, case.because


@pytest.mark.parametrize("name", CASES)
def test_a_loss_is_bounded_by_its_gap_and_nothing_else_is(name: str) -> None:
    for view in play(CASES[name].looks):
        for episode in view.memory.sequences.episodes:
            is_loss = episode.verdict.class_ is SequenceClass.LOSS
            assert (episode.verdict.at_most_records is not None) == is_loss


def test_the_textbook_case_says_24() -> None:
    episode = watched(ALONE, line_of_2(), of_2(12, found=[found(OLD_BATCH)]))
    said = episode.verdict
    assert (said.lost_from, said.lost_to, said.lost_offsets) == (100, 124, 24)
    assert said.at_most_records == 24
    assert not episode.is_asking


def test_an_old_leader_that_returns_tells_the_exact_range() -> None:
    said = watched(*CASES["seemingly-clean-and-the-old-leader-returns"].looks).verdict
    assert (said.lost_from, said.lost_to, said.lost_offsets) == (100, 124, 24)
    looks = [*CASES["textbook"].looks, of_2(60, lines=_returned_with(130))]
    said = watched(*looks).verdict
    assert (said.lost_from, said.lost_to) == (100, 130)


def _returned_with(end: int) -> tuple[LogEvent, ...]:
    return replace(RETURNED[0], log_end_offset=end), *RETURNED[1:]


def test_an_unclean_change_bounds_a_loss_by_the_gap_alone() -> None:
    said = watched(*CASES["unclean-and-unhealed"].looks).verdict
    assert (said.lost_offsets, said.at_most_records) == (None, 1)


def test_a_loss_and_a_later_reordering_are_a_loss() -> None:
    """Java raises its epoch after a true loss, goes on, and then a batch overtakes another."""
    later = refused(12, 8, broker=2, second=30, offset=120)
    again = batch(100, 0, 9, leader_epoch=6, epoch=1)
    looks = (
        ALONE,
        line_of_2(),
        of_2(12, found=[found(OLD_BATCH)]),
        of_2(31, lines=(later,)),
        of_2(32, found=[found(OLD_BATCH, again)]),
    )
    episode = watched(*looks)
    assert episode.verdict.class_ is SequenceClass.LOSS
    assert [one.proof for one in episode.refusals] == [None, "same_leader_epoch"]


def test_exactly_one_failing_producer_makes_it_the_client_s() -> None:
    for name in ("same-leader-epoch", "clean-changes"):
        [episode] = play(CASES[name].looks, lambda *_: "producer-1")[-1].memory.sequences.episodes
        assert episode.verdict.class_ is SequenceClass.CLIENT_FAILURE
        assert episode.verdict.phase is Phase.CONFIRMED
    for name in (
        "filled",
        "textbook",
        "seemingly-clean-and-a-small-gap",
        "stale-retry",
        "epochs-above-zero",
        "just-seen",
    ):
        [episode] = play(CASES[name].looks, lambda *_: "producer-1")[-1].memory.sequences.episodes
        assert (episode.verdict.class_, episode.verdict.reason) == (
            CASES[name].says[0],
            CASES[name].says[2],
        )


def test_two_producers_on_one_partition_are_two_episodes() -> None:
    lines = (refused(27, 2), refused(6, 2, producer_id=8))
    views = play(
        [
            Look(second=0),
            Look(second=11, lines=lines),
            Look(second=12, found=[found(batch(97, 0, 3), producer_id=8)]),
        ]
    )
    said = {one.producer_id: one.verdict.reason for one in views[-1].memory.sequences.episodes}
    assert said == {7: "large_gap", 8: "same_leader_epoch"}


def test_batches_of_a_hundred_make_a_gap_of_300_small() -> None:
    late = batch(0, 0, 100, leader_epoch=4)
    episode = watched(
        Look(second=0),
        Look(second=11, lines=(refused(400, 99),)),
        Look(second=12, found=[found(late, largest=100)]),
    )
    assert episode.largest_batch == 100
    assert episode.verdict.class_ is SequenceClass.REORDERING


def test_what_is_unseen_is_never_confirmed() -> None:
    unseen = Look(second=12, leader=None, epoch=None, more={"offsets": unseen_offsets(1)})
    said = watched(Look(second=0), REORDERED, replace(unseen, found=[found(batch(97, 0, 3))]))
    assert not said.verdict.is_confirmed
