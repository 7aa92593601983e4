"""A group does not advance although there are records to read.

Detects:
    Groups whose committed offset has not moved for a while although there is lag, and the lag does
    not consist of transaction markers and aborted records alone. One finding per group;
    `partitions` lists the partitions concerned, the largest lag first.

Why it matters:
    The pipeline has stopped. On a transactional topic, an alert on lag alone cannot distinguish
    this from a group that has read everything: the last transaction marker leaves a lag of 1 for
    good.

Inputs:
    Committed offsets and since when each has not changed; read_committed and read_uncommitted lag;
    `nothing_to_read`; the number of members; and when the group was last active, that is, had
    members or advanced its commit. All of this is kept across restarts. From the offset history:
    for how long the oldest unread offset has been readable.

    For larger lags, `nothing_to_read` is determined by reading the log, which takes some rounds;
    until then a larger lag counts as records to read. Reading the log needs READ on the topic:
    without it, or while the leader does not answer, the rule is UNKNOWN. Where brokers return no
    topic ids (before Kafka 2.8), a topic that was created again counts as the same topic, and an
    equal committed offset on it as unchanged.

Thresholds:
    1 minute without movement, because clients commit every 5 s by default, and 4 more minutes
    before anybody is notified: longer than the checkpoint interval of most stream processors. For
    lags above 10 offsets the log is read after half a minute, so that the answer is there when the
    minute has passed.

    10 minutes where the group works through a backlog on another partition: a client processes what
    it has fetched of one partition, 1 MB by default, before it turns to the next, and at 50 records
    of 100 bytes per second that takes more than 3 minutes each.

    A group that has not been active for 7 days (as long as Kafka keeps the offsets of a group
    without members), or at no time since it was first observed, counts as abandoned and is reported
    as info.

False positives:
    Groups that commit less often than every 5 minutes; a group that was taken out of use less than
    7 days ago (`no_members`); a long range of aborted records, until it has been read. Conversely:
    a read_uncommitted group that stops before aborted records alone counts as having read
    everything, and a stalled member is reported only after 10 minutes while another member of its
    group works through a backlog.

Runbook:
    - `not_moving`: the application runs and does not commit. Search for a poison record, a blocked
      downstream system, or an open transaction of the application itself. A last stable offset that
      does not move either (rule last_stable_offset_stuck) blocks read_committed groups.
    - `no_members`: the application is down. Start it, or delete the group if it is no longer
      needed.
    - `abandoned`: nothing needs to be done. Delete the group to remove the finding.
    - `not_determined`: grant Tidemark READ on the topic; the gaps of the round name the topic.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.by_group import Shown, by_group
from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_memory import groups_with_hidden_commits, matching_commits
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
    """Reasons of this rule, the most important first: that one is the reason of the group."""

    NOT_MOVING = "not_moving"
    NO_MEMBERS = "no_members"  # recently active: its application is down
    ABANDONED = "abandoned"  # no member for a week, or since the group was first observed
    MEMBERS_NOT_SEEN = "members_not_seen"  # stalled, and its members could not be read
    NOT_DETERMINED = "not_determined"  # the lag may be markers alone, and the log was not read
    END_NOT_SEEN = "end_not_seen"
    COMMIT_NOT_SEEN = "commit_not_seen"  # the commit of one of its partitions is missing
    READS_ELSEWHERE = "reads_elsewhere"  # works through a backlog on another partition first
    MOVES = "moves"
    NOTHING_TO_READ = "nothing_to_read"


RULE: Final = RuleMeta(
    rule_id="consumer_group_stalled",
    subject=SubjectKind.GROUP,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    milder=((Why.ABANDONED, Severity.INFO),),
    for_=timedelta(minutes=4),
    summary="A group does not advance although there are records to read.",
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
    """Judge every group that has commits, without share groups: their start offset is no position."""
    snapshot = view.snapshot
    places = snapshot.offset_commits
    subjects = CommitSubjects(snapshot, places)
    of_commit = snapshot.commits.group[places]
    lag = _lag(snapshot, places)
    has_no_information, may_be_nothing = _nothing_to_read(snapshot, places, lag)
    since = _since(view, places)
    active = view.memory.groups.active_of(snapshot.groups).take(of_commit)
    members = have_members(snapshot.groups).take(of_commit)
    nobody = members.valid & (members.values == 0)
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
            Case(view.are_abandoned(ABANDONED_AFTER)[of_commit], Verdict.BREACH, Why.ABANDONED),
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
        questions=_request_readable(view),
    )
    return by_group(_downgrade_hidden(view, of_commit, judgement), subjects, SHOWN)


def _nothing_to_read(snapshot: Snapshot, places: Int64s, lag: Column) -> tuple[Bools, Bools]:
    """Mark the commits with nothing to read behind them, and those of which that is not known."""
    nothing = snapshot.commits.nothing_to_read.take(places)
    is_small = (lag.values <= SMALL_LAG) | snapshot.commits.scan_failed[places]
    has_no_information: Bools = nothing.valid & (nothing.values == 1)
    may_be_nothing: Bools = ~nothing.valid & is_small
    return has_no_information, may_be_nothing


def _downgrade_hidden(view: View, of_commit: Int64s, judgement: Judgement) -> Judgement:
    """Turn OK into UNKNOWN where the group has a remembered commit that this round did not read."""
    groups = view.snapshot.groups
    names = groups_with_hidden_commits(view.snapshot, view.memory.commits)
    if not names:
        return judgement
    has_hidden = np.array([group.group_id in names for group in groups], np.bool_)
    changes = has_hidden[of_commit] & (judgement.verdicts == Verdict.OK)
    reason = judgement.reasons.index(Why.COMMIT_NOT_SEEN)
    return replace(
        judgement,
        verdicts=np.where(changes, np.int8(Verdict.UNKNOWN), judgement.verdicts),
        reason=np.where(changes, np.int8(reason), judgement.reason),
    )


def _oldest_unread(view: View, places: Int64s) -> dict[str, Column]:
    """Return for how long the oldest unread offset has been readable, as far as the history reaches."""
    lags = None if view.time_lags is None else view.time_lags.read_committed
    nothing = Column.absent(len(places))
    exact = nothing if lags is None else lags.lag_us.take(places)
    at_least = nothing if lags is None else lags.at_least_us.take(places)
    return {
        "oldest_unread_ms": Column(exact.values // 1000, exact.valid),
        "oldest_unread_at_least_ms": Column(at_least.values // 1000, at_least.valid),
    }


def _reads_elsewhere(view: View, places: Int64s, lag: Column, since: Column) -> Bools:
    """Mark the commits of groups that work through a backlog on another partition, for 10 minutes.

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


def _request_readable(view: View) -> tuple[Question, ...]:
    """Request for larger lags that do not move whether there is anything to read.

    Requested in every round until the commit moves, answered or not: the answer is kept only as long as
    it is requested. Commits that this round did not read are included, so that the next round that reads
    them has the answer.
    """
    snapshot, remembered = view.snapshot, view.memory.commits
    needs_scan = view.is_unchanged_for(remembered.unchanged.since_us, ASKS_AFTER)
    lag = snapshot.commits.read_committed_lag(snapshot.offsets)
    is_small = lag.valid & (lag.values <= SMALL_LAG)
    small = matching_commits(snapshot, remembered)[is_small]
    needs_scan[small[small >= 0]] = False
    places = np.flatnonzero(needs_scan).astype(np.int64)
    return (ReadableQuestion(remembered.keys.take(places)),) if len(places) else ()


def _lag(snapshot: Snapshot, places: Int64s) -> Column:
    """Return the read_committed lag, or the read_uncommitted lag of a group that is above the LSO.

    Where the LSO was not read neither counts: below it there may be nothing left to read.
    """
    committed = snapshot.commits.read_committed_lag(snapshot.offsets).take(places)
    uncommitted = snapshot.commits.read_uncommitted_lag(snapshot.offsets).take(places)
    stable = snapshot.offsets.last_stable_offset.take(snapshot.commits.row[places])
    values = np.where(committed.valid, committed.values, uncommitted.values)
    return Column(values, committed.valid | uncommitted.valid).where(stable.valid)


def _since(view: View, places: Int64s) -> Column:
    from_memory = matching_commits(view.snapshot, view.memory.commits)
    return view.memory.commits.unchanged.since_us.take(from_memory[places])
