"""A group's committed offset went back.

Detects:
    Groups with a commit that is lower than when it was last seen, on the same topic id. One finding per
    group, since one reset moves many: `partitions` says from where to where.

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
    A group that was deleted and made anew within one round is another one of the same name, and no
    rewind (reason `made_anew`): a commit of it is gone, its epoch is lower, its members' protocol is
    gone, or `__consumer_offsets` holds a tombstone of the commit. The last needs READ on that topic;
    without it, a group that has committed again on every partition is taken for one that was reset.

Runbook:
    Ask who reset the group. If nobody did, compare the high watermark with what it was, and search for
    an unclean leader election: lost records resembles this from the group's side.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.by_group import Shown, by_group
from rules.facts.column import Bools, Column, marked
from rules.facts.commit_memory import matching_commits
from rules.facts.matching import matching_rows
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

RULE: Final = RuleMeta(
    rule_id="consumer_group_rewound",
    subject=SubjectKind.GROUP,
    kind=Kind.EVENT,
    severity=Severity.WARNING,
    for_=timedelta(0),
    summary="A group's committed offset went back.",
)


class Why(Reason):
    """Reasons of this rule; of a group's commits the first one is told."""

    WENT_BACK = "went_back"
    NO_TOPIC_ID = "no_topic_id"  # the broker is too old to tell a rewind from another topic
    MADE_ANEW = "made_anew"  # it was deleted meanwhile: other commits of it are gone
    NOT_BACK = "not_back"
    FIRST_OBSERVATION = "first_observation"  # nothing is remembered to compare with


SHOWN: Final = Shown(
    totals={"rewound_by": "rewound_by"},
    most={},
    each=("committed_offset", "previous_committed_offset", "rewound_by"),
)


def judge(view: View) -> Judgement:
    """Judge every group that has commits."""
    commits, subjects = view.snapshot.commits, CommitSubjects.all_of(view.snapshot)
    committed = Column.known(commits.committed_offset)
    previous = _previous(view)
    back = previous - committed
    said = decide(
        RULE,
        subjects,
        [
            Case(_is_unnamed(view), Verdict.UNKNOWN, Why.NO_TOPIC_ID),
            Case(~previous.valid, Verdict.OK, Why.FIRST_OBSERVATION),
            Case(_is_made_anew(view), Verdict.OK, Why.MADE_ANEW),
            Case(back.values > 0, Verdict.BREACH, Why.WENT_BACK),
        ],
        (Verdict.OK, Why.NOT_BACK),
        {
            "committed_offset": committed,
            "previous_committed_offset": previous,
            "rewound_by": back.where(back.values > 0),
        },
    )
    return by_group(said, subjects, SHOWN)


def _is_made_anew(view: View) -> Bools:
    """Mark the commits of groups that were deleted since the last round, and made again.

    Deleting a group takes all of its commits, and a reset none: where one is gone it is another group.
    That counts only where this round could see them.
    """
    snapshot = view.snapshot
    was_deleted = marked(len(snapshot.commits), snapshot.commits_made_anew)
    if view.before is None:
        return was_deleted
    is_anew = view.before.groups.were_made_anew(snapshot.groups)
    if not snapshot.commits_complete:
        return was_deleted | is_anew[snapshot.commits.group]
    old = view.before.commits
    left = np.ones(len(old), np.bool_)
    found = matching_commits(snapshot, old, needs_id=True)
    left[found[found >= 0]] = False
    is_there = matching_rows(old.partitions, snapshot.partitions)[old.row] >= 0
    gone = {old.group_ids[group] for group in np.unique(old.group[left & is_there]).tolist()}
    gone -= snapshot.groups_without_commits
    for place, group in enumerate(snapshot.groups):
        is_anew[place] |= group.group_id in gone
    return was_deleted | is_anew[snapshot.commits.group]


def _previous(view: View) -> Column:
    if view.before is None:
        return Column.absent(len(view.snapshot.commits))
    places = matching_commits(view.snapshot, view.before.commits, needs_id=True)
    return view.before.commits.unchanged.values.take(places)


def _is_unnamed(view: View) -> Bools:
    """Mark the commits on topics without an id."""
    partitions = view.snapshot.partitions
    unnamed = np.array([topic_id is None for topic_id in partitions.topic_ids], np.bool_)
    of_row = partitions.index.topic_of_row[view.snapshot.commits.row]
    return unnamed[of_row]
