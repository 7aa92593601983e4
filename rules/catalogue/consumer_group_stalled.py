"""A group does not move although there is something to read.

Detects:
    Groups with commits that have not moved for a while with lag behind them, where it is known that
    the lag is not made of markers and aborted records alone. One finding per group: `partitions`
    names those that stand, the largest lag first.

Why it matters:
    The pipeline does not move. On a transactional topic the usual lag alarm cannot tell this from a
    group that has read everything: the last marker leaves a lag of 1 for ever.

Inputs:
    Committed offsets, since when each has stood, both lags, `nothing_to_read`, the number of members,
    and when the group was last at work: with members, or with a commit that went forward. This is
    remembered over restarts. For how long the oldest unread offset has been readable, where history knows it.
    For larger lags `nothing_to_read` is asked for and known some rounds later; until then a larger
    lag counts as something to read. To inspect the log needs READ on the topic: without it, or
    while the leader gives no answer, the rule is UNKNOWN. Where brokers tell no topic ids (before
    Kafka 2.8) a topic that was created again is taken for the same one: a commit that is the same
    afterwards has stood.

Thresholds:
    1 minute without movement: clients commit every 5 s by default. It is told after 4 more minutes,
    above the checkpoint interval of most stream processors. Above a lag of 10 offsets the log is
    inspected after half a minute, so that the answer is there when the minute is over.
    10 minutes where the group works off a backlog on another partition: a client reads what it has
    fetched of one partition, 1 MB by default, before it turns to the next, and at 50 records of
    100 bytes a second that takes 3 minutes for each.
    A group that was never at work since it is known, or not for 7 days (as long as Kafka keeps offsets
    of a group without members), is abandoned: it is told as an info.

False positives:
    Groups that commit less often than every 5 minutes; a group that was taken out of use less than 7
    days ago (reason `no_members`); a long stretch of aborted records, until it has been
    scanned. The reverse: a read_uncommitted group that stops before aborted records alone
    is taken for one that has read everything; a member that does not move while another member of its
    group works off a backlog is told after 10 minutes.

Runbook:
    Reason `not_determined`: give Tidemark READ on the topic; the gaps of the round name it. Reason
    `no_members`: the application is down; start it, or delete the group if it is not needed any more.
    Reason `abandoned`: nothing has to be done; delete the group to be rid of it. Reason `not_moving`: it runs and does not commit;
    search for a poison record, a blocked downstream, or an open transaction of its own. A last stable
    offset that does not move either (rule last_stable_offset_stuck) holds read_committed groups.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.by_group import Shown, by_group
from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_memory import matching_commits
from rules.facts.group_memory import have_members
from rules.facts.snapshot import Snapshot
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.question import SMALL_LAG, Question, ReadableQuestion
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

UNCHANGED: Final = timedelta(minutes=1)
ASKS_AFTER: Final = UNCHANGED / 2
UNCHANGED_BESIDE_BACKLOG: Final = timedelta(minutes=10)

# As long as Kafka keeps the offsets of a group without members (offsets.retention.minutes).
ABANDONED_AFTER: Final = timedelta(days=7)


class Why(Reason):
    """Reasons of this rule; of a group's commits the first one is told."""

    NOT_MOVING = "not_moving"
    NO_MEMBERS = "no_members"  # it was at work lately: its application is down
    ABANDONED = "abandoned"  # nobody has been there since the group is known, or not for a week
    MEMBERS_NOT_SEEN = "members_not_seen"  # it is, and whether it runs was not told
    NOT_DETERMINED = "not_determined"  # it may be markers alone, and the log was not inspected
    END_NOT_SEEN = "end_not_seen"
    COMMIT_NOT_SEEN = "commit_not_seen"  # of one of its partitions, and no other is
    READS_ELSEWHERE = "reads_elsewhere"  # it works off a backlog on another partition first
    MOVES = "moves"
    NOTHING_TO_READ = "nothing_to_read"


RULE: Final = RuleMeta(
    rule_id="consumer_group_stalled",
    subject=SubjectKind.GROUP,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    milder=((Why.ABANDONED, Severity.INFO),),
    for_=timedelta(minutes=4),
    summary="A group does not move although there is something to read.",
)
SHOWN: Final = Shown(
    totals={"total_lag": "lag"},
    most={
        "unchanged_ms": "unchanged_ms",
        "members": "members",
        "oldest_unread_ms": "oldest_unread_ms",
        "oldest_unread_at_least_ms": "oldest_unread_at_least_ms",
        "last_active_ms_ago": "last_active_ms_ago",
    },
    each=("committed_offset", "lag", "oldest_unread_ms"),
)


def judge(view: View) -> Judgement:
    """Judge every group that has commits; a share group's start offset says not what is read next."""
    snapshot = view.snapshot
    places = snapshot.offset_commits
    subjects = CommitSubjects(snapshot, places)
    of_commit = snapshot.commits.group[places]
    lag = _lag(snapshot, places)
    nothing = snapshot.commits.nothing_to_read.take(places)
    since = _since(view, places)
    active = view.memory.groups.active_of(snapshot.groups).take(of_commit)
    members = have_members(snapshot.groups).take(of_commit)
    has_no_information: Bools = nothing.valid & (nothing.values == 1)
    may_be_nothing = ~nothing.valid & (
        (lag.values <= SMALL_LAG) | snapshot.commits.scan_failed[places]
    )
    nobody = members.valid & (members.values == 0)
    is_abandoned = ~active.valid | view.is_unchanged_for(active, ABANDONED_AFTER)
    judgement = decide(
        RULE,
        subjects,
        [
            Case(has_no_information, Verdict.OK, Why.NOTHING_TO_READ),
            Case(~lag.valid, Verdict.UNKNOWN, Why.END_NOT_SEEN),
            Case(lag.values == 0, Verdict.OK, Why.NOTHING_TO_READ),
            Case(~view.is_unchanged_for(since, UNCHANGED), Verdict.OK, Why.MOVES),
            Case(_reads_elsewhere(view, places, lag, since), Verdict.OK, Why.READS_ELSEWHERE),
            Case(may_be_nothing, Verdict.UNKNOWN, Why.NOT_DETERMINED),
            Case(~members.valid, Verdict.UNKNOWN, Why.MEMBERS_NOT_SEEN),
            Case(nobody & is_abandoned, Verdict.BREACH, Why.ABANDONED),
            Case(nobody, Verdict.BREACH, Why.NO_MEMBERS),
        ],
        (Verdict.BREACH, Why.NOT_MOVING),
        {
            "committed_offset": Column.known(snapshot.commits.committed_offset[places]),
            "lag": lag,
            "unchanged_ms": view.unchanged_ms(since),
            "members": Column.of(group.member_count for group in snapshot.groups).take(of_commit),
            "last_active_ms_ago": view.unchanged_ms(active),
            **_oldest_unread(view, places),
        },
        questions=_questions(view),
    )
    return by_group(_but_hidden(view, of_commit, judgement), subjects, SHOWN)


def _but_hidden(view: View, of_commit: Int64s, said: Judgement) -> Judgement:
    """Say UNKNOWN instead of OK where the group may have a commit that this round did not show."""
    snapshot, known = view.snapshot, view.memory.commits
    if len(known) == len(snapshot.commits):
        return said
    is_hidden = np.ones(len(known), np.bool_)
    seen = matching_commits(snapshot, known)
    is_hidden[seen[seen >= 0]] = False
    names = {known.group_ids[group] for group in np.unique(known.group[is_hidden]).tolist()}
    has_hidden = np.array([group.group_id in names for group in snapshot.groups], np.bool_)
    changes = has_hidden[of_commit] & (said.verdicts == Verdict.OK)
    reason = said.reasons.index(Why.COMMIT_NOT_SEEN)
    return replace(
        said,
        verdicts=np.where(changes, np.int8(Verdict.UNKNOWN), said.verdicts),
        reason=np.where(changes, np.int8(reason), said.reason),
    )


def _oldest_unread(view: View, places: Int64s) -> dict[str, Column]:
    """Return for how long the oldest unread offset has been readable, as far as history knows."""
    lags = None if view.time_lags is None else view.time_lags.read_committed
    nothing = Column.absent(len(places))
    known = nothing if lags is None else lags.lag_us.take(places)
    at_least = nothing if lags is None else lags.at_least_us.take(places)
    return {
        "oldest_unread_ms": Column(known.values // 1000, known.valid),
        "oldest_unread_at_least_ms": Column(at_least.values // 1000, at_least.valid),
    }


def _reads_elsewhere(view: View, places: Int64s, lag: Column, since: Column) -> Bools:
    """Mark the commits of groups that work off a backlog on another partition, for a while.

    A commit that moved within the last minute and still has a larger lag shows that; one that keeps
    up with what arrives does not explain why another partition has to wait.
    """
    groups = view.snapshot.commits.group[places]
    works = (
        since.valid
        & ~view.is_unchanged_for(since, UNCHANGED)
        & lag.valid
        & (lag.values > SMALL_LAG)
    )
    has_backlog = np.zeros(len(view.snapshot.groups), np.bool_)
    has_backlog[groups[works]] = True
    elsewhere: Bools = has_backlog[groups] & ~view.is_unchanged_for(since, UNCHANGED_BESIDE_BACKLOG)
    return elsewhere


def _questions(view: View) -> tuple[Question, ...]:
    """Ask behind which larger lags that stand there is anything to read.

    RoundRequests for as long as they stand, answered or not: what nobody asks for any more is forgotten.
    What this round did not see is asked too, so that the next one that does has the answer.
    """
    snapshot, remembered = view.snapshot, view.memory.commits
    wanted = view.is_unchanged_for(remembered.unchanged.since_us, ASKS_AFTER)
    lag = snapshot.commits.read_committed_lag(snapshot.offsets)
    is_small = lag.valid & (lag.values <= SMALL_LAG)
    small = matching_commits(snapshot, remembered)[is_small]
    wanted[small[small >= 0]] = False
    asked = np.flatnonzero(wanted).astype(np.int64)
    return (ReadableQuestion(remembered.keys.take(asked)),) if len(asked) else ()


def _lag(snapshot: Snapshot, places: Int64s) -> Column:
    """Return the read_committed lag, or the other for a group that is above the LSO.

    Where the LSO was not seen neither counts: below it there may be nothing left to read.
    """
    committed = snapshot.commits.read_committed_lag(snapshot.offsets).take(places)
    uncommitted = snapshot.commits.read_uncommitted_lag(snapshot.offsets).take(places)
    stable = snapshot.offsets.last_stable_offset.take(snapshot.commits.row[places])
    values = np.where(committed.valid, committed.values, uncommitted.values)
    return Column(values, committed.valid | uncommitted.valid).where(stable.valid)


def _since(view: View, places: Int64s) -> Column:
    from_memory = matching_commits(view.snapshot, view.memory.commits)
    return view.memory.commits.unchanged.since_us.take(from_memory[places])
