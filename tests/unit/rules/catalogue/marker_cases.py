"""Case table: what is said of markers that are due, partition by partition."""

from __future__ import annotations

from typing import Final

from rules.facts.transactions import TransactionState
from tests.factories import at, offsets, producers, transaction, unseen_offsets
from tests.unit.rules.catalogue.hanging_cases import COORDINATOR_AWAY, ELSEWHERE
from tests.unit.rules.catalogue.held_partitions import BREACH, OK, UNKNOWN, held
from tests.unit.rules.catalogue.judging import Case

PREPARED = transaction(state=TransactionState.PREPARE_COMMIT)
UNDESCRIBED = transaction(
    state=TransactionState.PREPARE_COMMIT, partitions=None, started_at=None, timeout=None
)
ABORTING = transaction(state=TransactionState.PREPARE_ABORT)
UNREPLICATED: Final = {
    "offsets": offsets(1, last_stable_offset=[90], high_watermark=[95]),
    "producers": producers(rows=1, observed=[0]),
}

MARKER = [
    Case(id="nothing-due", because="nothing is decided", verdict=OK, reason="nothing_due"),
    Case(
        id="just-decided",
        because="markers take a time",
        observations=({}, held(PREPARED)),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="decided-when-tidemark-began",
        because="since when it waits is not known",
        observations=(held(PREPARED),),
        verdict=UNKNOWN,
        reason="first_observation",
    ),
    Case(
        id="commit-stuck",
        because="half a minute is a thousand times what a marker takes",
        observations=({}, held(PREPARED), held(PREPARED)),
        seconds=30,
        verdict=BREACH,
        reason="prepare_commit",
    ),
    Case(
        id="abort-stuck",
        because="an abort's marker is as necessary as a commit's",
        observations=({}, held(ABORTING), held(ABORTING)),
        seconds=30,
        verdict=BREACH,
        reason="prepare_abort",
    ),
    Case(
        id="other-partitions-marker",
        because="this partition's marker is written, another's is not",
        observations=({},)
        + (held(transaction(state=TransactionState.PREPARE_COMMIT, partitions=ELSEWHERE)),) * 2,
        seconds=30,
        verdict=OK,
        reason="nothing_due",
    ),
    Case(
        id="next-transaction",
        because="each transaction has its own half minute",
        observations=(
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
        observations=(
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
        observations=({}, held(PREPARED), held(PREPARED), held(UNDESCRIBED)),
        seconds=30,
        verdict=UNKNOWN,
        reason="not_described",
    ),
    Case(
        id="described-in-turns",
        because="a round without a description does not begin its half minute anew",
        observations=({}, *(held(PREPARED), held(UNDESCRIBED)) * 2, held(PREPARED)),
        verdict=BREACH,
        reason="prepare_commit",
    ),
    Case(
        id="leader-not-asked",
        because="a marker may wait for replicas",
        observations=(UNREPLICATED, UNREPLICATED, UNREPLICATED | {"producers": producers(rows=1)}),
        seconds=30,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="leader-away",
        because="a marker may wait for replicas",
        observations=(UNREPLICATED, UNREPLICATED, {"offsets": unseen_offsets(1)}),
        seconds=30,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="written",
        because="it is not listed any more",
        observations=({}, held(PREPARED), held(PREPARED), {}),
        seconds=30,
        verdict=OK,
        reason="nothing_due",
    ),
    Case(
        id="not-replicated",
        because="nobody has a transaction open, and the marker is beyond the high watermark",
        observations=(UNREPLICATED, UNREPLICATED),
        seconds=30,
        verdict=BREACH,
        reason="not_replicated",
    ),
    Case(
        id="not-replicated-for-a-time",
        because="replication takes a time",
        observations=({}, UNREPLICATED),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="not-replicated-when-tidemark-began",
        because="since when it waits is not known",
        observations=(UNREPLICATED,),
        verdict=UNKNOWN,
        reason="first_observation",
    ),
    Case(
        id="ended-between-two-requests",
        because="offsets are read before producers: a long transaction committed in between",
        observations=(*(held(transaction()),) * 10, UNREPLICATED),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="decided-after-a-long-transaction",
        because="for how long the transaction was open says nothing of its marker",
        observations=(*(held(transaction()),) * 10, UNREPLICATED, UNREPLICATED),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="not-replicated-after-a-long-transaction",
        because="half a minute after nobody had it open any more",
        observations=(*(held(transaction()),) * 10, *(UNREPLICATED,) * 3),
        verdict=BREACH,
        reason="not_replicated",
    ),
    Case(
        id="another-one-ended-between-two-requests",
        because="the offset has moved in between: each marker has its own half minute",
        observations=(
            {},
            UNREPLICATED,
            UNREPLICATED | {"offsets": offsets(1, last_stable_offset=[91], high_watermark=[95])},
        ),
        seconds=30,
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="unseen-round-begins-nothing-anew",
        because="a round that cannot tell ends nothing",
        observations=(
            {},
            UNREPLICATED,
            UNREPLICATED | {"producers": producers(rows=1)},
            UNREPLICATED | {"offsets": unseen_offsets(1), "producers": producers(rows=1)},
            UNREPLICATED,
        ),
        verdict=BREACH,
        reason="not_replicated",
    ),
    Case(
        id="open-again-under-a-new-leader",
        because="the marker is gone with the old leader: another one is due",
        observations=({}, UNREPLICATED, held(transaction()), UNREPLICATED),
        seconds=30,
        verdict=OK,
        reason="being_written",
    ),
]
