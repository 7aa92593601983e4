"""A group's committed offset went back.

Detects:
    A commit that is lower than when it was last seen, on the same topic id.

Why it matters:
    Records will be processed again: duplicates, unless the pipeline can take them. A rewind that
    nobody ordered is also what is left of lost records, when consumers were reset to a shorter log.

Inputs:
    Committed offsets of this round and those remembered of earlier ones, and topic ids. Brokers
    before Kafka 2.8 tell none: a topic that was created again could not be told from a rewind, and
    the answer is UNKNOWN (reason `no_topic_id`).

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

from rules.facts.column import Bools, Column
from rules.facts.commit_memory import matching_commits
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
    NO_TOPIC_ID = "no_topic_id"  # the broker is too old to tell a rewind from another topic
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
            Case(_is_unnamed(view), Verdict.UNKNOWN, Why.NO_TOPIC_ID),
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
    places = matching_commits(view.snapshot, view.before.commits, needs_id=True)
    return view.before.commits.standing.values.take(places)


def _is_unnamed(view: View) -> Bools:
    """Mark the commits on topics without an id."""
    partitions = view.snapshot.partitions
    unnamed = np.array([topic_id is None for topic_id in partitions.topic_ids], np.bool_)
    of_row = partitions.index.topic_of_row[view.snapshot.commits.row]
    return unnamed[of_row]
