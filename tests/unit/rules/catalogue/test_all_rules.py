"""The catalogue as a whole: own sight, blind rounds, pages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from rules.catalogue import observation_stale
from rules.catalogue.all_rules import (
    EVERY,
    RULES,
    SELF_MONITORING,
    Declared,
    Judged,
    count_verdicts,
    judge_blind,
    judge_round,
)
from rules.judgement import Judgement
from rules.pages import HEADINGS, IncompleteRuleError, page
from rules.sequence.reporting import CommonReason
from rules.verdict import Verdict
from tests.factories import NOON, commits, described, member, snapshot
from tests.unit.rules.catalogue.judging import view_of

PAGES = Path(__file__).parents[4] / "docs" / "rules"
ALL_IDS = [*(rule.meta.rule_id for rule in RULES), SELF_MONITORING.rule_id]


def blind_rounds(minutes: float, *, every_seconds: float = 15) -> Judged:
    """Return what is judged after so many minutes without any round."""
    judged = judge_blind("default", {}, NOON)
    count = round(minutes * 60 / every_seconds)
    for number in range(1, count + 1):
        now = NOON + timedelta(seconds=number * every_seconds)
        judged = judge_blind("default", judged.unknown_since, now)
    return judged


def test_a_quiet_cluster_breaches_nothing_and_hides_nothing() -> None:
    quiet = snapshot(groups=(described(member("a", 0, 1, 2)),), commits=commits((0, 0, 100)))
    counts = count_verdicts(judge_round(view_of([quiet]), {}).judgements)
    assert {verdict for (_, verdict), count in counts.items() if count} == {Verdict.OK}
    assert {rule for rule, _ in counts} == set(ALL_IDS)


def test_a_round_that_could_not_be_made_is_unknown_for_every_rule() -> None:
    *judgements, visibility = judge_blind("default", {}, NOON).judgements
    assert [judgement.count(Verdict.UNKNOWN) for judgement in judgements] == [1] * len(RULES)
    assert {judgement.finding(0).reason for judgement in judgements} == {"no_round"}
    assert visibility.count(Verdict.BREACH) == 0


@pytest.mark.parametrize(("minutes", "breaches"), [(4.75, 0), (5, 6), (6, 6)])
def test_blindness_of_critical_rules_is_told_after_five_minutes(
    minutes: float, breaches: int
) -> None:
    visibility = blind_rounds(minutes).judgements[-1]
    assert visibility.rule is SELF_MONITORING
    assert visibility.count(Verdict.BREACH) == breaches == (breaches and len(visibility.verdicts))


def test_one_round_that_sees_ends_the_blindness() -> None:
    blind = blind_rounds(6)
    later = NOON + timedelta(minutes=7)
    seen = judge_round(view_of([snapshot(taken_at=later)]), blind.unknown_since)
    assert seen.unknown_since == {}
    assert seen.judgements[-1].count(Verdict.BREACH) == 0


def test_evidence_of_blindness_counts_what_is_dark() -> None:
    finding = next(blind_rounds(6).judgements[-1].findings(Verdict.BREACH))
    assert finding.labels == {"cluster": "default", "rule": "committed_records_lost"}
    assert finding.evidence == {"unknown_subjects": 1, "unknown_for_ms": 360_000}


def test_rule_ids_are_unique_and_equal_to_their_files() -> None:
    assert len(set(ALL_IDS)) == len(ALL_IDS)
    for rule in RULES:
        assert rule.judge.__module__ == f"rules.catalogue.{rule.meta.rule_id}"


@pytest.mark.parametrize("rule", EVERY, ids=ALL_IDS)
def test_page_says_what_the_rule_says(rule: Declared) -> None:
    written = (PAGES / f"{rule.meta.rule_id}.md").read_text(encoding="utf-8")
    reasons = [str(reason) for reason in rule.reasons]
    assert written == page(rule.meta, rule.text, reasons), "run `make golden`"
    assert all(f"## {heading}" in written for heading in HEADINGS)


def test_every_rule_is_in_the_list_of_rules() -> None:
    listed = (PAGES.parent / "rules.md").read_text(encoding="utf-8")
    assert [name for name in ALL_IDS if f"](rules/{name}.md)" not in listed] == []


def test_there_is_a_page_for_every_rule_and_no_other() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == set(ALL_IDS)


def test_a_rule_that_does_not_say_its_runbook_is_rejected() -> None:
    with pytest.raises(IncompleteRuleError, match="Runbook"):
        page(RULES[0].meta, __doc__, ["led"])


@pytest.mark.parametrize("rule", EVERY, ids=ALL_IDS)
def test_what_a_rule_declares_comes_from_its_own_file(rule: Declared) -> None:
    file = f"rules.catalogue.{rule.meta.rule_id}"
    own = sys.modules[file].Why
    assert own.__module__ == file
    shared = (CommonReason.NOTHING_NEW, *own, *list(CommonReason)[1:])
    assert rule.reasons in (tuple(own), shared)
    assert rule.text == sys.modules[file].__doc__
    assert {reason for reason, _ in rule.meta.milder} <= {str(reason) for reason in rule.reasons}


def test_own_visibility_lists_only_critical_rules() -> None:
    critical = {rule.meta.rule_id for rule in RULES if rule.meta.is_critical}
    visibility = judge_blind("default", {}, NOON).judgements[-1]
    assert {
        visibility.subjects.labels(n)["rule"] for n in range(len(visibility.verdicts))
    } == critical
    assert observation_stale.RULE.rule_id not in critical


def test_a_rule_that_cannot_run_is_unknown_and_the_others_judge() -> None:
    def attempt(rule_id: str, judge: Callable[[], Judgement]) -> Judgement | None:
        return None if rule_id == "committed_records_lost" else judge()

    view = view_of([snapshot()])
    judged = judge_round(view, {}, attempt)
    [broken] = [
        judgement
        for judgement in judged.judgements
        if judgement.rule.rule_id == "committed_records_lost"
    ]
    others = [judgement for judgement in judged.judgements if judgement is not broken]
    (finding,) = broken.findings(Verdict.UNKNOWN)
    assert (finding.reason, finding.labels) == ("rule_failed", {"cluster": "default"})
    assert all(judgement.count(Verdict.UNKNOWN) == 0 for judgement in others)
    assert "committed_records_lost" in judged.unknown_since, (
        "a critical rule that fails is blindness"
    )
