"""A group's committed offset went back.

Detects:
    A commit that is lower than the one of the last round, on the same topic id.

Why it matters:
    Records will be processed again: duplicates, unless the pipeline can take them. A rewind that
    nobody ordered is also what is left of lost records, when consumers were reset to a shorter log.

Inputs:
    Committed offsets of this round and of the one before.

Thresholds:
    None: one offset back is a rewind.

False positives:
    A reset by hand, for a replay. A topic that was deleted and created again is another topic and
    no rewind. For a share group it is its start offset that went back.

Runbook:
    Ask who reset the group. If nobody did, compare the high watermark with what it was, and look for
    an unclean leader election: lost records look like this from the group's side.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Column
from rules.facts.memory import matching_commits
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="consumer_group_rewound",
    subject=SubjectKind.COMMIT,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
    for_=timedelta(0),
    summary="A group's committed offset went back.",
)


class Why(Reason):
    """Reasons of this rule."""

    NOT_BACK = "not_back"
    FIRST_LOOK = "first_look"  # nothing is remembered to compare with
    WENT_BACK = "went_back"


def judge(view: View) -> Judgement:
    """Judge every commit."""
    commits = view.snapshot.commits
    committed = Column.known(commits.committed_offset)
    previous = _previous(view)
    back = previous - committed
    return decide(
        RULE,
        CommitSubjects.all_of(view.snapshot),
        [
            Case(~previous.valid, Verdict.OK, Why.FIRST_LOOK),
            Case(back.values > 0, Verdict.BREACH, Why.WENT_BACK),
        ],
        (Verdict.OK, Why.NOT_BACK),
        {
            "committed_offset": committed,
            "previous_committed_offset": previous,
            "rewound_by": back,
        },
    )


def _previous(view: View) -> Column:
    if view.before is None:
        return Column.absent(len(view.snapshot.commits))
    places = matching_commits(view.snapshot, view.before.commits)
    return view.before.commits.standing.values.take(np.asarray(places))
