"""Losses by incident: one cause, one sentence, and one line for each partition."""

from __future__ import annotations

from typing import Any

import pytest

from rules.verdict import Severity
from service.api.losses import routes as losses
from service.api.losses.views import MOST_PARTITIONS
from tests.unit.service.api.given import client_of, opened
from tests.unit.service.api.losses.losses import BEYOND, PROVEN, open_loss, past_loss
from tests.unit.service.api.losses.test_losses import BEYOND_END, POSSIBLY, lines, listed, world


def of_incident(topic: str, rule: str = "committed_records_lost", **more: Any) -> Any:
    """Return a finding of broker 1's incident."""
    evidence = more.pop("evidence", PROVEN) | {"incident": more.pop("incident", INCIDENT)}
    return open_loss(topic, rule=rule, evidence=evidence, **more)


def past_of_incident(row: int, topic: str, **more: Any) -> Any:
    """Return a stored finding of broker 1's incident."""
    evidence = more.pop("evidence", PROVEN) | {"incident": INCIDENT}
    return past_loss(row, topic, evidence=evidence, **more)


INCIDENT, LATER = "broker-1-20250602T120000Z", "broker-2-20250602T130000Z"


def test_what_one_broker_left_behind_is_one_incident_with_a_line_for_each_partition() -> None:
    found = client_of(
        open_findings=opened(
            of_incident("a"),
            of_incident("a", "unclean_leader_election", reason="lost"),
            of_incident("a", POSSIBLY, reason="proven"),
            of_incident("a", BEYOND_END, group="billing", evidence=BEYOND),
            of_incident("b", POSSIBLY, reason="unseen", since=1),
            of_incident("b", "unclean_leader_election", reason="nothing_seen_is_missing"),
            of_incident("c", reason="restored", severity=Severity.INFO),
            of_incident("d", incident=LATER, since=3600),
        )
    ).get("/api/v1/losses")
    newest, first = found.json()["items"]
    assert newest["id"] == LATER
    assert (first["id"], first["severity"], first["broker"]) == (INCIDENT, "critical", 1)
    assert [one["topic"] for one in first["partitions"]] == ["a", "b", "c"]
    assert first["summary"].endswith(
        ": 1 partition lost 27 offsets for certain, 1 may have lost some, "
        "1 partition has all records back"
    )
    line = first["partitions"][0]
    assert (line["class"], line["incident"]) == ("committed_lost", INCIDENT)
    assert [(one["class"], one["group"]) for one in line["also"]] == [
        ("committed_beyond_log_end", "billing"),
        ("possibly_lost", None),
        ("unclean_election", None),
    ]
    counts = [first[name] for name in ("partition_count", "lost_partitions", "certain_offsets")]
    assert (counts, first["possibly_lost_partitions"]) == ([3, 1, 27], 1)


def test_the_worst_incident_comes_first_however_old_it_is() -> None:
    made = world(
        of_incident("old", since=0),
        *(
            of_incident(
                f"new{number}",
                "unclean_leader_election",
                incident=f"broker-{number}-20250602T130000Z",
                since=3600 + number,
            )
            for number in range(40)
        ),
    )
    items = made.client().get("/api/v1/losses?limit=2").json()["items"]
    assert [one["id"] for one in items] == [INCIDENT, "broker-39-20250602T130000Z"]


def test_a_loss_that_nobody_could_judge_is_of_a_class_of_its_own() -> None:
    gone = of_incident("a", POSSIBLY, reason="not_determinable", absent_rounds=2)
    both = (gone, of_incident("b", POSSIBLY, reason="unseen"))
    for query, expected in (("not_determinable", ["a"]), ("possibly_lost", ["b"])):
        found = listed(*both, query=f"?class={query}")
        assert [one["topic"] for one in found] == expected
    [line] = listed(gone)
    assert (line["class"], line["subject_gone"]) == ("not_determinable", True)
    [step] = line["next_steps"]
    assert "can no longer be determined" in step


def test_the_last_of_many_partitions_counts_in_what_is_said_of_their_incident() -> None:
    """Only a thousand partitions are listed: what is said of all comes from all."""
    settled, early = {"severity": Severity.INFO}, "2025-06-02T09:00:00+00:00"
    last = {"ended_at": None, "evidence": PROVEN | {"last_observation": early}}
    made = world(
        findings=[
            past_of_incident(row, f"t{row:04}", **(settled if row <= MOST_PARTITIONS else last))
            for row in range(1, MOST_PARTITIONS + 2)
        ]
    )
    [incident] = made.client().get("/api/v1/losses?state=all").json()["items"]
    shown = {line["state"] for line in incident["partitions"]}
    assert (len(incident["partitions"]), shown) == (MOST_PARTITIONS, {"ended"})
    assert (incident["partition_count"], incident["state"]) == (MOST_PARTITIONS + 1, "open")
    assert (incident["severity"], incident["last_observation"]) == (
        "critical",
        "2025-06-02T09:00:00Z",
    )


@pytest.mark.parametrize("query", ["state=ended", "state=all&topic=a"])
@pytest.mark.parametrize(("other", "expected"), [(INCIDENT, "open"), (LATER, "ended")])
def test_an_incident_is_open_while_any_loss_of_it_is_whatever_is_selected(
    query: str, other: str, expected: str
) -> None:
    made = world(of_incident("b", incident=other), findings=[past_of_incident(1, "a")])
    [incident] = made.client().get(f"/api/v1/losses?{query}").json()["items"]
    assert (incident["id"], incident["state"]) == (INCIDENT, expected)
    assert [line["state"] for line in incident["partitions"]] == ["ended"]


def test_a_topic_that_was_deleted_since_is_said_first() -> None:
    [line] = listed(open_loss(absent_rounds=2))
    assert line["subject_gone"]
    assert line["next_steps"][0].startswith("The topic was deleted since.")


@pytest.mark.parametrize(("many", "is_cut"), [(2, False), (3, True)])
def test_a_list_that_leaves_out_older_findings_says_so_whatever_class_is_asked_for(
    *, many: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two classes are one rule's, so that fewer findings may be shown than were read."""
    monkeypatch.setattr(losses, "MOST_STORED", 2)
    found = [past_loss(row, rule_id=POSSIBLY, reason="not_determinable") for row in range(1, many)]
    made = world(findings=[*found, past_loss(many, rule_id=POSSIBLY, reason="unseen")])
    told = made.client().get("/api/v1/losses?state=all&class=possibly_lost").json()
    assert (len(lines(told)), told["is_cut"]) == (1, is_cut)
