"""Which gaps keep the finding of a subject that is not there: a table of kinds and scopes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from rules.completeness import Completeness, subject_kind
from rules.facts.gap import GapScope
from rules.facts.transaction_log import TransactionLog
from rules.judgement import CommitSubjects, GroupSubjects, Labels, PartitionSubjects
from rules.verdict import Kind, SubjectKind
from tests.factories import commits, gap, group, snapshot, transactions
from tests.scraped import endpoint_state, scrapes

CLUSTER: Final = {"cluster": "default"}
RULE: Final = CLUSTER | {"rule": "some_rule"}
PARTITION: Final = CLUSTER | {"topic": "orders", "partition": "0"}
COMMIT: Final = PARTITION | {"group": "billing"}
GROUP: Final = {"cluster": "default", "group": "billing"}
TRANSACTION: Final = CLUSTER | {"transactional_id": "payments"}
CLIENT: Final = CLUSTER | {"client": "payments", "topic": "orders"}
HIDING_COMMITS: Final = frozenset({GapScope.GROUPS, GapScope.COMMITS})


def absent_after(labels: Labels, **overrides: Any) -> bool:
    return Completeness.of(snapshot(**overrides)).proves_absence(labels)


@pytest.mark.parametrize("scope", GapScope)
def test_a_gap_hides_what_it_is_about_and_nothing_else(scope: GapScope) -> None:
    gaps = (gap(scope=scope),)
    assert absent_after(PARTITION, gaps=gaps)
    assert absent_after(COMMIT, gaps=gaps) is (scope not in HIDING_COMMITS)
    assert absent_after(TRANSACTION, gaps=gaps), "a gap of details: every coordinator was heard"
    unheard = transactions(is_complete=False)
    is_gone = absent_after(TRANSACTION, gaps=gaps, transactions=unheard)
    assert is_gone is (scope is not GapScope.TRANSACTIONS)
    assert absent_after(CLUSTER, gaps=gaps)
    assert absent_after(RULE, gaps=gaps)


def test_a_log_that_was_not_read_to_its_end_hides_how_transactions_ended() -> None:
    partly = TransactionLog(is_read=True, is_whole=False)
    assert not absent_after(TRANSACTION, transaction_log=partly)
    assert absent_after(TRANSACTION, transaction_log=TransactionLog.unread())


def test_what_happened_to_a_transaction_does_not_go_when_it_ends() -> None:
    whole = Completeness.of(snapshot())
    assert whole.proves_absence(TRANSACTION, Kind.STATE)
    assert not whole.proves_absence(TRANSACTION, Kind.EVENT)


def test_a_list_of_topics_that_is_cut_short_hides_partitions_and_their_commits() -> None:
    assert not absent_after(PARTITION, placement_complete=False)
    assert not absent_after(COMMIT, placement_complete=False)
    assert absent_after(RULE, placement_complete=False)


@pytest.mark.parametrize(("name", "is_gone"), [("billing", False), ("audit", True)])
def test_commits_that_one_group_does_not_show_hide_no_others(name: str, *, is_gone: bool) -> None:
    hidden = (gap(scope=GapScope.COMMITS, group=name),)
    assert absent_after(COMMIT, gaps=hidden) is is_gone
    assert absent_after(GROUP, gaps=hidden) is is_gone


def test_an_endpoint_that_never_answered_hides_clients() -> None:
    silent = endpoint_state(answered_since=None, answered_at=None, is_fresh=False)
    assert not absent_after(CLIENT, scrapes=scrapes(endpoints=(silent,)))
    assert absent_after(CLIENT, scrapes=scrapes())
    assert absent_after(CLIENT), "no endpoint is set up any more: nothing judges it"


def test_a_list_of_groups_that_is_cut_short_hides_all_commits_whatever_group_it_names() -> None:
    assert not absent_after(COMMIT, gaps=(gap(scope=GapScope.GROUPS, group="audit"),))


@pytest.mark.parametrize("labels", [CLUSTER, RULE, PARTITION, COMMIT, GROUP, TRANSACTION, CLIENT])
def test_a_round_that_was_not_made_proves_nothing(labels: Labels) -> None:
    assert not Completeness.of(None).proves_absence(labels)


def test_labels_tell_the_kind_of_their_subject() -> None:
    seen = snapshot(groups=(group(),), commits=commits((0, 0, 5)))
    of_groups = GroupSubjects(seen, np.zeros(1, np.int64))
    for subjects in (PartitionSubjects(seen), CommitSubjects.all_of(seen), of_groups):
        assert subject_kind(subjects.labels(0)) is subjects.kind
    assert subject_kind(CLUSTER) is SubjectKind.CLUSTER
    assert subject_kind(RULE) is SubjectKind.RULE
    assert subject_kind(TRANSACTION) is SubjectKind.TRANSACTION
    assert subject_kind(CLIENT) is SubjectKind.CLIENT
    assert subject_kind(CLUSTER | {"broker": "2"}) is SubjectKind.BROKER
    assert subject_kind(CLUSTER | {"client": "payments"}) is SubjectKind.CLIENT
