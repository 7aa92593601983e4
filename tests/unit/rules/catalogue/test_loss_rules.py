"""Cases of lost records: what the last look saw, what the new leader has, what has to be said.

Broker 1 led in epoch 5 with all three offsets at 100; in a moment broker 2 leads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from rules.catalogue import (
    committed_beyond_log_end,
    committed_records_lost,
    records_possibly_lost,
    unclean_leader_election,
    unreplicated_records_lost,
)
from rules.facts.column import Column, Ragged
from rules.facts.identity import TopicPartition
from rules.facts.last_look import microseconds, refined
from rules.facts.memory import Memory, advance
from rules.facts.risk_looks import RiskLooks
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import Outcome, TransactionLog
from rules.judgement import Finding
from rules.question import EpochEndQuestion, ProducersQuestion
from rules.verdict import Verdict
from rules.view import View
from tests.factories import (
    at,
    broker,
    commits,
    ended,
    epoch_ends,
    group,
    ints,
    offsets,
    partitions,
    producers,
    snapshot,
    topic_id,
    transaction,
    transactions,
    unseen_offsets,
)
from tests.unit.rules.catalogue.judging import Judge, view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
UNCLEAN_ALLOWED: Final = Column.of([1])
RULES: Final = {
    "committed": committed_records_lost.judge,
    "possibly": records_possibly_lost.judge,
    "unreplicated": unreplicated_records_lost.judge,
    "unclean": unclean_leader_election.judge,
}


def placed(leader: int = 1, *, isr: tuple[int, ...] = (1, 2, 3), **more: Any) -> dict[str, Any]:
    return {
        "partitions": partitions(
            {"orders": 1}, leader=Column.of([leader]), isr=Ragged.of([isr]), **more
        )
    }


def led_by_1(
    *, stable: int = 100, watermark: int = 100, end: int | None = 100, **more: Any
) -> dict[str, Any]:
    """Return a look in epoch 5."""
    return {
        **placed(1, **more),
        "offsets": offsets(
            1, last_stable_offset=[stable], high_watermark=[watermark], log_end_offset=[end]
        ),
    }


def led_by_2(
    epoch_end: int | None, *, epoch: int = 6, leader: int = 2, now: int = 100, **more: Any
) -> dict[str, Any]:
    """Return a look after the change; epoch 5 ended at `epoch_end`, None: nobody has told."""
    told = () if epoch_end is None else ((0, 5, epoch_end),)
    isr: tuple[int, ...] = more.pop("isr", (leader, 3))
    return {
        **placed(leader, isr=isr, leader_epoch=Column.of([epoch]), **more),
        "offsets": offsets(
            1,
            leader_epoch=[epoch],
            last_stable_offset=[now],
            high_watermark=[now],
            log_end_offset=[now],
        ),
        "epoch_ends": epoch_ends(*told),
    }


def rounds(*looks: dict[str, Any]) -> list[Snapshot]:
    return [snapshot(taken_at=at(15 * number), **look) for number, look in enumerate(looks)]


def said(judge: Judge, *looks: dict[str, Any]) -> Finding:
    return judge(view_of(rounds(*looks))).finding(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What was seen, and what each rule has to say that says more than OK."""

    because: str
    looks: tuple[dict[str, Any], ...]
    breaches: dict[str, str] = field(default_factory=dict)  # rule -> reason


ALONE: Final = led_by_1(isr=(1,), unclean_election_enabled=UNCLEAN_ALLOWED)
AHEAD: Final = led_by_1(end=120, unclean_election_enabled=UNCLEAN_ALLOWED)
CASES: Final = {
    "clean": Case(
        because="the epoch ended where its log had ended when last seen",
        looks=(led_by_1(), led_by_2(100)),
    ),
    "clean-and-grown": Case(
        because="what was appended after the look and before the change is there",
        looks=(led_by_1(), led_by_2(150)),
    ),
    "committed-loss": Case(
        because="27 committed records are not in the new leader's log",
        looks=(ALONE, led_by_2(73, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "committed-loss-in-a-log-that-grew": Case(
        because="how long the log is by now says nothing",
        looks=(ALONE, led_by_2(73, now=500, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "forced-although-not-allowed": Case(
        because="an operator can elect uncleanly whatever the topic says",
        looks=(led_by_1(isr=(1,)), led_by_2(73)),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "deleted-records": Case(
        because="deleted records do not change where an epoch ended",
        looks=(
            led_by_1(),
            {**led_by_2(100), "offsets": offsets(1, leader_epoch=[6], log_start_offset=[80])},
        ),
    ),
    "acks-1-loss": Case(
        because="the winner was in sync: what was above the high watermark was never committed",
        looks=(led_by_1(end=117), led_by_2(100)),
        breaches={"unreplicated": "never_committed"},
    ),
    "acks-1-loss-in-part": Case(
        because="some of it had been replicated",
        looks=(led_by_1(end=117), led_by_2(110)),
        breaches={"unreplicated": "never_committed"},
    ),
    "possibly-committed": Case(
        because="the high watermark jumps to the log end when the ISR shrinks",
        looks=(
            led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"possibly": "possible", "unclean": "possibly_lost"},
    ),
    "unclean-and-nothing-seen-is-missing": Case(
        because="what was appended after the last look is not known",
        looks=(ALONE, led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"possibly": "unseen", "unclean": "nothing_seen_is_missing"},
    ),
    "its-own-log": Case(
        because="the leader was restarted and leads again",
        looks=(ALONE, led_by_2(100, leader=1, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ),
    "another-one-led-between": Case(
        because="the same leader two elections later may have followed an unclean one in between",
        looks=(ALONE, led_by_2(100, leader=1, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"possibly": "unseen"},
    ),
    "restarted-where-it-is-forbidden": Case(
        because="nobody else could lead between",
        looks=(led_by_1(isr=(1,)), led_by_2(100, leader=1, epoch=7)),
    ),
    "jumped-before": Case(
        because="a high watermark that jumped after it had stood still tells of an ISR that shrank",
        looks=(
            AHEAD,
            led_by_1(watermark=118, end=120, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(118, unclean_election_enabled=UNCLEAN_ALLOWED),
        ),
        breaches={"unreplicated": "never_committed"},
    ),
    "eligible": Case(
        because="a replica of the ELR has all that was committed",
        looks=(
            led_by_1(isr=(1,), elr=Ragged.of([(2,)])),
            led_by_2(100),
        ),
    ),
    "came-back-unseen": Case(
        because="where unclean elections are forbidden a direct change had its winner in sync",
        looks=(led_by_1(isr=(1, 3)), led_by_2(100)),
    ),
    "too-much-unseen": Case(
        because="there was no leader for a while, and the winner was not in sync when last seen",
        looks=(led_by_1(isr=(1, 3)), led_by_2(100, epoch=7)),
        breaches={"possibly": "unseen"},
    ),
    "stood-still-before": Case(
        because="the ISR may have shrunk to the old leader after the last look",
        looks=(AHEAD, AHEAD, led_by_2(120, unclean_election_enabled=UNCLEAN_ALLOWED)),
        breaches={"possibly": "unseen"},
    ),
    "busy-before": Case(
        because="a few records on their way are no standstill",
        looks=(AHEAD, led_by_2(120, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ),
    "two-changes": Case(
        because="what the first change lost is still missing after the second",
        looks=(
            ALONE,
            led_by_2(None, unclean_election_enabled=UNCLEAN_ALLOWED),
            led_by_2(73, epoch=9, leader=3),
        ),
        breaches={"committed": "lost", "unclean": "lost"},
    ),
    "not-told-yet": Case(
        because="the new leader has not said where the epoch ended",
        looks=(led_by_1(), led_by_2(None)),
    ),
    "created-again": Case(
        because="another topic of this name has nothing to do with it",
        looks=(led_by_1(), led_by_2(3, epoch=0, topic_ids=(topic_id("orders", creation=1),))),
    ),
    "told-once": Case(
        because="an event is said in the round that proves it",
        looks=(ALONE, led_by_2(73), led_by_2(73)),
    ),
    "first-round": Case(because="nothing is remembered", looks=(led_by_2(73),)),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_case(case: Case, rule: str) -> None:
    found = said(RULES[rule], *case.looks)
    is_breach = found.verdict is BREACH
    assert (found.reason if is_breach else None) == case.breaches.get(rule), case.because


@pytest.mark.parametrize(
    ("look", "verdict", "reason"),
    [
        pytest.param(led_by_2(None), UNKNOWN, "not_told", id="not-told"),
        pytest.param(
            {**placed(), "offsets": unseen_offsets(1)}, UNKNOWN, "not_seen", id="no-leader"
        ),
        pytest.param(placed(topic_ids=(None,)), UNKNOWN, "no_topic_id", id="old-broker"),
        pytest.param(placed(), OK, "nothing_seen_is_missing", id="quiet"),
    ],
)
def test_what_cannot_be_compared_is_unknown(
    look: dict[str, Any], verdict: Verdict, reason: str
) -> None:
    found = said(committed_records_lost.judge, led_by_1(), look)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_the_first_round_has_nothing_to_compare_with() -> None:
    assert said(committed_records_lost.judge, led_by_1()).reason == "first_look"


def test_where_an_epoch_ended_is_asked_until_it_is_told() -> None:
    looks = [led_by_1(), led_by_2(None), led_by_2(None, epoch=9)]
    for number in (2, 3):
        [asked] = committed_records_lost.judge(view_of(rounds(*looks[:number]))).questions
        assert isinstance(asked, EpochEndQuestion)
        assert (asked.rows.tolist(), asked.epochs.tolist()) == ([0], [5])
    told = rounds(*looks, led_by_2(100, epoch=9))
    assert committed_records_lost.judge(view_of(told)).questions == ()


def test_a_loss_is_told_with_its_ranges_its_readers_and_what_to_do() -> None:
    before = led_by_1(
        stable=95,
        end=110,
        isr=(1,),
        unclean_election_enabled=UNCLEAN_ALLOWED,
    ) | {"transactions": transactions(transaction())}
    after = led_by_2(73, epoch=7, now=80, unclean_election_enabled=UNCLEAN_ALLOWED) | {
        "groups": (group("audit"), group("billing"), group("slow")),
        "commits": commits((0, 0, 78), (1, 0, 100), (2, 0, 73)),
        "brokers": (broker(2), broker(3)),
    }
    found = said(committed_records_lost.judge, before, after)
    assert (found.verdict, found.reason) == (BREACH, "lost")
    advice = found.evidence["advice"]
    assert isinstance(advice, str)
    assert "broker 1" in advice
    assert "orders-0" in advice
    assert {**found.evidence, "advice": None} == {
        "topic_id": topic_id("orders"),
        "election": "unclean",
        "leader_before": 1,
        "leader_epoch_before": 5,
        "leader": 2,
        "leader_epoch": 7,
        "epoch_end": 73,
        "certain_from": 73,
        "certain_to": 100,
        "certain_offsets": 27,
        "visible_to_read_committed": 22,
        "possible_from": 100,
        "possible_to": 110,
        "possible_offsets": 10,
        "uncommitted_from": 100,
        "uncommitted_to": 110,
        "uncommitted_offsets": 10,
        "last_look": "2025-06-02T12:00:00.000+00:00",
        "unknown_since": "2025-06-02T12:00:00.000+00:00",
        "ex_leader_end": None,
        "groups_beyond": [
            {"group": "billing", "committed_offset": 100, "read_beyond": 27, "may_skip": 7},
            {"group": "audit", "committed_offset": 78, "read_beyond": 5, "may_skip": 5},
        ],
        "group_count": 2,
        "groups_gone_on": [],
        "open_transactions": [{"transactional_id": "payments"}],
        "advice": None,
    }


def test_the_old_leaders_own_log_says_how_much_may_be_gone() -> None:
    after = led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)
    seen = after["offsets"]
    after["offsets"] = offsets(1, leader_epoch=[6], replica_log_end_offsets=[140, None, None])
    assert seen is not after["offsets"]
    found = said(records_possibly_lost.judge, ALONE, after)
    assert (found.reason, found.evidence["possible_to"]) == ("possible", 140)
    assert found.evidence["ex_leader_end"] == 140


# ------------------------------------------------------------------ without any memory
def read_in_epoch_5(committed: int, *, epoch_end: int | None = 73, **more: Any) -> dict[str, Any]:
    """Return a round of epoch 7 with a commit of epoch 5."""
    told = () if epoch_end is None else ((0, 5, epoch_end),)
    return {
        **placed(2),
        "offsets": offsets(1, leader_epoch=[7]),
        "groups": (group(),),
        "commits": commits((0, 0, committed), epochs=[5]),
        "epoch_ends": epoch_ends(*told),
        **more,
    }


@pytest.mark.parametrize(
    ("looks", "reason"),
    [
        pytest.param((read_in_epoch_5(100),), "read_beyond_epoch_end", id="first-round"),
        pytest.param((read_in_epoch_5(73),), None, id="at-its-end"),
        pytest.param((read_in_epoch_5(100, epoch_end=None),), None, id="nobody-told"),
        pytest.param(
            (read_in_epoch_5(100, commits=commits((0, 0, 100), epochs=[None])),),
            None,
            id="no-epoch-committed",
        ),
        pytest.param(
            (read_in_epoch_5(100, epoch_ends=epoch_ends((0, 5, None))),), None, id="no-such-epoch"
        ),
        pytest.param((read_in_epoch_5(100),) * 2, None, id="told-once"),
        pytest.param(
            (read_in_epoch_5(90), read_in_epoch_5(100)),
            "read_beyond_epoch_end",
            id="another-commit",
        ),
    ],
)
def test_a_group_that_read_beyond_its_epoch_needs_no_memory(
    looks: tuple[dict[str, Any], ...], reason: str | None
) -> None:
    found = said(records_possibly_lost.judge, *looks)
    assert (found.reason if found.verdict is BREACH else None) == reason


def test_what_a_group_read_is_a_lower_bound() -> None:
    found = said(records_possibly_lost.judge, read_in_epoch_5(100))
    assert found.evidence["at_least_offsets"] == 27
    assert found.evidence["groups_beyond"] == [
        {
            "group": "billing",
            "committed_offset": 100,
            "committed_leader_epoch": 5,
            "read_beyond": 27,
        }
    ]


def beyond_the_log(**more: Any) -> dict[str, Any]:
    return {
        **placed(),
        "groups": (group(),),
        "commits": commits((0, 0, 120), epochs=[5]),
        **more,
    }


@pytest.mark.parametrize(
    ("looks", "verdict", "reason"),
    [
        pytest.param((beyond_the_log(),), BREACH, "beyond", id="first-round"),
        pytest.param((beyond_the_log(),) * 2, OK, "told_before", id="told-once"),
        pytest.param(
            (beyond_the_log(commits=commits((0, 0, 120))),), OK, "no_leader_epoch", id="by-hand"
        ),
        pytest.param(
            (beyond_the_log(commits=commits((0, 0, 100), epochs=[5])),),
            OK,
            "within_the_log",
            id="at-the-end",
        ),
        pytest.param(
            (beyond_the_log(offsets=unseen_offsets(1)),), UNKNOWN, "end_not_seen", id="not-seen"
        ),
        pytest.param(
            (
                beyond_the_log(),
                beyond_the_log(**placed(topic_ids=(topic_id("orders", creation=1),))),
            ),
            OK,
            "another_topic",
            id="created-again",
        ),
    ],
)
def test_committed_beyond_the_log_end(
    looks: tuple[dict[str, Any], ...], verdict: Verdict, reason: str
) -> None:
    found = said(committed_beyond_log_end.judge, *looks)
    assert (found.verdict, found.reason) == (verdict, reason)


# ------------------------------------------------------------------ transactions that are lost whole
def committed(epoch: int = 4, *, second: float = 10, **more: Any) -> TransactionLog:
    """Return the end of a transaction of producer 7, whose markers have this epoch."""
    one = ended(
        ended_at=at(second),
        marker_epoch=epoch,
        partitions=frozenset({TopicPartition("orders", 0)}),
        **more,
    )
    return TransactionLog(is_read=True, ended=(one,))


def remembered_by_leader(epochs: dict[int, int]) -> dict[str, Any]:
    """Return a round in which the new leader told every producer that it knows."""
    found = replace(producers(rows=1, looked=[0]), epochs={0: epochs})
    return led_by_2(73, unclean_election_enabled=UNCLEAN_ALLOWED) | {"producers": found}


UNCLEAN: Final = led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)


@pytest.mark.parametrize(
    ("log", "epochs", "is_lost"),
    [
        pytest.param(committed(4), {7: 3}, True, id="v2-marker-is-missing"),
        pytest.param(committed(4), {7: 4}, False, id="marker-is-there"),
        pytest.param(committed(4), {7: 6}, False, id="went-on-since"),
        pytest.param(committed(3), {8: 0}, True, id="producer-is-unknown"),
        pytest.param(committed(3), {7: 3}, False, id="before-v2-it-cannot-be-told"),
        pytest.param(committed(4, outcome=Outcome.ABORTED), {}, False, id="aborted"),
    ],
)
def test_a_committed_transaction_that_left_no_trace_is_named(
    log: TransactionLog, epochs: dict[int, int], *, is_lost: bool
) -> None:
    looks = (ALONE, UNCLEAN | {"transaction_log": log}, remembered_by_leader(epochs))
    found = said(committed_records_lost.judge, *looks)
    assert (found.verdict, found.reason) == (
        (BREACH, "transaction_lost") if is_lost else (OK, "nothing_seen_is_missing")
    )
    if is_lost:
        assert found.evidence["lost_transaction_count"] == 1
        assert found.evidence["lost_transactions"] == [
            {
                "transactional_id": "payments",
                "producer_id": 7,
                "committed_at": "2025-06-02T12:00:10.000+00:00",
            }
        ]


@pytest.mark.parametrize(
    ("before", "after", "is_asked"),
    [
        pytest.param(ALONE, UNCLEAN, True, id="unclean"),
        pytest.param(led_by_1(isr=(1, 2)), led_by_2(100), False, id="clean"),
    ],
)
def test_every_producer_is_asked_for_where_something_may_be_lost(
    before: dict[str, Any], after: dict[str, Any], *, is_asked: bool
) -> None:
    looks = rounds(before, after | {"transaction_log": committed()})
    asked = committed_records_lost.judge(view_of(looks)).questions
    assert [isinstance(one, ProducersQuestion) and one.wants_every for one in asked] == (
        [True] if is_asked else []
    )


def test_what_was_committed_on_whole_partitions_is_not_kept() -> None:
    whole = rounds(led_by_1() | {"transaction_log": committed()})
    assert view_of(whole).memory.transactions.committed == {}
    many = [ALONE | {"transaction_log": committed()} for _ in range(3)]
    [kept] = view_of(rounds(*many)).memory.transactions.committed.values()
    assert len(kept) == 3
    later = snapshot(**ALONE, taken_at=at(700))
    assert view_of([*rounds(*many), later]).memory.transactions.committed == {}


def test_a_high_watermark_that_jumped_between_two_rounds_makes_no_election_clean() -> None:
    """A light look saw the jump; the ISR that is remembered is older than it."""
    *earlier, last = rounds(AHEAD, AHEAD, led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED))
    before: Memory | None = None
    for look in earlier:
        before = advance(look, before)
    assert before is not None
    light = RiskLooks(
        partitions=earlier[-1].partitions,
        row=ints(0),
        leader_epoch=ints(5),
        last_stable_offset=Column.of([135]),
        high_watermark=Column.of([135]),
        log_end_offset=Column.of([140]),
        looked_at_us=ints(microseconds(at(20))),
    )
    for looks, rule in ((before.looks, "possibly"), (refined(before.looks, light), "committed")):
        known = replace(before, looks=looks)
        view = View(snapshot=last, memory=advance(last, known), before=known, now=last.taken_at)
        found = RULES[rule](view).finding(0)
        assert found.verdict is BREACH
        assert found.evidence["election"] == "not_known"


# ------------------------------------------------------------------ what may hide a loss, or feign one
IN_SYNC: Final = led_by_1(end=105, unclean_election_enabled=UNCLEAN_ALLOWED)


def test_an_isr_that_shrank_after_the_leader_had_answered_last_makes_no_election_clean() -> None:
    allowed: dict[str, Any] = {"unclean_election_enabled": UNCLEAN_ALLOWED}
    silent = {**placed(1, isr=(1,), **allowed), "offsets": unseen_offsets(1)}
    looks = (led_by_1(isr=(1, 2), **allowed), silent, led_by_2(100, **allowed))
    assert said(RULES["possibly"], *looks).reason == "unseen"
    assert said(RULES["unclean"], *looks).reason == "nothing_seen_is_missing"


def test_what_happened_between_two_elections_is_not_known() -> None:
    """The winner was in sync when last seen; the ISR may have shrunk before the second election."""
    looks = (IN_SYNC, led_by_2(100, epoch=7, unclean_election_enabled=UNCLEAN_ALLOWED))
    assert said(RULES["possibly"], *looks).reason == "possible"
    assert said(RULES["unreplicated"], *looks).verdict is OK


@pytest.mark.parametrize(("seconds", "reason"), [(15, "nothing_says_so"), (120, "possible")])
def test_an_old_look_says_little_of_the_isr_at_an_election(seconds: float, reason: str) -> None:
    looks = [
        snapshot(taken_at=at(0), **IN_SYNC),
        snapshot(taken_at=at(seconds), **led_by_2(100, unclean_election_enabled=UNCLEAN_ALLOWED)),
    ]
    assert RULES["possibly"](view_of(looks)).finding(0).reason == reason


def test_a_setting_that_was_turned_off_since_was_on_at_the_election() -> None:
    alone = led_by_1(isr=(1,), end=120, unclean_election_enabled=UNCLEAN_ALLOWED)
    assert said(RULES["possibly"], alone, led_by_2(100)).reason == "possible"


def test_an_old_leader_that_follows_the_new_one_has_nothing_of_its_own() -> None:
    after = led_by_2(100, now=500, unclean_election_enabled=UNCLEAN_ALLOWED)
    after["offsets"] = offsets(
        1,
        leader_epoch=[6],
        last_stable_offset=[500],
        high_watermark=[500],
        log_end_offset=[500],
        replica_log_end_offsets=[480, 500, None],
    )
    found = said(RULES["possibly"], ALONE, after)
    assert (found.reason, found.evidence["ex_leader_end"]) == ("unseen", None)


def test_what_had_been_deleted_before_is_not_lost_again() -> None:
    alone = dict(ALONE)
    alone["offsets"] = offsets(1, log_start_offset=[90])
    found = said(RULES["committed"], alone, led_by_2(0, unclean_election_enabled=UNCLEAN_ALLOWED))
    assert (found.evidence["certain_from"], found.evidence["certain_offsets"]) == (90, 10)


def test_a_leader_that_has_not_heard_that_it_leads_no_more_takes_nothing_away() -> None:
    newer = {
        **placed(2, leader_epoch=Column.of([6])),
        "offsets": offsets(1, leader_epoch=[6], high_watermark=[200], last_stable_offset=[200]),
    }
    later = led_by_2(None, epoch=7, leader=3) | {"epoch_ends": epoch_ends((0, 6, 150))}
    for stale in ((), (led_by_1(),)):
        found = said(RULES["committed"], newer, *stale, later)
        assert (found.evidence["certain_from"], found.evidence["certain_to"]) == (150, 200)


def test_who_has_gone_on_with_the_new_log_has_read_nothing_that_is_gone() -> None:
    after = led_by_2(73, now=600, unclean_election_enabled=UNCLEAN_ALLOWED) | {
        "groups": (group(),),
        "commits": commits((0, 0, 500), epochs=[6]),
    }
    found = said(RULES["committed"], ALONE, after)
    assert found.evidence["groups_beyond"] == []
    assert found.evidence["groups_gone_on"] == [{"group": "billing", "committed_offset": 500}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            ALONE,
            led_by_2(73, isr=(1, 2), unclean_election_enabled=UNCLEAN_ALLOWED),
            id="it-follows-again",
        ),
        pytest.param(led_by_1(end=117), led_by_2(100), id="clean"),
    ],
)
def test_nobody_is_told_to_keep_a_broker_down_that_has_nothing_more(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    rule = "committed" if "epoch_ends" in after and before is ALONE else "unreplicated"
    assert said(RULES[rule], before, after).evidence["advice"] is None


def test_a_transaction_that_ended_after_the_leader_had_answered_is_not_lost() -> None:
    answered = remembered_by_leader({7: 3}) | {"transaction_log": committed(4, second=29)}
    found = said(RULES["committed"], ALONE, UNCLEAN, answered)
    assert found.verdict is OK


@pytest.mark.parametrize(
    ("look", "rule"),
    [
        pytest.param(
            read_in_epoch_5(100) | {"offsets": unseen_offsets(1)}, "possibly", id="leader-unseen"
        ),
        pytest.param(read_in_epoch_5(100, epoch_end=None), "possibly", id="end-not-told"),
    ],
)
def test_what_could_not_be_seen_for_a_round_is_not_told_again(
    look: dict[str, Any], rule: str
) -> None:
    assert said(RULES[rule], read_in_epoch_5(100), look, read_in_epoch_5(100)).verdict is OK


def test_a_commit_beyond_the_log_is_told_once_whatever_is_unseen_between() -> None:
    unseen = beyond_the_log(offsets=unseen_offsets(1))
    found = said(committed_beyond_log_end.judge, beyond_the_log(), unseen, beyond_the_log())
    assert (found.verdict, found.reason) == (OK, "told_before")
    back = beyond_the_log(commits=commits((0, 0, 90), epochs=[5]))
    again = said(committed_beyond_log_end.judge, beyond_the_log(), back, beyond_the_log())
    assert again.verdict is BREACH
