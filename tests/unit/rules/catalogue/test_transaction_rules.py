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
from rules.facts.transactions import NO_TIMEOUT, IdVisibility, Transaction
from tests.factories import (
    at,
    commits,
    group,
    producers,
    transaction,
    unseen_offsets,
)
from tests.unit.rules.catalogue.hanging_cases import COORDINATOR_AWAY, HANGING
from tests.unit.rules.catalogue.held_partitions import (
    BREACH,
    EMPTY,
    OK,
    UNKNOWN,
    held,
)
from tests.unit.rules.catalogue.judging import Case, Judge, judged
from tests.unit.rules.catalogue.marker_cases import MARKER, PREPARED, UNREPLICATED

WAITING: Final = {
    "groups": (group(),),
    "commits": commits((0, 0, 90), nothing_to_read=[1]),
}


def waits(*listed: Transaction, **more: Any) -> dict[str, Any]:
    """Return an observation in which a group has read up to the LSO at 90."""
    return {**WAITING, **held(*listed, **more)}


OVERDUE = transaction(started_at=at(-300))

BLOCKED = [
    Case(
        id="nothing-held",
        because="a group at the end has nothing to wait for",
        observations=(dict(WAITING, commits=commits((0, 0, 100), nothing_to_read=[1])),),
        verdict=OK,
        reason="nothing_held",
    ),
    Case(
        id="hanging",
        because="what never ends is told at once",
        observations=(waits(EMPTY), waits(EMPTY)),
        verdict=BREACH,
        reason="hanging",
    ),
    Case(
        id="open-in-time",
        because="a transaction within its timeout is nobody's fault",
        observations=(waits(transaction(timeout=timedelta(hours=1))),) * 2,
        seconds=300,
        verdict=OK,
        reason="open_in_time",
    ),
    Case(
        id="two-phase-commit",
        because="open without a limit, by design",
        observations=(waits(transaction(timeout=NO_TIMEOUT)),) * 2,
        seconds=300,
        verdict=OK,
        reason="open_in_time",
    ),
    Case(
        id="overdue",
        because="its owner is gone, and the group waits for the coordinator",
        observations=(waits(OVERDUE), waits(OVERDUE)),
        seconds=60,
        verdict=BREACH,
        reason="overdue",
    ),
    Case(
        id="overdue-for-a-time",
        because="the coordinator observations every few seconds",
        observations=(waits(OVERDUE), waits(OVERDUE)),
        seconds=30,
        verdict=OK,
        reason="not_for_long",
    ),
    Case(
        id="marker-stuck",
        because="it is committed, and the group may not see it",
        observations=(waits(PREPARED), waits(PREPARED)),
        seconds=60,
        verdict=BREACH,
        reason="marker_stuck",
    ),
    Case(
        id="commits-after-a-long-time",
        because="it was open for long, and its marker is not late",
        observations=(*(waits(transaction(timeout=timedelta(hours=1))),) * 10, waits(PREPARED)),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="ended-between-two-requests",
        because="offsets are read before producers: nobody has it open any more",
        observations=(
            *(waits(transaction(timeout=timedelta(hours=1))),) * 10,
            {**WAITING, **UNREPLICATED},
        ),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="nobody-found-between-two-requests",
        because="the same, where followers were quick",
        observations=(
            *(waits(transaction(timeout=timedelta(hours=1))),) * 10,
            waits(producers=producers(rows=1, observed=[0])),
        ),
        verdict=OK,
        reason="being_written",
    ),
    Case(
        id="marker-not-replicated",
        because="the group may not see what is committed, half a minute after it was",
        observations=(
            *(waits(transaction(timeout=timedelta(hours=1))),) * 4,
            *({**WAITING, **UNREPLICATED},) * 3,
        ),
        verdict=BREACH,
        reason="marker_stuck",
    ),
    Case(
        id="holder-not-known",
        because="that the group waits is certain, and nobody may see for whom",
        observations=(waits(visibility=IdVisibility.UNPROVEN),) * 2,
        seconds=120,
        verdict=BREACH,
        reason="holder_not_known",
    ),
    Case(
        id="leader-not-asked",
        because="a transaction within its timeout may hold it, as far as anybody can tell",
        observations=(waits(producers=producers(rows=1)),) * 2,
        seconds=120,
        verdict=UNKNOWN,
        reason="holder_not_seen",
    ),
    Case(
        id="observation-failed-after-it-was-told",
        because="an observation that failed ends nothing",
        observations=(waits(EMPTY), waits(EMPTY), waits(producers=producers(rows=1))),
        verdict=UNKNOWN,
        reason="holder_not_seen",
    ),
    Case(
        id="coordinator-away",
        because="the same transaction may be within its timeout",
        observations=(waits(transaction()), waits(is_complete=False, gaps=(COORDINATOR_AWAY,))),
        seconds=120,
        verdict=UNKNOWN,
        reason="holder_not_seen",
    ),
    Case(
        id="has-more-to-read",
        because="a slow group is not blocked yet",
        observations=(waits(EMPTY, commits=commits((0, 0, 50))),) * 2,
        verdict=OK,
        reason="has_more_to_read",
    ),
    Case(
        id="small-lag-not-observed-into",
        because="a lag of 1 may be a marker or a record",
        observations=(waits(OVERDUE, commits=commits((0, 0, 89))),) * 2,
        seconds=60,
        verdict=UNKNOWN,
        reason="not_determined",
    ),
    Case(
        id="reads-uncommitted",
        because="it has committed beyond the last stable offset",
        observations=(waits(EMPTY, commits=commits((0, 0, 95))),) * 2,
        verdict=OK,
        reason="reads_uncommitted",
    ),
    Case(
        id="end-not-seen",
        because="nobody knows how far it could read",
        observations=(waits(EMPTY), waits(EMPTY, offsets=unseen_offsets(1))),
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
