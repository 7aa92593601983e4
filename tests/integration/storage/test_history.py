"""What readers are told of findings that were, on a real database of both majors."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import Engine
from starlette.testclient import TestClient

from rules.errors import StoreError
from rules.open_findings import EndReason
from rules.verdict import Kind, Severity, Verdict
from service.storage.findings.findings import labels_hash
from service.storage.findings.history import FindingFilter, FindingHistory, PastFinding
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.rounds import store_rounds
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope, StoredTokens
from tests.factories import CLUSTER_ID, NOON, at
from tests.integration.storage.given import Story, made_round
from tests.unit.service.api.given import World

pytestmark = pytest.mark.integration

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH
ENDED, EVERY = FindingFilter(only_ended=True), FindingFilter(only_ended=False)


def history(engine: Engine, name: str = "default") -> FindingHistory:
    return FindingHistory(lambda: engine, name)


def topics(found: list[PastFinding]) -> list[str]:
    return [past.finding.labels["topic"] for past in found]


def test_ended_findings_come_by_their_end_and_all_by_their_start(database: Engine) -> None:
    rounds = Story(database)
    for verdicts in (
        {"a": BREACH},
        {"a": BREACH, "b": BREACH},
        {"a": BREACH, "b": OK, "c": BREACH},
        {"a": OK, "c": UNKNOWN},
    ):
        store_rounds(database, [rounds.round(verdicts)])
    assert topics(history(database).page(ENDED, 10)) == ["a", "b"]
    assert topics(history(database).page(EVERY, 10)) == ["c", "b", "a"]
    (ended, _) = history(database).page(ENDED, 10)
    assert (ended.finding.end_reason, ended.finding.ended_at) == (EndReason.OK, at(60))
    assert ended.cluster_id == CLUSTER_ID


@pytest.mark.parametrize("wanted", [ENDED, EVERY])
def test_pages_show_every_finding_once_although_many_share_a_time(
    database: Engine, wanted: FindingFilter
) -> None:
    rounds = Story(database)
    names = [f"t{number}" for number in range(7)]
    for verdict in (BREACH, OK):
        store_rounds(database, [rounds.round(dict.fromkeys(names, verdict))])
    seen: list[str] = []
    after = None
    for _ in count():
        page = history(database).page(
            FindingFilter(only_ended=wanted.only_ended, after=after), limit=3
        )
        if not page:
            break
        seen += topics(page)
        last = page[-1].finding
        timestamp = last.ended_at if wanted.only_ended else last.since
        assert timestamp is not None
        after = (timestamp, last.id)
    assert sorted(seen) == names


@pytest.mark.parametrize("state", ["ended", "all"])
def test_the_cursors_of_the_api_lead_through_the_database(database: Engine, state: str) -> None:
    rounds = Story(database)
    names = [f"t{number}" for number in range(5)]
    odd = NOON + timedelta(microseconds=123_457)
    store_rounds(database, [rounds.round(dict.fromkeys(names, BREACH), at=odd)])
    store_rounds(database, [rounds.round(dict.fromkeys(names, OK), at=odd + timedelta(minutes=1))])
    client = TestClient(World().app(history=history(database)), base_url="http://localhost")
    url, found = f"/api/v1/findings?state={state}&limit=2", []
    while url:
        answer = client.get(url)
        found += answer.json()["items"]
        url = answer.links.get("next", {}).get("url", "")
    assert sorted(item["labels"]["topic"] for item in found) == names
    assert {item["since"] for item in found} == {"2025-06-02T12:00:00.123457Z"}
    story = client.get(f"/api/v1/findings/{found[0]['id']}").json()
    assert [step["to_verdict"] for step in story["transitions"]] == ["breach", "ok"]


def test_filters_hold_together(database: Engine) -> None:
    rounds = Story(database)
    for verdicts in ({"a": BREACH, "b": BREACH}, {"a": OK, "b": UNKNOWN}):
        store_rounds(database, [rounds.round(verdicts)])
    reader = history(database)
    for wanted, expected in (
        (FindingFilter(only_ended=False, verdict=UNKNOWN), ["b"]),
        (
            FindingFilter(only_ended=False, rule_id="some_rule", severity=Severity.WARNING),
            ["b", "a"],
        ),
        (FindingFilter(only_ended=False, severity=Severity.CRITICAL), []),
        (FindingFilter(only_ended=False, rule_id="another"), []),
        (FindingFilter(only_ended=True, verdict=UNKNOWN), []),
    ):
        assert topics(reader.page(wanted, 10)) == expected


def test_one_finding_is_found_by_the_beginning_of_its_hash(database: Engine) -> None:
    rounds = Story(database)
    for verdicts in ({"a": BREACH, "b": BREACH}, {"a": OK, "b": BREACH}):
        store_rounds(database, [rounds.round(verdicts)])
    reader = history(database)
    digits = labels_hash({"cluster": "default", "topic": "a"})[:16]
    found = reader.one("some_rule", digits)
    assert found is not None
    assert found.finding.labels["topic"] == "a"
    steps = [step.to_verdict for step in reader.transitions(found.finding.id)]
    assert steps == [BREACH, OK]
    assert reader.one("some_rule", "0" * 16) is None
    assert reader.one("another", digits) is None
    assert reader.one("some_rule", "%") is None, "a pattern is no beginning"


def test_of_two_clusters_with_one_name_the_newest_finding_is_meant(database: Engine) -> None:
    old = Story(database)
    store_rounds(database, [old.round({"a": BREACH})])
    new = Story(database)
    new.key = ClusterKey("default", "another")
    made = new.round({"a": BREACH}, at=NOON + timedelta(hours=1))
    store_rounds(database, [made])
    found = history(database).one(
        "some_rule", labels_hash({"cluster": "default", "topic": "a"})[:16]
    )
    assert found is not None
    assert found.cluster_id == "another"
    assert len(history(database).page(EVERY, 10)) == 2
    assert history(database, "elsewhere").page(EVERY, 10) == []


def test_a_name_with_nul_has_the_hash_of_what_is_stored(database: Engine) -> None:
    rounds = Story(database)
    store_rounds(database, [rounds.round({"nul\0": BREACH})])
    digits = labels_hash({"cluster": "default", "topic": "nul\0"})[:16]
    assert history(database).one("some_rule", digits) is not None


def test_a_finding_that_flaps_tells_its_last_transitions(database: Engine) -> None:
    rounds = Story(database)
    made = [rounds.round({"a": BREACH if n % 2 == 0 else UNKNOWN}) for n in range(1002)]
    store_rounds(database, [*made, made_round(rounds.key, 1003, [], at(20_000))])
    (past,) = history(database).page(EVERY, 10)
    steps = history(database).transitions(past.finding.id)
    assert len(steps) == 1000
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert steps[-1].to_verdict is UNKNOWN


def test_an_event_stays_in_the_history_with_its_kind(database: Engine) -> None:
    rounds = Story(database)
    store_rounds(database, [rounds.round({"a": BREACH}, kind=Kind.EVENT)])
    (past,) = history(database).page(EVERY, 10)
    assert (past.finding.kind, past.finding.ended_at) == (Kind.EVENT, None)


def test_a_secret_tells_its_scopes_until_it_is_revoked(database: Engine) -> None:
    checker = StoredTokens(lambda: database, lambda: NOON)
    secret = tokens.create(database, "grafana", [Scope.READ], NOON)
    hashes = [tokens.hash_of(secret), tokens.hash_of(secret + "x")]
    (digest,) = found = checker.verify(hashes)
    assert (digest, found[digest].scopes) == (hashes[0], frozenset({Scope.READ}))
    tokens.revoke(database, "grafana", NOON)
    assert checker.verify(hashes) == {}


def test_a_database_that_has_not_answered_is_a_store_error() -> None:
    def away() -> Engine:
        raise StoreError("the database has not answered yet", retryable=True)

    with pytest.raises(StoreError, match="not answered"):
        FindingHistory(away, "default").page(EVERY, 1)
    with pytest.raises(StoreError, match="not answered"):
        StoredTokens(away, lambda: NOON).verify(["0"])
