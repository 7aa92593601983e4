"""Partitions with transactions that hang, or only seem to: what is said of each."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.facts.transactions import IdVisibility, TransactionState
from tests.factories import (
    at,
    gap,
    offsets,
    open_producer,
    partitions,
    producers,
    topic_id,
    transaction,
    unseen_offsets,
)
from tests.unit.rules.catalogue.held_partitions import (
    BREACH,
    EMPTY,
    OK,
    UNKNOWN,
    held,
)
from tests.unit.rules.catalogue.judging import Case

ELSEWHERE: Final = frozenset({TopicPartition("orders", 5)})


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
        because="requests are not atomic: it may have ended a time later",
        observations=(held(EMPTY),),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="listed-as-empty",
        because="the usual form on Kafka 4: its coordinator knows the producer as Empty",
        observations=(held(EMPTY), held(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="open-elsewhere",
        because="its producer's present transaction is on another partition",
        observations=(held(transaction(partitions=ELSEWHERE)),) * 2,
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="unknown-to-all",
        because="every coordinator answered, and we see every id",
        observations=(held(), held()),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="asked-by-number-later",
        because="before its id was asked for only open transactions were listed",
        observations=(held(resolved=frozenset()), held(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="not-asked-by-number",
        because="an open transaction is listed whether or not its producer was asked for",
        observations=(held(resolved=frozenset()),) * 2,
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="permission-unproven",
        because="what is not listed may be an id that we may not see",
        observations=(held(visibility=IdVisibility.UNPROVEN),) * 3,
        verdict=UNKNOWN,
        reason="permission_unproven",
    ),
    Case(
        id="visible-all-the-same",
        because="an id that is listed is one that we see: no further proof is needed",
        observations=(held(EMPTY, visibility=IdVisibility.UNPROVEN),) * 2,
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="coordinator-paused",
        because="the coordinator that gave no answer may know it",
        observations=(held(is_complete=False, gaps=(COORDINATOR_AWAY,)),) * 3,
        verdict=UNKNOWN,
        reason="coordinator_not_seen",
    ),
    Case(
        id="coordinator-paused-once",
        because="a round in which one coordinator gave no answer proves nothing: one is left",
        observations=(held(is_complete=False, gaps=(COORDINATOR_AWAY,)), held()),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="coordinator-paused-in-between",
        because="two rounds prove it, whatever one between them could not tell",
        observations=(held(), held(is_complete=False, gaps=(COORDINATOR_AWAY,)), held()),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="old-coordinator-answers",
        because="what says Empty may be a coordinator that has not heard that it is none any more",
        observations=(held(EMPTY, is_complete=False, gaps=(COORDINATOR_AWAY,)),) * 3,
        verdict=UNKNOWN,
        reason="coordinator_not_seen",
    ),
    Case(
        id="state-of-a-newer-broker",
        because="what a state means that we do not know, nobody can tell",
        observations=(held(transaction(state=TransactionState.UNKNOWN)),) * 3,
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="observations-within-a-time",
        because="two observations in a blink lie within one move of a coordinator",
        observations=(held(EMPTY), held(EMPTY)),
        seconds=0.1,
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="short-ones-behind-a-long-one",
        because="what begins behind the LSO between two requests is on no list yet",
        observations=tuple(
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
        because="it is, and nobody has a transaction open there",
        observations=(held(producers=producers(rows=1, observed=[0])),) * 3,
        verdict=UNKNOWN,
        reason="nobody_found",
    ),
    Case(
        id="nobody-for-a-time",
        because="it ended between two requests",
        observations=(held(producers=producers(rows=1, observed=[0])),),
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="not-described",
        because="a coordinator lists it, and its partitions are not known",
        observations=(held(transaction(partitions=None)),) * 3,
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="open-in-time",
        because="its coordinator lists the partition",
        observations=(held(transaction()),) * 2,
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="overdue",
        because="its coordinator will abort it",
        observations=(held(transaction(started_at=at(-300))),) * 2,
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="being-aborted",
        because="the marker carries a higher epoch than the open transaction",
        observations=(held(transaction(state=TransactionState.PREPARE_ABORT, producer_epoch=4)),)
        * 2,
        verdict=OK,
        reason="will_end",
    ),
    Case(
        id="ended-between",
        because="the second observation shows another transaction of the same producer",
        observations=(
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
        observations=(held(EMPTY), held(transaction()), held(EMPTY)),
        verdict=UNKNOWN,
        reason="confirming",
    ),
    Case(
        id="not-observed-at-after-it-was-seen",
        because="an observation that failed ends nothing",
        observations=(held(EMPTY), held(EMPTY), held(EMPTY, observed=False)),
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="seen-again-after-a-failed-observation",
        because="it is still the same open transaction",
        observations=(held(EMPTY), held(EMPTY), held(EMPTY, observed=False), held(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="may-not-be-observed-at",
        because="without READ on the topic nobody knows who holds it",
        observations=(held(observed=False),) * 3,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="only-just-open",
        because="it was not due to be observed: a healthy load opens transactions all the time",
        observations=(held(observed=False),),
        verdict=OK,
        reason="not_held",
    ),
    Case(
        id="repaired",
        because="nothing is held any more",
        observations=(held(EMPTY), held(EMPTY), {}),
        verdict=OK,
        reason="not_held",
    ),
    Case(
        id="leader-unreachable",
        because="nobody tells whether it is still there",
        observations=(held(EMPTY), held(EMPTY), {"offsets": unseen_offsets(1)}),
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="created-again",
        because="the same offset of another topic is another transaction",
        observations=(
            held(EMPTY),
            held(
                EMPTY, partitions=partitions({"orders": 1}, topic_ids=(topic_id("o", creation=1),))
            ),
        ),
        verdict=UNKNOWN,
        reason="confirming",
    ),
]
