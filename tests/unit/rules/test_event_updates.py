"""An event that is: nothing weaker takes its place, and what is said again of it adds to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rules.event_updates import update_event
from rules.evidence import in_words
from rules.judgement import Finding
from rules.verdict import Kind, RuleMeta, Severity, Verdict
from tests.alerting import rule

CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
MILDER = (("unseen", WARNING), ("proven", INFO), ("refuted", INFO))
EVENT = rule(kind=Kind.EVENT, milder=MILDER, sharpening=("returned", "proven"))
NAMED = replace(EVENT, names_events=True)


def finding(meta: RuleMeta, reason: str, **evidence: Any) -> Finding:
    return Finding(rule=meta, labels={}, verdict=Verdict.BREACH, reason=reason, evidence=evidence)


def again(meta: RuleMeta, reason: str, before: dict[str, Any], **evidence: Any) -> Finding | None:
    return update_event("lost", before, CRITICAL, finding(meta, reason, **evidence))


def test_a_milder_one_changes_nothing() -> None:
    for meta in (EVENT, NAMED):
        assert again(meta, "unseen", {"lost": 27}, lost=0) is None
        assert again(meta, "refuted", {"lost": 27}, lost=0) is None


def test_a_reason_that_may_lower_it_does() -> None:
    lowering = replace(EVENT, lowering=("refuted",))
    said = again(lowering, "refuted", {"lost": 27}, lost=0)
    assert said is not None
    assert (said.severity, said.evidence) == (INFO, {"lost": 0})


def test_one_as_bad_on_the_same_subject_is_told_by_itself() -> None:
    said = again(EVENT, "lost", {"lost": 27, "since": 1}, lost=3)
    assert said is not None
    assert said.evidence == {"lost": 3}


def test_an_event_stays_in_its_incident_whatever_is_said_of_it_again() -> None:
    """Its alert's labels follow from that, and so does who is told that it ended."""
    for meta in (EVENT, NAMED):
        said = again(meta, "lost", {"lost": 27, "incident": "a"}, lost=27, incident="b", more=1)
        assert said is not None
        assert (said.evidence["incident"], said.evidence["more"]) == ("a", 1)


def test_a_worse_one_takes_its_place_and_keeps_what_was_known() -> None:
    found = finding(NAMED, "lost", lost=27, since=None)
    said = update_event("unseen", {"since": 1, "incident": "a"}, WARNING, found)
    assert said is not None
    assert (said.reason, said.severity) == ("lost", CRITICAL)
    assert said.evidence == {"lost": 27, "since": 1, "incident": "a"}


def test_what_sharpens_an_event_is_kept_beside_what_was_told() -> None:
    before = {"lost": 27, "unknown_since": 1, "incident": "a"}
    said = again(NAMED, "returned", before, lost=44, unknown_since=None, incident="b")
    assert said is not None
    assert said.evidence == {"lost": 44, "unknown_since": None, "incident": "a"}


def test_the_same_said_twice_is_no_news() -> None:
    assert again(NAMED, "lost", {"lost": 27}, lost=27) is None


def test_another_group_that_had_read_the_same_is_added_and_no_bound_shrinks() -> None:
    first = {"at_least_offsets": 100, "groups_beyond": [{"group": "a"}], "group_count": 1}
    for reason in ("lost", "proven"):
        said = again(
            NAMED,
            reason,
            first,
            at_least_offsets=5,
            groups_beyond=[{"group": "b"}, {"group": "a"}],
            group_count=2,
        )
        assert said is not None
        assert said.evidence == {
            "at_least_offsets": 100,
            "groups_beyond": [{"group": "a"}, {"group": "b"}],
            "group_count": 2,
        }


def test_evidence_in_words_has_no_braces() -> None:
    assert in_words(
        [{"group": "a", "read_beyond": 7, "may_skip_offsets": None}, {"is_open": True}]
    ) == ("group a, read_beyond 7; is_open true")
    assert (in_words([]), in_words("a"), in_words(0)) == ("", "a", "0")
