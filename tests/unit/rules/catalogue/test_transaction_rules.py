"""Case tables of the rules that judge what holds a last stable offset, partition by partition.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest

from rules.catalogue import (
    read_committed_consumers_blocked,
    transaction_hanging,
    transaction_marker_stuck,
)
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.transactions import NO_TIMEOUT, Sight, Transaction, TransactionState
from rules.judgement import Finding
from rules.question import ProducersQuestion
from rules.verdict import Verdict
from tests.factories import (
    NOON,
    at,
    commits,
    gap,
    group,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    topic_id,
    transaction,
    transactions,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import Case, Judge, judged, rounds, view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
ELSEWHERE: Final = frozenset({TopicPartition("orders", 5)})
NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()
HELD: Final = offsets(1, last_stable_offset=[90])
EMPTY: Final = transaction(state=TransactionState.EMPTY, partitions=NO_PARTITIONS)


def held(*listed: Transaction, looked: bool = True, **more: Any) -> dict[str, Any]:
    """Return a look at a partition whose LSO stands at 90, where producer 7's transaction begins.

    `listed` is what coordinators list; they were asked for producer 7 by its number too.
    """
    asked: dict[str, Any] = {"looked_up": frozenset({7})}
    asked |= {
        name: more.pop(name) for name in ("sight", "is_complete", "looked_up") if name in more
    }
    return {
        "offsets": HELD,
        "transactions": transactions(*listed, **asked),
        "producers": producers(open_producer(), rows=1) if looked else producers(rows=1),
        **more,
    }


COORDINATOR_AWAY: Final = gap(scope=GapScope.TRANSACTIONS, cause=GapCause.TIMEOUT)

HANGING = [
    Case(
        id="nothing-open",
        because="nothing is held",
        verdict=OK,
        reason="not_held",
    ),
    Case(
        id="seen-once",
        because="requests are not atomic: it may have ended a moment later",
        looks=(held(EMPTY),),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="listed-as-empty",
        because="the usual form on Kafka 4: its coordinator knows the producer as Empty",
        looks=(held(EMPTY), held(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="open-elsewhere",
        because="its producer's present transaction is on another partition",
        looks=(held(transaction(partitions=ELSEWHERE)),) * 2,
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="unknown-to-all",
        because="every coordinator answered, and we see every id",
        looks=(held(), held()),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="asked-by-number-later",
        because="before its id was asked for only open transactions were listed",
        looks=(held(looked_up=frozenset()), held(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="not-asked-by-number",
        because="an open transaction is listed whether or not its producer was asked for",
        looks=(held(looked_up=frozenset()),) * 2,
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="permission-unproven",
        because="what is not listed may be an id that we may not see",
        looks=(held(sight=Sight.UNPROVEN),) * 3,
        verdict=UNKNOWN,
        reason="permission_unproven",
    ),
    Case(
        id="visible-all-the-same",
        because="an id that is listed is one that we see: no further proof is needed",
        looks=(held(EMPTY, sight=Sight.UNPROVEN),) * 2,
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="coordinator-paused",
        because="the coordinator that gave no answer may know it",
        looks=(held(is_complete=False, gaps=(COORDINATOR_AWAY,)),) * 3,
        verdict=UNKNOWN,
        reason="coordinator_not_seen",
    ),
    Case(
        id="coordinator-paused-once",
        because="a round in which one coordinator gave no answer proves nothing: one is left",
        looks=(held(is_complete=False, gaps=(COORDINATOR_AWAY,)), held()),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="coordinator-paused-in-between",
        because="two rounds prove it, whatever one between them could not tell",
        looks=(held(), held(is_complete=False, gaps=(COORDINATOR_AWAY,)), held()),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="old-coordinator-answers",
        because="what says Empty may be a coordinator that has not heard that it is none any more",
        looks=(held(EMPTY, is_complete=False, gaps=(COORDINATOR_AWAY,)),) * 3,
        verdict=UNKNOWN,
        reason="coordinator_not_seen",
    ),
    Case(
        id="state-of-a-newer-broker",
        because="what a state means that we do not know, nobody can tell",
        looks=(held(transaction(state=TransactionState.UNKNOWN)),) * 3,
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="looks-within-a-moment",
        because="two looks in a blink lie within one move of a coordinator",
        looks=(held(EMPTY), held(EMPTY)),
        seconds=0.1,
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="short-ones-behind-a-long-one",
        because="what begins behind the LSO between two requests is on no list yet",
        looks=tuple(
            held(
                transaction(timeout=timedelta(hours=1)),
                producers=producers(
                    open_producer(),
                    open_producer(producer_id=8, start_offset=91 + number),
                    rows=1,
                ),
            )
            for number in range(3)
        ),
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="nobody-for-long",
        because="it stands, and nobody has a transaction open there",
        looks=(held(producers=producers(rows=1, looked=[0])),) * 3,
        verdict=UNKNOWN,
        reason="nobody_found",
    ),
    Case(
        id="nobody-for-a-moment",
        because="it ended between two requests",
        looks=(held(producers=producers(rows=1, looked=[0])),),
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="not-described",
        because="a coordinator lists it, and its partitions are not known",
        looks=(held(transaction(partitions=None)),) * 3,
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="open-in-time",
        because="its coordinator lists the partition",
        looks=(held(transaction()),) * 2,
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="overdue",
        because="its coordinator will abort it",
        looks=(held(transaction(started_at=at(-300))),) * 2,
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="being-aborted",
        because="the marker carries a higher epoch than the open transaction",
        looks=(held(transaction(state=TransactionState.PREPARE_ABORT, producer_epoch=4)),) * 2,
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="ended-between",
        because="the second look shows another transaction of the same producer",
        looks=(
            held(EMPTY),
            held(
                EMPTY,
                offsets=offsets(1, last_stable_offset=[95]),
                producers=producers(open_producer(start_offset=95), rows=1),
            ),
        ),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="listed-in-between",
        because="a coordinator listed the partition when it was asked again",
        looks=(held(EMPTY), held(transaction()), held(EMPTY)),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="not-looked-at-after-it-was-seen",
        because="a look that failed ends nothing",
        looks=(held(EMPTY), held(EMPTY), held(EMPTY, looked=False)),
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="seen-again-after-a-failed-look",
        because="it is still the same open transaction",
        looks=(held(EMPTY), held(EMPTY), held(EMPTY, looked=False), held(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="may-not-be-looked-at",
        because="without READ on the topic nobody knows who holds it",
        looks=(held(looked=False),) * 3,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="only-just-open",
        because="it was not due to be looked at: a healthy load opens transactions all the time",
        looks=(held(looked=False),),
        verdict=OK,
        reason="not_held",
    ),
    Case(
        id="repaired",
        because="nothing is held any more",
        looks=(held(EMPTY), held(EMPTY), {}),
        verdict=OK,
        reason="not_held",
    ),
    Case(
        id="leader-unreachable",
        because="nobody tells whether it is still there",
        looks=(held(EMPTY), held(EMPTY), {"offsets": unseen_offsets(1)}),
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="created-again",
        because="the same offset of another topic is another transaction",
        looks=(
            held(EMPTY),
            held(
                EMPTY, partitions=partitions({"orders": 1}, topic_ids=(topic_id("o", creation=1),))
            ),
        ),
        verdict=UNKNOWN,
        reason="confirming",
    ),
]

PREPARED = transaction(state=TransactionState.PREPARE_COMMIT)
UNDESCRIBED = transaction(
    state=TransactionState.PREPARE_COMMIT, partitions=None, started_at=None, timeout=None
)
ABORTING = transaction(state=TransactionState.PREPARE_ABORT)
UNREPLICATED: Final = {
    "offsets": offsets(1, last_stable_offset=[90], high_watermark=[95]),
    "producers": producers(rows=1, looked=[0]),
}

MARKER = [
    Case(id="nothing-due", because="nothing is decided", verdict=OK, reason="nothing_due"),
    Case(
        id="just-decided",
        because="markers take a moment",
        looks=({}, held(PREPARED)),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="decided-when-tidemark-began",
        because="since when it waits is not known",
        looks=(held(PREPARED),),
        verdict=UNKNOWN,
        reason="first_look",
    ),
    Case(
        id="commit-stuck",
        because="half a minute is a thousand times what a marker takes",
        looks=({}, held(PREPARED), held(PREPARED)),
        seconds=30,
        verdict=BREACH,
        reason="prepare_commit",
    ),
    Case(
        id="abort-stuck",
        because="an abort's marker is as necessary as a commit's",
        looks=({}, held(ABORTING), held(ABORTING)),
        seconds=30,
        verdict=BREACH,
        reason="prepare_abort",
    ),
    Case(
        id="other-partitions-marker",
        because="this partition's marker is written, another's is not",
        looks=({},)
        + (held(transaction(state=TransactionState.PREPARE_COMMIT, partitions=ELSEWHERE)),) * 2,
        seconds=30,
        verdict=OK,
        reason="nothing_due",
    ),
    Case(
        id="next-transaction",
        because="each transaction has its own half minute",
        looks=(
            {},
            held(PREPARED),
            held(transaction(state=TransactionState.PREPARE_COMMIT, started_at=at(20))),
        ),
        seconds=30,
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="coordinator-away",
        because="the marker was due when the coordinator was last seen",
        looks=(
            {},
            held(PREPARED),
            held(PREPARED),
            held(is_complete=False, gaps=(COORDINATOR_AWAY,)),
        ),
        seconds=30,
        verdict=UNKNOWN,
        reason="coordinator_not_seen",
    ),
    Case(
        id="not-described-once",
        because="since when it waits is not forgotten, and it is not over",
        looks=({}, held(PREPARED), held(PREPARED), held(UNDESCRIBED)),
        seconds=30,
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="described-in-turns",
        because="a round without a description does not begin its half minute anew",
        looks=({}, *(held(PREPARED), held(UNDESCRIBED)) * 2, held(PREPARED)),
        verdict=BREACH,
        reason="prepare_commit",
    ),
    Case(
        id="leader-not-asked",
        because="a marker may wait for replicas",
        looks=(UNREPLICATED, UNREPLICATED, UNREPLICATED | {"producers": producers(rows=1)}),
        seconds=30,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="leader-away",
        because="a marker may wait for replicas",
        looks=(UNREPLICATED, UNREPLICATED, {"offsets": unseen_offsets(1)}),
        seconds=30,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="written",
        because="it is not listed any more",
        looks=({}, held(PREPARED), held(PREPARED), {}),
        seconds=30,
        verdict=OK,
        reason="nothing_due",
    ),
    Case(
        id="not-replicated",
        because="nobody has a transaction open, and the marker is beyond the high watermark",
        looks=(UNREPLICATED, UNREPLICATED),
        seconds=30,
        verdict=BREACH,
        reason="not_replicated",
    ),
    Case(
        id="not-replicated-for-a-moment",
        because="replication takes a moment",
        looks=(UNREPLICATED,),
        verdict=OK,
        reason="nothing_due",
    ),
]

WAITING: Final = {
    "groups": (group(),),
    "commits": commits((0, 0, 90), nothing_to_read=[1]),
}


def waits(*listed: Transaction, **more: Any) -> dict[str, Any]:
    """Return a look in which a group has read up to the LSO at 90."""
    return {**WAITING, **held(*listed, **more)}


OVERDUE = transaction(started_at=at(-300))

BLOCKED = [
    Case(
        id="nothing-held",
        because="a group at the end has nothing to wait for",
        looks=(dict(WAITING, commits=commits((0, 0, 100), nothing_to_read=[1])),),
        verdict=OK,
        reason="nothing_held",
    ),
    Case(
        id="hanging",
        because="what never ends is told at once",
        looks=(waits(EMPTY), waits(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="open-in-time",
        because="a transaction within its timeout is nobody's fault",
        looks=(waits(transaction(timeout=timedelta(hours=1))),) * 2,
        seconds=300,
        verdict=OK,
        reason="open_in_time",
    ),
    Case(
        id="two-phase-commit",
        because="open without a limit, by design",
        looks=(waits(transaction(timeout=NO_TIMEOUT)),) * 2,
        seconds=300,
        verdict=OK,
        reason="open_in_time",
    ),
    Case(
        id="overdue",
        because="its owner is gone, and the group waits for the coordinator",
        looks=(waits(OVERDUE), waits(OVERDUE)),
        seconds=60,
        verdict=BREACH,
        reason="overdue",
    ),
    Case(
        id="overdue-for-a-moment",
        because="the coordinator looks every few seconds",
        looks=(waits(OVERDUE), waits(OVERDUE)),
        seconds=30,
        verdict=OK,
        reason="not_for_long",
    ),
    Case(
        id="marker-stuck",
        because="it is committed, and the group may not see it",
        looks=(waits(PREPARED), waits(PREPARED)),
        seconds=60,
        verdict=BREACH,
        reason="marker_stuck",
    ),
    Case(
        id="holder-not-known",
        because="that the group waits is certain, and nobody may see for whom",
        looks=(waits(sight=Sight.UNPROVEN),) * 2,
        seconds=120,
        verdict=BREACH,
        reason="holder_not_known",
    ),
    Case(
        id="leader-not-asked",
        because="a transaction within its timeout may hold it, as far as anybody can tell",
        looks=(waits(producers=producers(rows=1)),) * 2,
        seconds=120,
        verdict=UNKNOWN,
        reason="holder_not_seen",
    ),
    Case(
        id="look-failed-after-it-was-told",
        because="a look that failed ends nothing",
        looks=(waits(EMPTY), waits(EMPTY), waits(producers=producers(rows=1))),
        verdict=UNKNOWN,
        reason="holder_not_seen",
    ),
    Case(
        id="coordinator-away",
        because="the same transaction may be within its timeout",
        looks=(waits(transaction()), waits(is_complete=False, gaps=(COORDINATOR_AWAY,))),
        seconds=120,
        verdict=UNKNOWN,
        reason="holder_not_seen",
    ),
    Case(
        id="has-more-to-read",
        because="a slow group is not blocked yet",
        looks=(waits(EMPTY, commits=commits((0, 0, 50))),) * 2,
        verdict=OK,
        reason="has_more_to_read",
    ),
    Case(
        id="small-lag-not-looked-into",
        because="a lag of 1 may be a marker or a record",
        looks=(waits(OVERDUE, commits=commits((0, 0, 89))),) * 2,
        seconds=60,
        verdict=UNKNOWN,
        reason="cannot_tell",
    ),
    Case(
        id="reads-uncommitted",
        because="it has committed beyond the last stable offset",
        looks=(waits(EMPTY, commits=commits((0, 0, 95))),) * 2,
        verdict=OK,
        reason="reads_uncommitted",
    ),
    Case(
        id="end-not-seen",
        because="nobody knows how far it could read",
        looks=(waits(EMPTY), waits(EMPTY, offsets=unseen_offsets(1))),
        verdict=UNKNOWN,
        reason="end_not_seen",
    ),
]

ALL = [
    *((transaction_hanging.judge, case) for case in HANGING),
    *((transaction_marker_stuck.judge, case) for case in MARKER),
    *((read_committed_consumers_blocked.judge, case) for case in BLOCKED),
]


@pytest.mark.parametrize(
    ("judge", "case"),
    [
        pytest.param(judge, case, id=f"{judge.__module__.rpartition('.')[2]}-{case.id}")
        for judge, case in ALL
    ],
)
def test_case(judge: Judge, case: Case) -> None:
    said = judged(judge, case)
    assert (said.verdict, said.reason) == (case.verdict, case.reason), case.because


def hanging(*more: dict[str, Any]) -> Finding:
    case = Case(id="", because="", looks=more, verdict=BREACH, reason="hanging")
    return judged(transaction_hanging.judge, case)


def test_a_hanging_transaction_is_told_with_whom_it_blocks_and_what_ends_it() -> None:
    look = held(
        EMPTY,
        groups=(group("audit"), group("billing"), group("reads-on")),
        commits=commits((0, 0, 40), (1, 0, 90), (2, 0, 99)),
    )
    said = hanging(look, look)
    assert said.verdict is BREACH
    assert said.evidence == {
        "last_stable_offset": 90,
        "high_watermark": 100,
        "open_span": 10,
        "class": "hanging",
        "producer_id": 7,
        "producer_epoch": 3,
        "coordinator_epoch": None,
        "start_offset": 90,
        "last_record_time": "2025-06-02T11:59:55.000+00:00",
        "transactional_id": "payments",
        "coordinator": 2,
        "state": "Empty",
        "timeout_ms": 60_000,
        "running_ms": 20_000,
        "age_ms": 15_000,
        "blocked_groups": [
            {"group": "billing", "blocked_offsets": 10, "still_to_read": 0, "is_waiting": True},
            {"group": "audit", "blocked_offsets": 10, "still_to_read": 50, "is_waiting": False},
        ],
        "blocked_group_count": 2,
        "hanging_transactions": 1,
        "repair": "kafka-transactions.sh --bootstrap-server "
        "127.0.0.1:9091,127.0.0.1:9092,127.0.0.1:9093 "
        "abort --topic orders --partition 0 --start-offset 90",
    }


def test_what_was_seen_once_is_asked_about_again_at_once() -> None:
    case = Case(id="", because="", looks=(held(EMPTY),), verdict=UNKNOWN, reason="")
    [question] = transaction_hanging.judge(view_of(rounds(case))).questions
    assert isinstance(question, ProducersQuestion)
    assert (question.rows.tolist(), question.is_urgent) == ([0], True)
    confirmed = replace_looks(case, (held(EMPTY),) * 2)
    assert transaction_hanging.judge(view_of(rounds(confirmed))).questions == ()


def test_what_cannot_be_confirmed_makes_no_round_early() -> None:
    unproven = held(sight=Sight.UNPROVEN)
    case = Case(id="", because="", looks=(unproven,) * 3, verdict=UNKNOWN, reason="")
    assert transaction_hanging.judge(view_of(rounds(case))).questions == ()


def replace_looks(case: Case, looks: tuple[dict[str, Any], ...]) -> Case:
    return Case(
        id=case.id, because=case.because, looks=looks, verdict=case.verdict, reason=case.reason
    )


def test_a_hanging_transaction_behind_another_one_is_told_too() -> None:
    behind = open_producer(producer_id=8, start_offset=95)
    look = held(
        transaction(),
        producers=producers(open_producer(), behind, rows=1),
        looked_up=frozenset({7, 8}),
    )
    said = hanging(look, look)
    assert (said.verdict, said.evidence["producer_id"]) == (BREACH, 8)


def test_the_first_round_of_a_restart_ends_nothing() -> None:
    """The memory of transactions does not survive, that of standing offsets does."""
    looks = [
        snapshot(
            **{
                "partitions": partitions({"orders": 1}),
                **held(EMPTY, looked=False),
                "taken_at": when,
            }
        )
        for when in (NOON, NOON + timedelta(seconds=20))
    ]
    said = transaction_hanging.judge(view_of(looks)).finding(0)
    assert (said.verdict, said.reason) == (UNKNOWN, "not_seen")
