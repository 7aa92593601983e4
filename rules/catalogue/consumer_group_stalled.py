"""A group stands still although there is something to read.

Detects:
    Commits that have not moved for a while with lag behind them, where it is known that the lag is
    not made of markers and aborted records alone.

Why it matters:
    The pipeline does not move. On a transactional topic the usual lag alarm cannot tell this from a
    group that has read everything: the last marker leaves a lag of 1 for ever.

Inputs:
    Committed offsets, since when each has stood, both lags, `nothing_to_read`, the number of members.
    For larger lags `nothing_to_read` is asked for and known some rounds later; until then a larger
    lag counts as something to read. To look into the log needs READ on the topic: without it, or
    while the leader gives no answer, the rule is UNKNOWN. Where brokers tell no topic ids (before
    Kafka 2.8) a topic that was created again is taken for the same one: a commit that is the same
    afterwards has stood.

Thresholds:
    1 minute without movement: clients commit every 5 s by default. It is told after 4 more minutes,
    above the checkpoint interval of most stream processors. Above a lag of 10 offsets the log is
    looked into after half a minute, so that the answer is there when the minute is over.
    10 minutes where the group works off a backlog on another partition: a client reads what it has
    fetched of one partition, 1 MB by default, before it turns to the next, and at 50 records of
    100 bytes a second that takes 3 minutes for each.

False positives:
    Groups that commit less often than every 5 minutes; groups that nobody uses any more, until
    their commits expire (reason `no_members`); a long stretch of aborted records, until it has been
    looked through. The reverse: a read_uncommitted group that stands before aborted records alone
    is taken for one that has read everything; a member that stands while another member of its
    group works off a backlog is told after 10 minutes.

Runbook:
    Reason `cannot_tell`: give Tidemark READ on the topic; the gaps of the round name it. Reason
    `no_members`: the application is down. Reason `not_moving`: it runs and does not commit;
    look for a poison record, a blocked downstream, or an open transaction of its own. A last stable
    offset that does not move either (rule last_stable_offset_stuck) holds read_committed groups.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.facts.column import Bools, Column, Int64s
from rules.facts.commit_memory import matching_commits
from rules.facts.snapshot import Snapshot
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.question import SMALL_LAG, Question, ReadableQuestion
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

STANDS: Final = timedelta(minutes=1)
ASKS_AFTER: Final = STANDS / 2
STANDS_BESIDE_BACKLOG: Final = timedelta(minutes=10)

RULE: Final = RuleMeta(
    rule_id="consumer_group_stalled",
    subject=SubjectKind.COMMIT,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(minutes=4),
    summary="A group stands still although there is something to read.",
)


class Why(Reason):
    """Reasons of this rule."""

    NOTHING_TO_READ = "nothing_to_read"
    MOVES = "moves"
    READS_ELSEWHERE = "reads_elsewhere"  # it works off a backlog on another partition first
    NOT_MOVING = "not_moving"
    NO_MEMBERS = "no_members"
    END_NOT_SEEN = "end_not_seen"
    CANNOT_TELL = "cannot_tell"  # it may be markers alone, and the log was not looked into


def judge(view: View) -> Judgement:
    """Judge every commit that says what is read next; a share group's start offset does not."""
    snapshot = view.snapshot
    places = snapshot.offset_commits
    lag = _lag(snapshot, places)
    nothing = snapshot.commits.nothing_to_read.take(places)
    since = _since(view, places)
    members = Column.of(group.member_count for group in snapshot.groups)
    members = members.take(snapshot.commits.group[places])
    is_told_nothing: Bools = nothing.valid & (nothing.values == 1)
    may_be_nothing = ~nothing.valid & (
        (lag.values <= SMALL_LAG) | snapshot.commits.look_failed[places]
    )
    judgement = decide(
        RULE,
        CommitSubjects(snapshot, places),
        [
            Case(is_told_nothing, Verdict.OK, Why.NOTHING_TO_READ),
            Case(~lag.valid, Verdict.UNKNOWN, Why.END_NOT_SEEN),
            Case(lag.values == 0, Verdict.OK, Why.NOTHING_TO_READ),
            Case(~view.has_stood(since, STANDS), Verdict.OK, Why.MOVES),
            Case(_reads_elsewhere(view, places, lag, since), Verdict.OK, Why.READS_ELSEWHERE),
            Case(may_be_nothing, Verdict.UNKNOWN, Why.CANNOT_TELL),
            Case(members.valid & (members.values == 0), Verdict.BREACH, Why.NO_MEMBERS),
        ],
        (Verdict.BREACH, Why.NOT_MOVING),
        {
            "committed_offset": Column.known(snapshot.commits.committed_offset[places]),
            "lag": lag,
            "stands_ms": view.stands_ms(since),
            "members": members,
        },
    )
    return replace(judgement, questions=_questions(view))


def _reads_elsewhere(view: View, places: Int64s, lag: Column, since: Column) -> Bools:
    """Mark the commits of groups that work off a backlog on another partition, for a while.

    A commit that moved within the last minute and still has a larger lag shows that; one that keeps
    up with what arrives does not explain why another partition has to wait.
    """
    groups = view.snapshot.commits.group[places]
    works = since.valid & ~view.has_stood(since, STANDS) & lag.valid & (lag.values > SMALL_LAG)
    has_backlog = np.zeros(len(view.snapshot.groups), np.bool_)
    has_backlog[groups[works]] = True
    elsewhere: Bools = has_backlog[groups] & ~view.has_stood(since, STANDS_BESIDE_BACKLOG)
    return elsewhere


def _questions(view: View) -> tuple[Question, ...]:
    """Ask behind which larger lags that stand there is anything to read.

    Asked for as long as they stand, answered or not: what nobody asks for any more is forgotten.
    What this round did not see is asked too, so that the next one that does has the answer.
    """
    snapshot, remembered = view.snapshot, view.memory.commits
    wanted = view.has_stood(remembered.standing.since_us, ASKS_AFTER)
    lag = snapshot.commits.read_committed_lag(snapshot.offsets)
    is_small = lag.valid & (lag.values <= SMALL_LAG)
    small = matching_commits(snapshot, remembered)[is_small]
    wanted[small[small >= 0]] = False
    asked = np.flatnonzero(wanted).astype(np.int64)
    return (ReadableQuestion(remembered.keys.take(asked)),) if len(asked) else ()


def _lag(snapshot: Snapshot, places: Int64s) -> Column:
    """Return the read_committed lag, or the other for a group that stands above the LSO.

    Where the LSO was not seen neither counts: below it there may be nothing left to read.
    """
    committed = snapshot.commits.read_committed_lag(snapshot.offsets).take(places)
    uncommitted = snapshot.commits.read_uncommitted_lag(snapshot.offsets).take(places)
    stable = snapshot.offsets.last_stable_offset.take(snapshot.commits.row[places])
    values = np.where(committed.valid, committed.values, uncommitted.values)
    return Column(values, committed.valid | uncommitted.valid).where(stable.valid)


def _since(view: View, places: Int64s) -> Column:
    from_memory = matching_commits(view.snapshot, view.memory.commits)
    return view.memory.commits.standing.since_us.take(from_memory[places])
