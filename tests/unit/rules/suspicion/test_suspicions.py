"""Suspicions: what a counter opens, which partitions it may be, and what settles it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from rules.catalogue import observation_stale, sequence_gap_loss
from rules.facts.broker_log import BrokerLog
from rules.facts.suspicions import PartitionState
from rules.verdict import Verdict
from tests.factories import broker
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.suspicion.counted import (
    BROKER_1,
    ELSEWHERE,
    LATE,
    QUIET,
    ROSE,
    SETTLED,
    errors,
    judged,
    only,
    outcomes,
    play,
    seen,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Rounds, and the outcome after the last one."""

    because: str
    rounds: tuple[dict[str, Any], ...]
    outcome: str | None
    judged: tuple[str, str] = ("UNKNOWN", "rejections_counted")


CASES: Final = {
    "nothing-counted": Case(
        because="what was counted before is not new",
        rounds=(seen(QUIET), seen(QUIET)),
        outcome=None,
        judged=SETTLED,
    ),
    "first-epoch": Case(
        because="no partition of the broker ever had another leader",
        rounds=(seen(QUIET), seen(ROSE)),
        outcome="nothing_missing",
        judged=SETTLED,
    ),
    "clean-changes": Case(
        because="each change since the topic's creation was clean: unclean elections are forbidden",
        rounds=(seen(QUIET), seen(QUIET, epochs=[1], ends=((0, 0, 100),)), seen(ROSE, epochs=[1])),
        outcome="nothing_missing",
        judged=SETTLED,
    ),
    "observed-late": Case(
        because="there were changes before Tidemark's first round",
        rounds=(seen(QUIET, epochs=[7]), seen(ROSE, epochs=[7])),
        outcome="clean_not_proven",
    ),
    "seemingly-clean": Case(
        because="an ISR may shrink and its leader die unseen, where unclean elections are allowed",
        rounds=(
            seen(QUIET, allowed=True),
            seen(QUIET, leaders=[2], epochs=[1], ends=((0, 0, 100),), allowed=True),
            seen(
                errors((0, 29, 2), total=6, address="broker-2:7071"),
                leaders=[2],
                epochs=[1],
                allowed=True,
            ),
        ),
        outcome="clean_not_proven",
    ),
    "lost": Case(
        because="the new leader lacks what was committed",
        rounds=(
            seen(QUIET, isr=(1,), allowed=True),
            seen(
                errors((0, 14, 1), address="broker-2:7071"),
                leaders=[2],
                epochs=[1],
                ends=((0, 0, 73),),
                isr=(2,),
                allowed=True,
            ),
        ),
        outcome="loss_reported",
    ),
    "another-broker": Case(
        because="the partition that changed is led by another broker than the one that rejected",
        rounds=(
            seen(QUIET, leaders=[1, 2], epochs=[0, 7]),
            seen(ROSE, leaders=[1, 2], epochs=[0, 7]),
        ),
        outcome="nothing_missing",
        judged=SETTLED,
    ),
    "one-of-many": Case(
        because="one partition of the broker is enough not to know",
        rounds=(
            seen(QUIET, leaders=[1, 1], epochs=[0, 7]),
            seen(ROSE, leaders=[1, 1], epochs=[0, 7]),
        ),
        outcome="clean_not_proven",
    ),
    "unobserved": Case(
        because="its leader gives no answer",
        rounds=(seen(QUIET), seen(ROSE, epochs=[None])),
        outcome="not_observed",
    ),
    "unknown-address": Case(
        because="the address is no broker's, and one partition had changes",
        rounds=(
            seen(QUIET, leaders=[1, 2], epochs=[0, 7]),
            seen(errors((0, 14, 1), address="10.0.0.9:7071"), leaders=[1, 2], epochs=[0, 7]),
        ),
        outcome="broker_not_known",
    ),
    "unknown-address-harmless": Case(
        because="whichever broker it is, nothing can be missing",
        rounds=(seen(QUIET), seen(errors((0, 14, 1), address="10.0.0.9:7071"))),
        outcome="nothing_missing",
        judged=SETTLED,
    ),
    "no-error-of-sequences": Case(
        because="a failover answers so too",
        rounds=(
            seen(QUIET, epochs=[7]),
            seen(errors((0, 14, 9), error="NOT_LEADER_OR_FOLLOWER"), epochs=[7]),
        ),
        outcome=None,
        judged=SETTLED,
    ),
    "fenced": Case(
        because="an old epoch of a producer is a hint, and no gap",
        rounds=(
            seen(QUIET, epochs=[7]),
            seen(errors((0, 14, 9), error="INVALID_PRODUCER_EPOCH"), epochs=[7]),
        ),
        outcome=None,
        judged=SETTLED,
    ),
    "no-metrics": Case(
        because="a cluster without metrics and logs knows of no rejection, as before",
        rounds=(seen(), seen()),
        outcome=None,
        judged=SETTLED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    views = play(*({**one, "brokers": ELSEWHERE} for one in case.rounds))
    suspicions = views[-1].memory.suspicions.suspicions
    assert [str(one.outcome) for one in suspicions] == [case.outcome] * (case.outcome is not None)
    assert judged(views[-1]) == case.judged, case.because


def test_it_says_what_was_counted_where_and_when() -> None:
    suspicion = only(play(seen(QUIET, **LATE), seen(ROSE, **LATE))[-1])
    assert (suspicion.brokers, suspicion.count, suspicion.address) == ((1,), 2, BROKER_1)
    assert (suspicion.partition_count, suspicion.open_count) == (1, 1)
    [partition] = suspicion.partitions
    assert (str(partition.name), partition.state) == ("orders-0", PartitionState.CLEAN_NOT_PROVEN)
    finding = sequence_gap_loss.judge(play(seen(QUIET, **LATE), seen(ROSE, **LATE))[-1]).finding(0)
    told: Any = finding.evidence["suspicions"]
    [evidence] = told
    assert evidence["explanation"] == (
        "Broker 1 rejected 2 batches with OUT_OF_ORDER_SEQUENCE_NUMBER between 2025-06-02 12:00:00 "
        "and 2025-06-02 12:00:14 UTC. It is not known whether acknowledged records are missing: the "
        "leader of orders-0 changed before Tidemark observed it, or while unclean elections were "
        "allowed. No change of it is known to have been unclean."
    )
    assert "broker's log lines" in evidence["needed_evidence"]


def test_one_rise_is_counted_once_and_a_later_one_joins_it() -> None:
    later = errors((0, 14, 2), (30, 44, 3), total=9)
    views = play(seen(QUIET, **LATE), seen(ROSE, **LATE), seen(ROSE, **LATE), seen(later, **LATE))
    assert [only(view).count for view in views[1:]] == [2, 2, 5]
    assert only(views[-1]).since_us < only(views[-1]).until_us


def test_a_client_that_is_rejected_all_the_time_is_a_suspicion_each_hour() -> None:
    """Leaders are queried a bounded number of times for each."""
    rounds = [seen(QUIET, **LATE)]
    for minute in range(2, 150, 2):
        lately = [
            (60.0 * (at_ - 1), 60.0 * at_, 1) for at_ in range(max(2, minute - 12), minute + 1, 2)
        ]
        rounds.append(seen(errors(*lately, total=4 + minute // 2), **LATE))
    views = play(*rounds, seconds=120)
    assert [one.count for one in views[-1].memory.suspicions.suspicions] == [30, 30, 14]
    asked = sum(bool(sequence_gap_loss.judge(view).questions) for view in views)
    assert asked <= 3 * 24


def test_one_broker_at_two_addresses_is_counted_once() -> None:
    other = errors((1, 14, 2), total=6, address="kafka:9404", broker_id=1)
    assert only(play(seen(QUIET, **LATE), seen(ROSE, other, **LATE))[-1]).count == 2


def test_a_count_at_another_address_may_be_another_brokers_and_is_judged_by_its_own_time() -> None:
    """Brokers on one host: the later count is no larger, and its leader changed before it."""
    options: dict[str, Any] = {"allowed": True, "brokers": (broker(1, host="broker-1"),)}
    other = errors((10, 44, 1), total=1, address="broker-1:7072")
    lost = seen(ROSE, other, isr=(1,), epochs=[1], ends=((0, 0, 73),), second=44, **options)
    views = play(
        seen(QUIET, isr=(1,), **options),
        seen(ROSE, isr=(1,), **options),
        seen(ROSE, isr=(1,), **options),
        lost,
    )
    assert (only(views[-1]).count, str(only(views[-1]).outcome)) == (2, "loss_reported")


def test_a_long_led_partition_proves_that_nothing_is_missing() -> None:
    """A leader forgets an idle producer: what it compares with was appended in its own epoch."""
    day = 8 * 24 * 60 * 60
    rose = errors((day, day + 14, 1), total=5)
    views = play(seen(QUIET, **LATE), seen(QUIET, **LATE), seen(rose, **LATE), seconds=day)
    assert str(only(views[-1]).outcome) == "nothing_missing"


def test_a_partition_that_moved_through_the_broker_between_two_rounds_counts() -> None:
    """Broker 1 may have led it for a second, and rejected; it changed while it could be unclean."""
    moved = [seen(QUIET, leaders=[2], allowed=True, brokers=ELSEWHERE)] * 2
    then = seen(
        errors((14, 29, 1), total=5),
        leaders=[3],
        epochs=[2],
        ends=((0, 0, 100),),
        allowed=True,
        brokers=ELSEWHERE,
    )
    suspicion = only(play(*moved, then)[-1])
    assert (suspicion.brokers, suspicion.partition_count) == ((1,), 1)
    assert str(suspicion.outcome) == "clean_not_proven"


def test_a_change_between_the_leaders_answers_and_the_count_is_seen_in_the_next_round() -> None:
    """Counters are read after the leaders have answered: broker 2 got its partition in between."""
    counted_by_2 = errors((1, 16, 1), total=1, address="broker-2:7071")
    options: dict[str, Any] = {"isr": (1,), "allowed": True, "brokers": ELSEWHERE}
    before = seen(QUIET, leaders=[1, 2], epochs=[0, 0], **options)
    during = seen(counted_by_2, leaders=[1, 2], epochs=[0, 0], second=16, **options)
    after = seen(
        counted_by_2, leaders=[2, 2], epochs=[1, 0], ends=((0, 0, 73),), second=31, **options
    )
    suspicion = only(play(before, during, after)[-1])
    assert str(suspicion.outcome) == "loss_reported"
    assert suspicion.partition_count == 2


def test_a_partition_that_moved_away_stays_suspected() -> None:
    later = errors((0, 14, 2), (150, 164, 1), total=7)
    away = seen(ROSE, leaders=[2], epochs=[8], ends=((0, 7, 100),), brokers=ELSEWHERE)
    again = seen(later, leaders=[2], epochs=[8], brokers=ELSEWHERE)
    views = play(seen(QUIET, **LATE), seen(ROSE, **LATE), *[away] * 9, again)
    assert (only(views[-1]).count, str(only(views[-1]).outcome)) == (3, "clean_not_proven")


def test_a_confirmed_unknown_is_no_blindness() -> None:
    [*_, view] = play(seen(QUIET, **LATE), seen(ROSE, **LATE))
    judgement = sequence_gap_loss.judge(view)
    assert (judgement.count(Verdict.UNKNOWN), judgement.count_blind()) == (1, 0)
    assert observation_stale.advance({}, [judgement], view.now) == {}


def test_a_suspicion_hides_no_blindness() -> None:
    [*_, view] = play(seen(QUIET, **LATE), seen(ROSE, **LATE))
    sequences = replace(view.memory.sequences, unreported=3)
    stormy = replace(view, memory=replace(view.memory, sequences=sequences))
    judgement = sequence_gap_loss.judge(stormy)
    assert (judgement.finding(0).reason, judgement.count_blind()) == ("too_many", 1)


def test_lines_of_the_broker_explain_what_it_counted() -> None:
    lines = BrokerLog(is_read=True, events=(rejected(6, 2),))
    silent = BrokerLog(is_read=True)
    by_lines = play(seen(QUIET, **LATE, broker_log=silent), seen(ROSE, **LATE, broker_log=lines))
    assert str(only(by_lines[-1]).outcome) == "by_lines"
    assert only(by_lines[-1]).ended_us is not None
    rounds = [seen(QUIET, **LATE, broker_log=silent), *[seen(ROSE, **LATE, broker_log=silent)] * 4]
    assert outcomes(*rounds) == [
        None,
        "awaiting_lines",
        "awaiting_lines",
        *["clean_not_proven"] * 2,
    ]
    verdicts = [judged(view)[0] for view in play(*rounds)]
    assert verdicts == ["OK", "OK", "OK", "UNKNOWN", "UNKNOWN"]
