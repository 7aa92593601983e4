"""Records were deleted before a group had read them.

Detects:
    Groups with a committed offset below the log start offset of the partition: in the round that
    first observes it, and again whenever more records have been deleted since. One finding per
    group; `partitions` lists the partitions of this round.

Why it matters:
    The records between the two offsets are lost for this group: at its next fetch it skips them or
    starts over, depending on `auto.offset.reset`. For an exactly-once pipeline that is data loss.
    It remains a loss when the group commits above the log start offset some seconds later.

Inputs:
    The log start offset and the committed offset, read in this order; the committed offset of the
    previous round, and the log start offset for which it was last reported; the number of members,
    and when the group was last active.

Thresholds:
    None. Only a committed offset that is still below the log start offset is certain. One that was
    below the present log start offset in the previous round, and has moved to it or beyond since,
    is UNKNOWN (`may_have_expired`): the group may have read everything before it was deleted, as
    Kafka Streams does before it purges a repartition topic, or it may have been reset. Both leave
    the same offsets. A group that has been inactive for 7 days, or for as long as it has been
    observed, counts as abandoned and is reported as info.

False positives:
    DeleteRecords after a replay; a group that reads far ahead of its commits.

Runbook:
    If the group is still needed, raise the topic's retention now, before more records expire, and
    find out for how long the group did not read. `expired_offsets` is how many offsets it will not
    receive, as of this round. `expired_offsets_at_most` is how many it may have missed where that
    cannot be determined: the log of the consumer says whether its offset was out of range.

    - `no_members` (warning, reported once): the group loses the records when it starts again.
      Decide where it has to continue before you start its application.
    - `abandoned` (info): nobody uses the group any more.
"""

from __future__ import annotations

from typing import Final

from rules.by_group import Shown, by_group
from rules.catalogue.consumer_group_stalled import ABANDONED_AFTER
from rules.facts.column import Column
from rules.facts.commit_memory import matching_commits
from rules.facts.group_memory import have_members
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View


class Why(Reason):
    """Reasons of this rule, the most important first: that one is the reason of the group."""

    BELOW_LOG_START = "below_log_start"
    NO_MEMBERS = "no_members"  # below, and the group has no members
    ABANDONED = "abandoned"  # below, and no member for a week, or since the first observation
    MAY_HAVE_EXPIRED = "may_have_expired"  # the records were read or skipped within one round
    LOG_START_NOT_SEEN = "log_start_not_seen"
    STILL_BELOW = "still_below"  # a finding before, and nothing more was deleted since
    WITHIN_LOG = "within_log"


RULE: Final = RuleMeta(
    rule_id="consumer_data_expired",
    subject=SubjectKind.GROUP,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    milder=((Why.NO_MEMBERS, Severity.WARNING), (Why.ABANDONED, Severity.INFO)),
    summary="Records were deleted before a group had read them.",
)
SHOWN: Final = Shown(
    totals={
        "expired_offsets": "expired_offsets",
        "expired_offsets_at_most": "expired_offsets_at_most",
    },
    most={"members": "members"},
    each=(
        "committed_offset",
        "previous_committed_offset",
        "log_start_offset",
        "expired_offsets",
        "expired_offsets_at_most",
    ),
)


def judge(view: View) -> Judgement:
    """Judge every group that has commits."""
    commits, groups = view.snapshot.commits, view.snapshot.groups
    subjects = CommitSubjects.all_of(view.snapshot)
    committed = Column.known(commits.committed_offset)
    log_start = view.snapshot.offsets.log_start_offset.take(commits.row)
    previous, reported_below = _remembered(view)
    expired, overtaken = log_start - committed, log_start - previous
    members = Column.of(group.member_count for group in groups).take(commits.group)
    joined = have_members(groups).take(commits.group)
    is_below = expired.values > 0
    is_reported = reported_below.valid & (reported_below.values >= log_start.values)
    nobody = is_below & joined.valid & (joined.values == 0)
    is_still_below = is_below & (is_reported | (nobody & reported_below.valid))
    in_doubt = (overtaken.values > 0) & ~is_below & ~is_reported
    judgement = decide(
        RULE,
        subjects,
        [
            Case(~log_start.valid, Verdict.UNKNOWN, Why.LOG_START_NOT_SEEN),
            Case(is_still_below, Verdict.OK, Why.STILL_BELOW),
            Case(
                is_below & view.are_abandoned(ABANDONED_AFTER)[commits.group],
                Verdict.BREACH,
                Why.ABANDONED,
            ),
            Case(nobody, Verdict.BREACH, Why.NO_MEMBERS),
            Case(is_below, Verdict.BREACH, Why.BELOW_LOG_START),
            Case(in_doubt, Verdict.UNKNOWN, Why.MAY_HAVE_EXPIRED),
        ],
        (Verdict.OK, Why.WITHIN_LOG),
        {
            "committed_offset": committed,
            "previous_committed_offset": previous,
            "log_start_offset": log_start,
            "expired_offsets": expired.where(is_below),
            "expired_offsets_at_most": overtaken.where(in_doubt),
            "members": members,
        },
    )
    return by_group(judgement, subjects, SHOWN)


def _remembered(view: View) -> tuple[Column, Column]:
    """Return the last round's commits, and the log starts below which they were found then."""
    if view.before is None:
        nothing = Column.absent(len(view.snapshot.commits))
        return nothing, nothing
    before = view.before.commits
    places = matching_commits(view.snapshot, before)
    return before.unchanged.values.take(places), before.expired_below.take(places)
