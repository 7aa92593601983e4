"""Losses of one partition are a list: each with its own range, and what is said later of that one alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from rules.catalogue import committed_records_lost
from rules.catalogue.all_rules import judge_round
from rules.completeness import Completeness
from rules.facts.column import Column, Ragged
from rules.facts.memory import Memory
from rules.loss.summary import RULES
from rules.open_findings import (
    EVENT_LASTS,
    Identity,
    OpenFinding,
    apply_changes,
    next_changes,
)
from rules.remembering import view_of_round
from rules.verdict import Severity
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import at, broker, epoch_ends, offsets, partitions, snapshot
from tests.unit.rules.loss.replica_lines import led_by_1
from tests.unit.rules.loss.test_proven_and_restored import led_again

COMMITTED, POSSIBLY = "committed_records_lost", "records_possibly_lost"
UNCLEAN, UNREPLICATED = "unclean_leader_election", "unreplicated_records_lost"
ALLOWED: Final = {"unclean_election_enabled": Column.of([1])}

Open = dict[Identity, OpenFinding]


def observe(
    leader: int, epoch: int, end: int, *ends: tuple[int, int], isr: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Return an observation of a leader whose log ends at `end`; `ends` are an older epoch and its end."""
    column = [end]
    return {
        "partitions": partitions(
            {"orders": 1},
            leader=Column.of([leader]),
            leader_epoch=Column.of([epoch]),
            isr=Ragged.of([isr or (leader,)]),
            **ALLOWED,
        ),
        "offsets": offsets(
            1,
            leader_epoch=[epoch],
            last_stable_offset=column,
            high_watermark=column,
            log_end_offset=column,
        ),
        "epoch_ends": epoch_ends(*((0, asked, told) for asked, told in ends)),
    }


def opened(
    *observations: dict[str, Any], memory: Memory | None = None, known: Open | None = None
) -> Open:
    """Return what is open of losses after rounds 15 s apart."""
    entries = dict(known or {})
    for number, one in enumerate(observations):
        seen = snapshot(taken_at=at(15 * number), **one)
        view = view_of_round(seen, memory)
        memory = view.memory
        said = [one for one in judge_round(view, {}).judgements if one.rule.rule_id in RULES]
        changes = next_changes(entries, said, completeness=Completeness.of(seen), now=seen.taken_at)
        entries = apply_changes(entries, changes, seen.taken_at)
    return entries


def of_rule(entries: Open, rule: str) -> list[tuple[str, str, Severity]]:
    """Return leader epoch, reason and severity of a rule's findings, by epoch."""
    found = [one for one in entries.values() if one.identity[0] == rule]
    rows = [(dict(one.identity[1])["leader_epoch"], one.reason, one.severity) for one in found]
    return sorted(rows)


def certain(entries: Open, epoch: str) -> tuple[Any, Any]:
    [found] = [
        one
        for one in entries.values()
        if one.identity[0] == COMMITTED and dict(one.identity[1])["leader_epoch"] == epoch
    ]
    return found.evidence["certain_from"], found.evidence["certain_to"]


FIRST: Final = (observe(1, 5, 100), observe(2, 6, 73, (5, 73)))
LOST: Final = ("6", "lost", Severity.CRITICAL)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param((observe(3, 8, 90, (6, 90)),), id="unclean-and-nothing-is-missing"),
        pytest.param((observe(2, 6, 90, isr=(2, 3)), observe(3, 7, 90, (6, 90))), id="clean"),
        pytest.param((observe(3, 8, 80, (6, 80)),), id="unclean-and-records-are-missing"),
    ],
)
def test_a_later_election_leaves_a_loss_as_it_is(later: tuple[dict[str, Any], ...]) -> None:
    entries = opened(*FIRST, observe(2, 6, 90), *later)
    assert of_rule(entries, COMMITTED)[0] == LOST
    assert certain(entries, "6") == (73, 100)


def test_two_losses_of_one_partition_have_their_own_ranges() -> None:
    entries = opened(*FIRST, observe(2, 6, 90), observe(3, 8, 80, (6, 80)))
    assert of_rule(entries, COMMITTED) == [LOST, ("8", "lost", Severity.CRITICAL)]
    assert (certain(entries, "6"), certain(entries, "8")) == ((73, 100), (80, 90))
    assert [row[:2] for row in of_rule(entries, UNCLEAN)] == [("6", "lost"), ("8", "lost")]


def test_a_possible_loss_that_is_bad_is_not_lowered_by_one_that_nobody_saw() -> None:
    ahead = observe(1, 5, 100)
    ahead["offsets"] = replace(ahead["offsets"], log_end_offset=Column.of([120]))
    entries = opened(ahead, ahead, observe(2, 6, 100, (5, 100)), observe(3, 8, 100, (6, 100)))
    assert of_rule(entries, POSSIBLY) == [
        ("6", "possible", Severity.CRITICAL),
        ("8", "election_not_known", Severity.INFO),
    ]


def test_what_is_back_is_back_although_another_loss_unchanged() -> None:
    """Broker 1 comes back with its old log; what broker 2 wrote meanwhile is gone in turn."""
    meanwhile = observe(2, 6, 90)
    back = led_again((5, 5, 100), (6, 5, 100))
    entries = opened(*FIRST, meanwhile, back, back)
    assert of_rule(entries, COMMITTED) == [
        ("6", "restored", Severity.INFO),
        ("7", "lost", Severity.CRITICAL),
    ]
    assert (certain(entries, "6"), certain(entries, "7")) == ((73, 100), (73, 90))


def test_the_epoch_of_a_leader_that_brought_all_back_begins_behind_that() -> None:
    """Its successor has nothing of that epoch, and everything before: nothing more is lost."""
    back = led_again((5, 5, 100), (6, 5, 100))
    successor = led_again((7, 5, 100), leader=2, epoch=9)
    entries = opened(*FIRST, observe(2, 6, 90), back, back, successor, successor)
    assert [row[0] for row in of_rule(entries, COMMITTED)] == ["6", "7"]


def test_a_finding_of_an_older_version_is_read_and_ends_as_it_would_have() -> None:
    labels = (("cluster", "default"), ("partition", "0"), ("topic", "orders"))
    older = OpenFinding(
        identity=(COMMITTED, labels),
        **{
            name: getattr(next(iter(opened(*FIRST).values())), name)
            for name in ("kind", "verdict", "severity", "evidence", "since", "last_breach_at")
        },
        reason="lost",
        last_judged_at=at(0),
    )
    known = {older.identity: older}
    entries = opened(*FIRST, known=known)
    assert entries[older.identity].reason == "lost"
    assert of_rule({k: v for k, v in entries.items() if k not in known}, COMMITTED) == [LOST]
    seen = snapshot(taken_at=older.last_breach_at + EVENT_LASTS, **observe(2, 6, 73))
    said = committed_records_lost.judge(view_of_round(seen, None))
    changes = next_changes(known, [said], completeness=Completeness.of(seen), now=seen.taken_at)
    assert [(one.identity, one.end_reason) for one in changes] == [(older.identity, "expired")]


def incidents(entries: Open) -> dict[str, set[str]]:
    """Return the partitions of each incident."""
    found: dict[str, set[str]] = {}
    for one in entries.values():
        found.setdefault(str(one.evidence["incident"]), set()).add(
            dict(one.identity[1])["partition"]
        )
    return found


def led_together(leaders: tuple[int, ...], epochs: tuple[int, ...], *told: int) -> dict[str, Any]:
    """Return an observation of several partitions; `told` had its end at 73, those others at 100."""
    rows = len(leaders)
    ends = [73 if number in told else 100 for number in range(rows)]
    return {
        "partitions": partitions(
            {"orders": rows},
            leader=Column.of(list(leaders)),
            isr=Ragged.of([(leader,) for leader in leaders]),
            unclean_election_enabled=Column.of([1] * rows),
        ),
        "offsets": offsets(
            rows,
            leader_epoch=list(epochs),
            last_stable_offset=ends,
            high_watermark=ends,
            log_end_offset=ends,
        ),
        "epoch_ends": epoch_ends(*((number, 5, 73) for number in told)),
    }


def test_what_one_broker_left_behind_is_one_incident_also_rounds_later() -> None:
    entries = opened(
        led_together((1, 1, 3), (5, 5, 5)),
        led_together((2, 1, 3), (6, 5, 5), 0),
        led_together((2, 2, 3), (6, 6, 5), 1),
        led_together((2, 2, 2), (6, 6, 6), 2),
    )
    assert incidents(entries) == {
        "broker-1-20250602T120015Z": {"0", "1"},
        "broker-3-20250602T120045Z": {"2"},
    }


def test_a_broker_that_dies_again_is_another_incident() -> None:
    entries = opened(*FIRST, observe(1, 7, 73, (6, 73)), observe(2, 9, 60, (7, 60)))
    assert set(incidents(entries)) >= {"broker-1-20250602T120015Z", "broker-1-20250602T120045Z"}


def test_an_incident_outlives_a_restart() -> None:
    before = led_together((1, 1), (5, 5)), led_together((2, 1), (6, 5), 0)
    memory: Memory | None = None
    for number, one in enumerate(before):
        memory = view_of_round(snapshot(taken_at=at(15 * number), **one), memory).memory
    assert memory is not None
    kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    entries = opened(led_together((2, 2), (6, 6), 1), memory=kept)
    assert incidents(entries) == {"broker-1-20250602T120015Z": {"1"}}


GONE: Final[dict[str, Any]] = {"partitions": partitions({}), "offsets": offsets(0)}


def test_a_loss_outlives_its_topic_and_says_so() -> None:
    entries = opened(*FIRST, GONE)
    assert [one.is_subject_gone for one in entries.values()] == [False] * len(entries)
    entries = opened(*FIRST, GONE, GONE, GONE)
    assert of_rule(entries, COMMITTED) == [LOST]
    assert all(one.is_subject_gone and one.absent_rounds == 2 for one in entries.values())


def test_a_topic_that_was_created_again_is_another_one() -> None:
    ids = {"topic_ids": ("BBBBBBBBBBBBBBBBBBBBBB",)}
    anew = [
        one | {"partitions": replace(one["partitions"], **ids)}
        for one in (*FIRST, observe(2, 6, 73))
    ]
    entries = opened(*FIRST, *anew)
    assert of_rule(entries, COMMITTED) == [LOST, LOST]
    gone = [one.is_subject_gone for key, one in entries.items() if key[0] == COMMITTED]
    assert sorted(gone) == [False, True]


def alone() -> dict[str, Any]:
    """Return an observation of a topic with one replica."""
    seen = observe(1, 5, 100)
    return seen | {"partitions": replace(seen["partitions"], replicas=Ragged.of([(1,)]))}


def forbidden() -> dict[str, Any]:
    """Return an observation of a topic whose leader is always one in sync."""
    seen = observe(1, 5, 100)
    no = Column.of([0])
    return seen | {"partitions": replace(seen["partitions"], unclean_election_enabled=no)}


UNTOLD: Final = observe(2, 6, 73)
DEAD: Final = {"brokers": (broker(2), broker(3))}


@pytest.mark.parametrize(
    ("observations", "is_listed"),
    [
        pytest.param((observe(1, 5, 100), UNTOLD), True, id="elected-and-not-asked-yet"),
        pytest.param((observe(1, 5, 100), GONE | DEAD), True, id="its-only-leader-died"),
        pytest.param((observe(1, 5, 100),), False, id="its-leader-is-there"),
        pytest.param(
            (observe(1, 5, 100, isr=(1, 2)), GONE | DEAD), False, id="another-was-in-sync"
        ),
        pytest.param((alone(), GONE | DEAD), False, id="it-had-no-other-replica"),
        pytest.param((forbidden(), GONE | DEAD), False, id="unclean-elections-are-forbidden"),
        pytest.param((observe(1, 5, 100, isr=(1, 2)), UNTOLD), False, id="one-in-sync-was-elected"),
    ],
)
def test_a_loss_that_could_not_be_judged_in_time_is_listed(
    observations: tuple[dict[str, Any], ...], *, is_listed: bool
) -> None:
    entries = opened(*observations, GONE)
    found = [row for row in of_rule(entries, POSSIBLY) if row[1] == "not_determinable"]
    assert bool(found) is is_listed
    assert all(severity is Severity.INFO for _, _, severity in found)
    assert of_rule(entries, COMMITTED) == []
    if is_listed:
        [one] = [one for one in entries.values() if one.reason == "not_determinable"]
        assert one.evidence["leader_before"] == 1
        assert one.evidence["high_watermark"] == 100
        assert one.evidence["incident"] is not None


def test_nothing_is_concluded_from_a_list_that_is_not_whole() -> None:
    entries = opened(observe(1, 5, 100), UNTOLD, GONE | {"placement_complete": False})
    assert [row for row in of_rule(entries, POSSIBLY) if row[1] == "not_determinable"] == []


def test_the_first_observation_of_all_knows_of_no_loss() -> None:
    assert opened(led_by_1()) == {}
