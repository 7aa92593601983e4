"""Records were deleted before a group had read them.

Detects:
    Groups with commits below the log start offset of their partition, in the round in which they are
    first found there, and again whenever more has been deleted since. One finding per group:
    `partitions` names those of this round.

Why it matters:
    The records between the two are gone for this group: it skips them at its next fetch, or starts
    over, as its reset policy says. For a pipeline that promises exactly-once that is loss. It does
    not un-happen when the group, seconds later, commits above the log start.

Inputs:
    Committed offset and log start offset, read in this order from the log start on; the commit of
    the last round and the log start below which it was found then; the number of members, and when
    the group was last at work.

Thresholds:
    None. Only a commit that is still below the log start is certain. One that was below where the
    log starts now, and has moved to it or beyond within one round, is UNKNOWN (`may_have_expired`):
    the group may have read everything before it was deleted, as Kafka Streams does before it purges
    a repartition topic, or may have been reset. Both leave the same offsets.
    A group that was not at work for 7 days, or never since it is known, is abandoned: it is told as an
    info.

False positives:
    DeleteRecords after a replay; a group that reads far ahead of its commits. For a group without
    members (reason `no_members`) it is a warning, told once: it loses the records when it starts
    again, and a group that nobody uses any more (reason `abandoned`) never does.

Runbook:
    If the group still matters: raise the topic's retention now, before more expires, and find out
    how long the group stood. `expired_offsets` says how many offsets it will not get, as of this
    round; `expired_offsets_at_most` how many it may have missed where that cannot be told: the
    group's own log says whether its offset was out of range. Reason `no_members`: decide where it
    has to go on before its application starts.
"""

from __future__ import annotations

from datetime import timedelta
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
    """Reasons of this rule; of a group's commits the first one is told."""

    BELOW_LOG_START = "below_log_start"
    NO_MEMBERS = "no_members"  # below, and nobody is there to miss it now
    ABANDONED = "abandoned"  # below, and nobody has been there for a week, or since it is known
    MAY_HAVE_EXPIRED = "may_have_expired"  # it was read or skipped within one round
    LOG_START_NOT_SEEN = "log_start_not_seen"
    STILL_BELOW = "still_below"  # told before, and nothing more was deleted since
    WITHIN_LOG = "within_log"


RULE: Final = RuleMeta(
    rule_id="consumer_data_expired",
    subject=SubjectKind.GROUP,
    kind=Kind.EVENT,
    severity=Severity.CRITICAL,
    milder=((Why.NO_MEMBERS, Severity.WARNING), (Why.ABANDONED, Severity.INFO)),
    for_=timedelta(0),
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
    previous, told = _remembered(view)
    expired, overtaken = log_start - committed, log_start - previous
    members = Column.of(group.member_count for group in groups).take(commits.group)
    active = view.memory.groups.active_of(groups).take(commits.group)
    is_abandoned = ~active.valid | view.is_unchanged_for(active, ABANDONED_AFTER)
    joined = have_members(groups).take(commits.group)
    is_below = expired.values > 0
    is_reported = told.valid & (told.values >= log_start.values)
    nobody = is_below & joined.valid & (joined.values == 0)
    in_doubt = (overtaken.values > 0) & ~is_below & ~is_reported
    said = decide(
        RULE,
        subjects,
        [
            Case(~log_start.valid, Verdict.UNKNOWN, Why.LOG_START_NOT_SEEN),
            Case(is_below & (is_reported | (nobody & told.valid)), Verdict.OK, Why.STILL_BELOW),
            Case(nobody & is_abandoned, Verdict.BREACH, Why.ABANDONED),
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
    return by_group(said, subjects, SHOWN)


def _remembered(view: View) -> tuple[Column, Column]:
    """Return the last round's commits, and the log starts below which they were found then."""
    if view.before is None:
        nothing = Column.absent(len(view.snapshot.commits))
        return nothing, nothing
    before = view.before.commits
    places = matching_commits(view.snapshot, before)
    return before.unchanged.values.take(places), before.expired_below.take(places)
