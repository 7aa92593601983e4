"""Cases of `record_error_rate_high`: whose records fail, who is silent, and who is counted once."""

from __future__ import annotations

from typing import Any

import pytest

from rules.catalogue.record_error_rate_high import judge
from rules.completeness import Completeness
from rules.facts.scrapes import ClientReading, Scrapes
from rules.judgement import Finding, Judgement
from rules.open_findings import EndReason, OpenFinding, apply_changes, next_changes
from rules.verdict import SubjectKind, Verdict
from tests.factories import at, snapshot
from tests.scraped import client_reading, counted, endpoint_state, rise, scrapes
from tests.unit.rules.catalogue.judging import view_of

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
SERVER = "http://prometheus:9090"
BOTH = (endpoint_state(), endpoint_state(SERVER))
SILENT = (endpoint_state(is_fresh=False), endpoint_state(SERVER))


def judgement_of(seen: Scrapes) -> Judgement:
    return judge(view_of([snapshot(scrapes=seen)]))


def only(seen: Scrapes) -> Finding:
    judgement = judgement_of(seen)
    assert len(judgement.subjects) == 1
    return judgement.finding(0)


def errors(*rises: tuple[float, float, int]) -> dict[str, Any]:
    return {"errors": counted(*(rise(*one) for one in rises))}


FIRST = counted(increase=None, since=None, rate=None)
CASES: dict[str, tuple[str, dict[str, Any], Verdict, str]] = {
    "none": ("nothing failed", {}, OK, "no_errors"),
    "six": ("a batch that failed is over", errors((-15, 0, 6)), OK, "few_errors"),
    "seven": ("more than six in a minute", errors((-15, 0, 7)), BREACH, "records_fail"),
    "in two observations": ("it adds up", errors((-30, -15, 4), (-15, 0, 4)), BREACH, "records_fail"),
    "an hour ago": ("it is over", errors((-90, -75, 500)), OK, "no_errors"),
    "a part of it": ("a third of 18 was in the minute", errors((-180, 0, 18)), OK, "few_errors"),
    "over a silence": ("half an hour with 300", errors((-1800, 0, 300)), BREACH, "records_fail"),
    "rate alone": ("0.2 a second are 12", {"errors": counted(total=None, increase=None, rate=0.2)},
                   BREACH, "records_fail"),
    "a low rate alone": ("0.05 a second are 3",
                         {"errors": counted(total=None, increase=None, rate=0.05)}, OK, "few_errors"),
    "first observation": ("a counter says nothing by itself", {"errors": FIRST}, UNKNOWN, "first_observation"),
    "first observation with a rate": (
        "the client has measured it itself",
        {"errors": counted(increase=None, since=None, rate=0.0)}, OK, "no_errors",
    ),
    "retries alone": ("no error is told", {"errors": None}, UNKNOWN, "errors_not_reported"),
    "real loss": (
        "a real loss may move retries alone: this rule does not see it",
        {"retries": counted(rise(-15, 0, 50))}, OK, "no_errors",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("because", "change", "verdict", "reason"), CASES.values(), ids=CASES)
def test_a_client_is_judged_by_what_it_says_of_itself(
    because: str, change: dict[str, Any], verdict: Verdict, reason: str
) -> None:
    found = only(scrapes(client_reading(**change)))
    assert (found.verdict, found.reason) == (verdict, reason), because
    assert dict(found.labels) == {"cluster": "default", "client": "payments", "topic": "orders"}


FAILING = errors((-15, 0, 7))


def test_evidence_is_records_per_minute_and_who_told_it() -> None:
    reading = client_reading(**FAILING, retries=counted(rise(-15, 0, 9)))
    found = only(scrapes(reading))
    assert found.evidence["record_errors_per_minute"] == 7
    assert found.evidence["record_retries_per_minute"] == 9
    assert found.evidence["endpoints"] == [
        {
            "endpoint": reading.endpoint,
            "address": "app-1:8081",
            "record_errors_per_minute": 7,
            "record_retries_per_minute": 9,
            "as_of": "2025-06-02T12:00:00.000+00:00",
        }
    ]


def test_an_endpoint_that_is_silent_makes_its_clients_unknown_and_no_others() -> None:
    seen = scrapes(
        client_reading(**FAILING),
        client_reading("billing", endpoint=SERVER, address="app-2:1"),
        endpoints=SILENT,
    )
    told = {
        one.labels["client"]: (one.verdict, one.reason)
        for one in judgement_of(seen).findings(OK, UNKNOWN, BREACH)
    }
    assert told == {"payments": (UNKNOWN, "endpoint_silent"), "billing": (OK, "no_errors")}


def test_what_is_too_old_is_no_evidence() -> None:
    found = only(scrapes(client_reading(**FAILING), endpoints=SILENT))
    assert found.evidence["record_errors_per_minute"] is None


def test_one_process_that_fails_is_a_breach_though_another_is_silent() -> None:
    other = client_reading(endpoint=SERVER, address="app-2:1", **FAILING)
    assert only(scrapes(client_reading(), other, endpoints=SILENT)).verdict is BREACH
    quiet = client_reading(endpoint=SERVER, address="app-2:1")
    assert only(scrapes(client_reading(), quiet, endpoints=SILENT)).reason == "endpoint_silent"


UNTOLD = client_reading(address="app-2:1", errors=None, retries=counted(rise(-15, 0, 50)))
PARTLY: dict[str, tuple[str, dict[str, Any], Verdict, str]] = {
    "none-elsewhere": ("half of it is not all of it", {}, UNKNOWN, "errors_not_reported"),
    "few-elsewhere": ("it may be more", errors((-15, 0, 6)), UNKNOWN, "errors_not_reported"),
    "many-elsewhere": ("it is enough already", FAILING, BREACH, "records_fail"),
}


@pytest.mark.parametrize(("because", "change", "verdict", "reason"), PARTLY.values(), ids=PARTLY)
def test_a_process_that_tells_no_errors_leaves_open_whether_its_records_fail(
    because: str, change: dict[str, Any], verdict: Verdict, reason: str
) -> None:
    found = only(scrapes(client_reading(**change), UNTOLD))
    assert (found.verdict, found.reason) == (verdict, reason), because


def test_an_endpoint_that_tells_errors_speaks_for_one_that_does_not() -> None:
    other = client_reading(endpoint=SERVER, errors=None)
    for readings in ((client_reading(), other), (other, client_reading())):
        assert only(scrapes(*readings, endpoints=BOTH)).reason == "no_errors"


SHARED: dict[str, tuple[str, tuple[ClientReading, ...], int]] = {
    "processes": (
        "the same client id in two processes is two clients that fail together",
        (client_reading(**FAILING), client_reading(address="app-2:1", **FAILING)),
        14,
    ),
    "endpoints": (
        "two endpoints that tell of one process tell the same",
        (client_reading(**FAILING), client_reading(endpoint=SERVER, **errors((-15, 0, 5)))),
        7,
    ),
}


@pytest.mark.parametrize(("because", "readings", "expected"), SHARED.values(), ids=SHARED)
def test_what_is_told_twice_is_counted_once(
    because: str, readings: tuple[ClientReading, ...], expected: int
) -> None:
    found = only(scrapes(*readings, endpoints=BOTH))
    assert found.evidence["record_errors_per_minute"] == expected, because


def test_an_endpoint_that_is_fresh_speaks_for_one_that_is_silent() -> None:
    seen = scrapes(client_reading(**FAILING), client_reading(endpoint=SERVER), endpoints=SILENT)
    assert only(seen).reason == "no_errors"


def test_a_client_that_tells_its_topics_is_not_judged_once_more_for_all_of_them() -> None:
    seen = scrapes(client_reading(), client_reading(topic=None, **FAILING))
    assert only(seen).labels["topic"] == "orders"
    alone = only(scrapes(client_reading(topic=None, **FAILING)))
    assert dict(alone.labels) == {"cluster": "default", "client": "payments"}
    assert alone.verdict is BREACH


def test_a_client_that_is_gone_is_not_judged() -> None:
    gone = client_reading(is_gone=True, seen_at=at(-30), **FAILING)
    assert len(judgement_of(scrapes(gone)).subjects) == 0


def test_without_endpoints_there_is_nothing_to_judge() -> None:
    judgement = judgement_of(Scrapes.unread())
    assert (len(judgement.subjects), judgement.subjects.kind) == (0, SubjectKind.CLIENT)


NEVER = endpoint_state(answered_since=None, answered_at=None, is_fresh=False)


@pytest.mark.parametrize(
    "seen",
    [scrapes(endpoints=(NEVER,)), scrapes(endpoints=(), lists_known=False)],
    ids=["never-answered", "a-list-that-was-never-read"],
)
def test_where_nobody_has_ever_answered_nothing_is_known(seen: Scrapes) -> None:
    judgement = judgement_of(seen)
    assert judgement.subjects.kind is SubjectKind.CLUSTER
    assert judgement.finding(0).verdict is UNKNOWN
    assert judgement.finding(0).reason == "endpoint_silent"


def test_a_list_without_endpoints_has_no_clients() -> None:
    assert len(judgement_of(scrapes(endpoints=())).subjects) == 0


def test_a_finding_ends_with_its_client_and_not_with_its_endpoint() -> None:
    open_: dict[Any, OpenFinding] = {}

    def next_round(seen: Scrapes) -> list[EndReason | None]:
        nonlocal open_
        observation = snapshot(scrapes=seen)
        changes = next_changes(
            open_,
            [judge(view_of([observation]))],
            completeness=Completeness.of(observation),
            now=observation.taken_at,
        )
        open_ = apply_changes(open_, changes, observation.taken_at)
        return [one.end_reason for one in changes]

    failing = client_reading(**FAILING)
    assert next_round(scrapes(failing)) == [None]
    silent = scrapes(failing, endpoints=(endpoint_state(is_fresh=False),))
    next_round(silent)
    assert [one.verdict for one in open_.values()] == [UNKNOWN]
    for _ in range(3):
        next_round(scrapes(endpoints=(NEVER,)))
    assert len(open_) == 1, "a process that was started anew has not heard of the client yet"
    next_round(scrapes())
    assert next_round(scrapes()) == [EndReason.SUBJECT_GONE]
