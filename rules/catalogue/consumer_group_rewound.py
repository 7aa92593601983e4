"""A group's committed offset went back.

Detects:
    Groups with a committed offset lower than the one last observed on the same topic id. One
    finding per group, since one reset moves many partitions; `partitions` gives both offsets of
    each.

Why it matters:
    Records are processed again and produce duplicates, unless the pipeline is idempotent. A rewind
    that nobody ordered is also a trace of lost records, when consumers were reset to a log that has
    become shorter.

Inputs:
    The committed offsets of this round and of earlier ones, and topic ids. Brokers before Kafka 2.8
    return no topic ids: a topic that was created again could not be distinguished from a rewind, so
    that the rule is UNKNOWN (`no_topic_id`).

Thresholds:
    None: one offset back is a rewind.

False positives:
    A reset by hand, for a replay. For a share group, it is the start offset that went back. A topic
    that was deleted and created again is another topic, and no rewind.

    A group that was deleted and created again under the same name is another group, and no rewind
    (`made_anew`). It is recognised by a missing commit, a lower group epoch, a missing protocol of
    its members, or a tombstone of the commit in `__consumer_offsets`. The last one needs READ on
    that topic; without it, a group that has committed again on every partition counts as reset.

Runbook:
    Find out who reset the group. If nobody did, compare the high watermark with its earlier values
    and search for an unclean leader election: from the side of a consumer group, lost records and a
    reset cannot be distinguished.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rules.by_group import Shown, by_group
from rules.facts.column import Bools, Column, left_out, marked
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
    summary="A group's committed offset went back.",
)


class Why(Reason):
    """Reasons of this rule, the most important first: that one is the reason of the group."""

    WENT_BACK = "went_back"
    NO_TOPIC_ID = "no_topic_id"  # the broker is too old to distinguish a rewind from another topic
    MADE_ANEW = "made_anew"  # deleted and created again: other commits of the group are gone
    NOT_BACK = "not_back"
    FIRST_OBSERVATION = "first_observation"  # there is no earlier observation to compare with


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
    judgement = decide(
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
    return by_group(judgement, subjects, SHOWN)


def _is_made_anew(view: View) -> Bools:
    """Mark the commits of groups that were deleted since the last round and created again.

    Deleting a group deletes all of its commits, a reset deletes none: a group that lacks one is another
    group. That counts only if this round has read all commits.
    """
    snapshot = view.snapshot
    was_deleted = marked(len(snapshot.commits), snapshot.commits_made_anew)
    if view.before is None:
        return was_deleted
    is_anew = view.before.groups.were_made_anew(snapshot.groups)
    if not snapshot.commits_complete:
        return was_deleted | is_anew[snapshot.commits.group]
    old = view.before.commits
    left = left_out(len(old), matching_commits(snapshot, old, needs_id=True))
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
    return view.snapshot.partitions.are_without_id[view.snapshot.commits.row]
