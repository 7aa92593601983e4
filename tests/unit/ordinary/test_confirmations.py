"""What confirms a warning in the matrix of ordinary trouble, and what does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.ordinary.audited import AcknowledgementPause
from tests.integration.ordinary.confirmations import CONFIRMATIONS, confirmation_of
from tests.integration.ordinary.coordinator_logs import Decision
from tests.integration.ordinary.placement import PlacementProblem
from tests.integration.ordinary.promises import BrokenPromise
from tests.integration.ordinary.services import ReportedFinding
from tests.integration.ordinary.truth import Truth

START = datetime(2026, 11, 23, 8, tzinfo=UTC)
SINCE = START + timedelta(minutes=10)
HERE, ELSEWHERE = ("orders", 0), ("orders", 1)
QUIET = Truth(
    broken=[],
    figures={},
    commits={},
    decisions=[],
    unclean=frozenset(),
    replaced={},
    writers={("orders", 0): "pipeline"},
    readable={("orders", 0): [(datetime(2026, 11, 23, 7, tzinfo=UTC), 20)]},
    pauses=[],
    problems=[],
)


def at(seconds: float) -> datetime:
    """Return a time so long before the finding."""
    return SINCE - timedelta(seconds=seconds)


def reported(rule: str, severity: str = "critical", **evidence: Any) -> ReportedFinding:
    labels = {"topic": "orders", "partition": "0", "group": "billing"}
    document = {
        "rule": rule,
        "severity": severity,
        "labels": labels | {"transactional_id": "pipeline"},
        "evidence": evidence,
        "since": SINCE.isoformat(),
        "last_breach_at": (SINCE + timedelta(seconds=5)).isoformat(),
    }
    return ReportedFinding(service="A", document=document)


def commits(*moves: tuple[float, int]) -> Truth:
    made = [(at(seconds), offset) for seconds, offset in moves]
    return replace(QUIET, commits={("billing", "orders", 0): made})


def decided(*, began: float, decided: float, completed: float, is_abort: bool = False) -> Truth:
    decision = Decision(
        transactional_id="pipeline",
        began=at(began),
        at=at(decided),
        completed=at(completed),
        is_abort=is_abort,
    )
    return replace(QUIET, decisions=[decision])


def paused(begin: float, end: float, place: tuple[str, int] = HERE) -> Truth:
    pause = AcknowledgementPause(place=place, begin=at(begin), end=at(end))
    return replace(QUIET, pauses=[pause])


def placed(seconds: float, *, in_sync: int = 1, leader: bool = True) -> Truth:
    problem = PlacementProblem(at=at(seconds), place=HERE, in_sync=in_sync, has_leader=leader)
    return replace(QUIET, problems=[problem])


@dataclass(frozen=True)
class Case:
    rule: str
    truth: Truth
    is_confirmed: bool
    because: str


CASES = [
    *(Case(rule, QUIET, False, "nobody else has seen anything") for rule in CONFIRMATIONS),
    Case("observation_stale", QUIET, False, "no source confirms a rule that is not listed"),
    Case(
        "committed_records_lost",
        replace(QUIET, broken=[BrokenPromise(place=HERE, what="gone")]),
        True,
        "clients miss records there",
    ),
    Case(
        "committed_records_lost",
        replace(QUIET, broken=[BrokenPromise(place=ELSEWHERE, what="gone")]),
        False,
        "they miss them in another partition",
    ),
    Case("consumer_group_rewound", commits((90, 5), (60, 9), (30, 7)), True, "it went back"),
    Case("consumer_group_rewound", commits((90, 5), (60, 9), (30, 9)), False, "it stood"),
    Case("consumer_group_stalled", commits((200, 5), (62, 9)), True, "nothing for 62 s"),
    Case("consumer_group_stalled", commits((200, 5), (62, 9), (30, 10)), False, "30 s ago"),
    Case("consumer_group_stalled", commits((200, 5)), False, "it is abandoned"),
    Case("consumer_group_stalled", commits((200, 5), (62, 21)), False, "nothing is left to read"),
    Case("high_watermark_stuck", paused(31, 0), True, "31 s without an acknowledgement"),
    Case("high_watermark_stuck", paused(20, 0), False, "20 s are allowed"),
    Case("high_watermark_stuck", paused(131, 100), False, "it was over long before"),
    Case("high_watermark_stuck", paused(31, 0, ELSEWHERE), False, "in another partition"),
    Case(
        "transaction_marker_stuck",
        decided(began=70, decided=31, completed=-1),
        True,
        "its markers took 32 s",
    ),
    Case(
        "transaction_marker_stuck",
        decided(began=40, decided=0, completed=-1),
        False,
        "the transaction was long, and its markers took a second",
    ),
    Case(
        "last_stable_offset_stuck",
        decided(began=121, decided=0, completed=-1),
        True,
        "open for two minutes",
    ),
    Case(
        "last_stable_offset_stuck",
        decided(began=40, decided=0, completed=-1),
        False,
        "open for 40 s",
    ),
    Case("partition_under_min_isr", placed(3), True, "metadata shows it"),
    Case("partition_under_min_isr", placed(60), False, "that was a minute before"),
    Case("partition_under_min_isr", placed(3, leader=False), False, "that is another error"),
    Case("partition_offline", placed(3, in_sync=0, leader=False), True, "metadata shows it"),
    Case("producer_fenced", replace(QUIET, replaced={"pipeline": 1}), True, "a client died"),
    Case("producer_fenced", replace(QUIET, replaced={"other": 1}), False, "another one did"),
    Case(
        "sequence_gap_reordering",
        decided(began=9, decided=2, completed=1, is_abort=True),
        True,
        "its transaction was aborted",
    ),
    Case(
        "sequence_gap_reordering",
        decided(began=9, decided=2, completed=1),
        False,
        "its transaction was committed",
    ),
    Case(
        "sequence_gap_reordering",
        decided(began=99, decided=90, completed=89, is_abort=True),
        False,
        "that was an earlier transaction",
    ),
    Case("unclean_leader_election", replace(QUIET, unclean=frozenset({HERE})), True, "it was"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.because}")
def test_a_warning_is_confirmed_by_its_own_source_alone(case: Case) -> None:
    is_confirmed = confirmation_of(reported(case.rule), case.truth) is not None
    assert is_confirmed is case.is_confirmed, case.because


def test_info_needs_no_confirmation_unless_it_calls_an_election_unclean() -> None:
    rule = "unreplicated_records_lost"
    assert confirmation_of(reported(rule, "info", election="clean"), QUIET) == "info"
    assert confirmation_of(reported(rule, "info", election="unclean"), QUIET) is None


@pytest.mark.parametrize(
    ("partitions", "is_confirmed"), [((0,), True), ((0, 1), False), ((1,), False), ((), False)]
)
def test_a_rewind_of_a_group_is_confirmed_on_each_partition_that_it_names(
    partitions: tuple[int, ...], *, is_confirmed: bool
) -> None:
    truth = commits((90, 5), (60, 9), (30, 7))
    shown = [{"topic": "orders", "partition": number} for number in partitions]
    finding = reported("consumer_group_rewound", partitions=shown)
    labels = {"group": "billing"}
    finding = replace(finding, document={**finding.document, "labels": labels})
    assert (confirmation_of(finding, truth) is not None) is is_confirmed
