"""Findings, rounds and tokens on a real database, of both majors."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from rules.errors import StoreError
from rules.facts.memory import advance
from rules.open_findings import EndReason
from rules.verdict import Kind, Severity, Verdict
from service.storage.findings import findings
from service.storage.formats.checkpoint import Checkpoint, encode
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey
from service.storage.rounds.rounds import store_rounds
from service.storage.tokens import tokens
from service.storage.tokens.tokens import Scope
from tests.factories import CLUSTER_ID, NOON, at, snapshot
from tests.integration.storage.given import (
    Story,
    close_finding,
    list_findings,
    list_transitions,
    made_round,
)

pytestmark = pytest.mark.integration

OK, UNKNOWN, BREACH = Verdict.OK, Verdict.UNKNOWN, Verdict.BREACH


def story(engine: Engine, name: str = "default") -> Story:
    return Story(engine, name)


def told(engine: Engine, finding: int) -> list[tuple[Verdict | None, Verdict | None, str]]:
    steps = list_transitions(engine, finding)
    return [(step.from_verdict, step.to_verdict, step.reason) for step in steps]


def test_a_cluster_is_its_name_and_its_id(database: Engine) -> None:
    first = clusters.register(database, ClusterKey("default", CLUSTER_ID), NOON)
    assert clusters.register(database, ClusterKey("default", CLUSTER_ID), at(60)) == first
    assert clusters.register(database, ClusterKey("default", "another"), NOON) != first


def test_a_breach_is_stored_with_all_that_was_said(database: Engine) -> None:
    rounds = story(database)
    store_rounds(database, [rounds.round({"orders": BREACH, "paid": OK, "dark": UNKNOWN})])
    (stored,) = list_findings(database, rounds.cluster, only_open=True)
    assert stored.rule_id == "some_rule"
    assert stored.labels == {"cluster": "default", "topic": "orders"}
    assert (stored.verdict, stored.reason) == (BREACH, "said")
    assert stored.evidence == {
        "lag": 1,
        "end": None,
        "held_by": "payments",
        "blocked": [{"group": "billing", "offsets": 5, "waits": True, "end": None}],
    }
    assert (stored.severity, stored.kind) == (Severity.WARNING, Kind.STATE)
    assert stored.since == stored.last_judged_at == stored.last_breach_at == at(15)
    assert stored.since.utcoffset() == timedelta(0)


def test_postgresql_cannot_hold_nul_which_names_in_evidence_may() -> None:
    evidence = findings.storable_evidence(
        {"held_by": "pay\0ments", "offsets": 5, "blocked": [{"group": "bill\0ing", "end": None}]}
    )
    assert evidence == {
        "held_by": "pay\N{SYMBOL FOR NULL}ments",
        "offsets": 5,
        "blocked": [{"group": "bill\N{SYMBOL FOR NULL}ing", "end": None}],
    }


def test_the_stored_open_findings_are_those_of_the_lifecycle(database: Engine) -> None:
    rounds = story(database)
    for verdicts in (
        {"a": BREACH, "b": BREACH, "c": BREACH},
        {"a": BREACH, "b": UNKNOWN, "c": OK},
        {"a": BREACH, "b": UNKNOWN},
        {"b": BREACH, "d": BREACH},
    ):
        store_rounds(database, [rounds.round(verdicts)])
        assert findings.load_open(database, rounds.cluster) == rounds.open


def test_events_are_kept_like_the_lifecycle_says(database: Engine) -> None:
    rounds = story(database)
    for verdict, hours in ((BREACH, 0), (OK, 1), (BREACH, 2), (UNKNOWN, 25)):
        timestamp = NOON + timedelta(hours=hours)
        store_rounds(database, [rounds.round({"a": verdict}, kind=Kind.EVENT, at=timestamp)])
        assert findings.load_open(database, rounds.cluster) == rounds.open
    last = rounds.round({"a": OK}, kind=Kind.EVENT, at=NOON + timedelta(hours=26))
    store_rounds(database, [last])
    (stored,) = list_findings(database, rounds.cluster, only_open=False)
    assert stored.end_reason is EndReason.EXPIRED
    assert told(database, stored.id) == [
        (None, BREACH, "said"),
        (BREACH, BREACH, "said"),
        (BREACH, None, "expired"),
    ]
    steps = list_transitions(database, stored.id)
    assert [step.evidence["lag"] for step in steps[:2]] == [1, 3], "each with its own"


def test_every_change_of_the_verdict_is_a_transition_and_nothing_else(database: Engine) -> None:
    rounds = story(database)
    for verdict in (BREACH, BREACH, UNKNOWN, UNKNOWN, BREACH, OK, OK, BREACH):
        store_rounds(database, [rounds.round({"a": verdict})])
    (stored,) = list_findings(database, rounds.cluster, only_open=False)
    assert told(database, stored.id) == [
        (None, BREACH, "said"),
        (BREACH, UNKNOWN, "said"),
        (UNKNOWN, BREACH, "said"),
        (BREACH, OK, "said"),
        (None, BREACH, "said"),
    ]
    assert stored.ended_at is None
    assert stored.since == at(8 * 15), "it opened anew"


def test_a_subject_that_is_gone_says_so(database: Engine) -> None:
    rounds = story(database)
    for verdicts in ({"a": BREACH}, {}, {}):
        store_rounds(database, [rounds.round(verdicts)])
    (stored,) = list_findings(database, rounds.cluster, only_open=False)
    assert (stored.end_reason, stored.ended_at) == (EndReason.SUBJECT_GONE, at(45))
    assert told(database, stored.id)[-1] == (BREACH, None, "subject_gone")


def test_a_person_closes_a_finding_once(database: Engine) -> None:
    rounds = story(database)
    store_rounds(database, [rounds.round({"a": BREACH}, kind=Kind.EVENT)])
    (stored,) = list_findings(database, rounds.cluster, only_open=True)
    close_finding(database, rounds.cluster, stored, at(100))
    close_finding(database, rounds.cluster, stored, at(101))
    assert findings.load_open(database, rounds.cluster) == {}
    assert told(database, stored.id) == [(None, BREACH, "said"), (BREACH, None, "closed")]
    (closed,) = list_findings(database, rounds.cluster, only_open=False)
    assert closed.ended_at == at(100)


@pytest.mark.parametrize("verdict", [OK, UNKNOWN])
def test_what_a_person_closed_stays_closed_without_a_breach(
    database: Engine, verdict: Verdict
) -> None:
    rounds = story(database)
    store_rounds(database, [rounds.round({"a": BREACH})])
    (stored,) = list_findings(database, rounds.cluster, only_open=True)
    close_finding(database, rounds.cluster, stored, at(20))
    store_rounds(database, [rounds.round({"a": verdict})])
    (after,) = list_findings(database, rounds.cluster, only_open=False)
    assert (after.end_reason, after.ended_at) == (EndReason.CLOSED, at(20))
    assert told(database, stored.id) == [(None, BREACH, "said"), (BREACH, None, "closed")]


def test_a_round_that_is_stored_again_changes_nothing(database: Engine) -> None:
    rounds = story(database)
    both = [rounds.round({"a": BREACH}), rounds.round({"a": OK})]
    store_rounds(database, both)
    store_rounds(database, both)
    third = rounds.round({"a": BREACH})
    store_rounds(database, [*both, third])
    (stored,) = list_findings(database, rounds.cluster, only_open=False)
    assert len(told(database, stored.id)) == 3


def test_another_process_begins_to_count_anew(database: Engine) -> None:
    rounds = story(database)
    store_rounds(database, [rounds.round({"a": BREACH}), rounds.round({"a": BREACH})])
    restarted = Story(database, writer=UUID(int=8))
    with clusters.claim(database, "default", UUID(int=8)):
        restarted.open = findings.load_open(database, rounds.cluster)
    store_rounds(database, [restarted.round({"a": OK}, at=at(60))])
    assert findings.load_open(database, rounds.cluster) == {}


def test_a_round_is_stored_whole_or_not_at_all(database: Engine) -> None:
    rounds = story(database)
    store_rounds(database, [rounds.round({"a": BREACH})])
    with database.begin() as connection:
        connection.execute(
            text("ALTER TABLE checkpoint ADD CHECK (taken_at < '2025-06-02 12:00:20+0')")
        )
    with pytest.raises(StoreError, match="the round cannot be stored") as caught:
        store_rounds(database, [rounds.round({"a": OK, "b": BREACH})])
    assert not caught.value.retryable
    (stored,) = list_findings(database, rounds.cluster, only_open=False)
    assert (stored.verdict, len(told(database, stored.id))) == (BREACH, 1)


def test_clusters_do_not_see_each_other(database: Engine) -> None:
    one, two = story(database, "one"), story(database, "two")
    store_rounds(database, [one.round({"a": BREACH}), two.round({"a": BREACH, "b": BREACH})])
    store_rounds(database, [one.round({"a": OK})])
    assert findings.load_open(database, one.cluster) == {}
    assert len(findings.load_open(database, two.cluster)) == 2


def test_names_of_any_form_are_stored(database: Engine) -> None:
    rounds = story(database)
    names = ["quote'\"\\", "snow ☃", "percent %s :at", "x" * 20_000, "nul\0"]
    store_rounds(database, [rounds.round(dict.fromkeys(names, BREACH))])
    found = {
        stored.labels["topic"] for stored in list_findings(database, rounds.cluster, only_open=True)
    }
    assert found == {*names[:-1], "nul␀"}


def test_a_checkpoint_is_the_newest_rounds(database: Engine) -> None:
    rounds = story(database)
    assert clusters.load_checkpoint(database, rounds.cluster) is None
    store_rounds(database, [rounds.round({}), rounds.round({})])
    assert clusters.load_checkpoint(database, rounds.cluster) == Checkpoint(
        unknown_since={"some_rule": 2}
    )


def test_a_checkpoint_brings_the_memory_back(database: Engine) -> None:
    rounds = story(database)
    memory = advance(snapshot())
    with database.begin() as connection:
        clusters.save_checkpoint(connection, rounds.cluster, Checkpoint(memory=memory), NOON)
    back = clusters.load_checkpoint(database, rounds.cluster)
    assert back is not None
    assert encode(back) == encode(Checkpoint(memory=memory))


def test_a_checkpoint_of_another_format_is_rejected(database: Engine) -> None:
    rounds = story(database)
    store_rounds(database, [made_round(rounds.key, 1, [], NOON)])
    with database.begin() as connection:
        connection.execute(text("UPDATE checkpoint SET format = 99"))
    with pytest.raises(StoreError, match="format 99"):
        clusters.load_checkpoint(database, rounds.cluster)


def test_a_token_works_until_it_is_revoked(database: Engine) -> None:
    secret = tokens.create(database, "grafana", {Scope.READ, Scope.ACK}, NOON)
    assert secret.startswith("tidemark_")
    digest = tokens.hash_of(secret)
    found = tokens.verify(database, [digest], at(60))[digest]
    assert (found.name, found.scopes) == ("grafana", frozenset({Scope.READ, Scope.ACK}))
    assert tokens.revoke(database, "grafana", at(61))
    assert tokens.verify(database, [digest], at(62)) == {}
    assert not tokens.revoke(database, "grafana", at(63))


def test_a_secret_that_was_never_given_out_is_nobodys(database: Engine) -> None:
    secret = tokens.create(database, "grafana", {Scope.READ}, NOON)
    wrong = ("", "tidemark_", secret[:-1], secret.upper(), "☃", "\0")
    hashes = [tokens.hash_of(guess) for guess in (*wrong, secret)]
    assert list(tokens.verify(database, hashes, NOON)) == hashes[-1:]


def test_the_secret_itself_is_not_kept(database: Engine) -> None:
    secret = tokens.create(database, "grafana", {Scope.READ}, NOON)
    with database.connect() as connection:
        row = connection.execute(text("SELECT t::text FROM api_token t")).scalar_one()
    assert secret not in row
    assert secret.removeprefix("tidemark_") not in row


def test_a_name_is_given_once(database: Engine) -> None:
    tokens.create(database, "grafana", {Scope.READ}, NOON)
    with pytest.raises(StoreError, match="there is a token grafana already"):
        tokens.create(database, "grafana", {Scope.READ}, NOON)


def test_use_is_noted_to_the_minute(database: Engine) -> None:
    secret = tokens.create(database, "grafana", {Scope.READ}, NOON)
    noted = []
    for seconds in (1, 30, 61):
        tokens.verify(database, [tokens.hash_of(secret)], at(seconds))
        (token,) = tokens.list_tokens(database)
        noted.append(token.last_used)
    assert noted == [at(1), at(1), at(61)]


def test_many_findings_that_open_and_end_at_once_are_stored(database: Engine) -> None:
    """A cluster that is down; with a plan that compares all with all it would time out."""
    rounds = story(database)
    topics = [f"topic-{number}" for number in range(15_000)]
    store_rounds(database, [rounds.round(dict.fromkeys(topics, BREACH))])
    assert len(findings.load_open(database, rounds.cluster)) == len(topics)
    store_rounds(database, [rounds.round(dict.fromkeys(topics, OK))])
    assert findings.load_open(database, rounds.cluster) == {}
