"""Case tables of the rules that judge partitions.

To add a case, say in one sentence why it is so. Changing an old one needs an argument.
"""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue import (
    high_watermark_stuck,
    last_stable_offset_stuck,
    partition_offline,
    partition_under_min_isr,
)
from rules.facts.column import Column, Ragged
from rules.verdict import Verdict
from tests.factories import offsets, partitions, unseen_offsets
from tests.unit.rules.catalogue.judging import Case, judged

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def placed(**overrides: Any) -> dict[str, Any]:
    return {"partitions": partitions({"orders": 1}, **overrides)}


def ends(stable: int | None, watermark: int | None, end: int | None, **more: Any) -> dict[str, Any]:
    seen = offsets(1, last_stable_offset=[stable], high_watermark=[watermark], log_end_offset=[end])
    return {"offsets": seen, **more}


NO_ONE = Column.of([None])
UNNAMED = {"partitions": partitions({"orders": 1}, topic_ids=(None,))}
LEFT_OUT = {"partitions": partitions({}), "placement_complete": False}
ALONE = {"partitions": partitions({"orders": 1}, replicas=Ragged.of([(1,)]), isr=Ragged.of([(1,)]))}

OFFLINE = [
    Case(id="led", because="a registered broker leads it", verdict=OK, reason="led"),
    Case(
        id="nobody",
        because="without a leader nobody can write or read",
        observations=(placed(leader=NO_ONE, isr=Ragged.of([()])),),
        verdict=BREACH,
        reason="no_leader",
    ),
    Case(
        id="stranger",
        because="two answers of the round disagree, so that neither can be believed",
        observations=(placed(leader=Column.of([7])),),
        verdict=UNKNOWN,
        reason="leader_not_registered",
    ),
    Case(
        id="left-out",
        because="a partition that the answer left out is neither led nor offline",
        observations=(placed(leader=NO_ONE, replicas=Ragged.of([None])),),
        verdict=UNKNOWN,
        reason="not_described",
    ),
]

UNDER_MIN_ISR = [
    Case(id="whole", because="three of three, two demanded", verdict=OK, reason="enough"),
    Case(
        id="at-minimum",
        because="exactly as many as demanded still take acks=all",
        observations=(placed(isr=Ragged.of([(1, 2)])),),
        verdict=OK,
        reason="enough",
    ),
    Case(
        id="below",
        because="one of two demanded rejects acks=all",
        observations=(placed(isr=Ragged.of([(1,)])),),
        verdict=BREACH,
        reason="below_minimum",
    ),
    Case(
        id="fewer-replicas-than-demanded",
        because="brokers count the smaller of both, so that one replica can never be too few",
        observations=(ALONE,),
        verdict=OK,
        reason="enough",
    ),
    Case(
        id="no-permission",
        because="without DESCRIBE_CONFIGS the demand is unknown, and three may be too few",
        observations=(placed(min_insync_replicas=NO_ONE),),
        verdict=UNKNOWN,
        reason="minimum_unknown",
    ),
    Case(
        id="isr-unknown",
        because="an unknown ISR is not an empty one",
        observations=(placed(isr=Ragged.of([None])),),
        verdict=UNKNOWN,
        reason="isr_unknown",
    ),
]

AHEAD = ends(10, 10, 15)
HIGH_WATERMARK = [
    Case(
        id="half-an-answer",
        because="a log end that was not seen once is no sign that the high watermark moved",
        observations=(ends(100, 100, 120), ends(100, 100, None), ends(100, 100, 120)),
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="half-an-answer-first",
        because="nor that anything waited for it",
        observations=(ends(100, 100, None), ends(100, 100, None), ends(100, 100, 120)),
        verdict=OK,
        reason="replicating",
    ),
    Case(
        id="left-out",
        because="a list of topics that leaves it out changes nothing",
        observations=(ends(100, 100, 120), LEFT_OUT, ends(100, 100, 120)),
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="unnamed",
        because="without topic ids a value that is the same has stood",
        observations=(UNNAMED | ends(100, 100, 120),) * 3,
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="unnamed-now-and-then",
        because="while brokers are upgraded some tell the topic id and some do not",
        observations=(
            UNNAMED | ends(100, 100, 120),
            ends(100, 100, 120),
            UNNAMED | ends(100, 100, 120),
        ),
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(id="level", because="nothing waits for replication", verdict=OK, reason="level"),
    Case(
        id="just-written",
        because="followers fetch a time later: one observation proves nothing",
        observations=(AHEAD,),
        verdict=OK,
        reason="replicating",
    ),
    Case(
        id="unchanged",
        because="three observations over 30 s saw the same high watermark below the log end",
        observations=(AHEAD, ends(10, 10, 18), ends(10, 10, 21)),
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="moves",
        because="a high watermark that moves is replication under load",
        observations=(AHEAD, ends(15, 15, 18), ends(18, 18, 21)),
        verdict=OK,
        reason="replicating",
    ),
    Case(
        id="level-between",
        because="the clock starts anew after both were level",
        observations=(AHEAD, ends(10, 10, 10), AHEAD),
        verdict=OK,
        reason="replicating",
    ),
    Case(
        id="gap-between",
        because="a round that did not see it does not reset the clock",
        observations=(AHEAD, {"offsets": unseen_offsets(1)}, AHEAD),
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="gap-now",
        because="what is not seen now is unknown, whatever it was before",
        observations=(AHEAD, AHEAD, {"offsets": unseen_offsets(1)}),
        verdict=UNKNOWN,
        reason="not_seen",
    ),
    Case(
        id="one-replica",
        because="without a follower nothing can be behind",
        observations=(ALONE | AHEAD,) * 3,
        verdict=OK,
        reason="one_replica",
    ),
]

HELD = ends(10, 15, 15)
LAST_STABLE = [
    Case(
        id="half-an-answer",
        because="a high watermark that was not seen once is no sign that the transaction ended",
        observations=(ends(90, 100, 100), ends(90, None, 100), ends(90, 100, 100)),
        seconds=60,
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="unnamed",
        because="without topic ids a value that is the same has stood",
        observations=(UNNAMED | ends(90, 100, 100),) * 3,
        seconds=60,
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(id="closed", because="LSO equals HWM", verdict=OK, reason="nothing_open"),
    Case(
        id="open",
        because="a transaction may be open for its timeout",
        observations=(HELD, HELD),
        verdict=OK,
        reason="open",
    ),
    Case(
        id="unchanged",
        because="after two minutes neither its producer nor the coordinator ended it",
        observations=(HELD, ends(10, 20, 20), ends(10, 30, 30)),
        seconds=60,
        verdict=BREACH,
        reason="unchanged",
    ),
    Case(
        id="next-transaction",
        because="an LSO that moves belongs to transactions that end",
        observations=(HELD, ends(16, 20, 20), ends(21, 30, 30)),
        seconds=60,
        verdict=OK,
        reason="open",
    ),
    Case(
        id="not-seen",
        because="without the HWM nothing can be said",
        observations=(HELD, HELD, ends(10, None, 30)),
        seconds=60,
        verdict=UNKNOWN,
        reason="not_seen",
    ),
]

TABLE = [
    *((partition_offline.judge, case) for case in OFFLINE),
    *((partition_under_min_isr.judge, case) for case in UNDER_MIN_ISR),
    *((high_watermark_stuck.judge, case) for case in HIGH_WATERMARK),
    *((last_stable_offset_stuck.judge, case) for case in LAST_STABLE),
]


@pytest.mark.parametrize(
    ("judge", "case"), TABLE, ids=[f"{j.__module__.rpartition('.')[2]}:{c.id}" for j, c in TABLE]
)
def test_case(judge: Any, case: Case) -> None:
    finding = judged(judge, case)
    assert (finding.verdict, finding.reason) == (case.verdict, case.reason), case.because


def test_evidence_of_a_stuck_high_watermark_names_both_ends_and_the_time() -> None:
    case = next(case for case in HIGH_WATERMARK if case.id == "unchanged")
    assert judged(high_watermark_stuck.judge, case).evidence == {
        "high_watermark": 10,
        "log_end_offset": 21,
        "unreplicated_span": 11,
        "unchanged_ms": 30_000,
    }
