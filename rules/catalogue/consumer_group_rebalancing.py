"""A group rebalances again and again, or does not finish a rebalance.

Detects:
    Groups in which at least 5 rebalances were observed within 15 minutes, the last of them in the
    latter half, of which at least 2 are no deployment's: a member left that had joined within the
    hour, or partitions got another owner although nobody joined or left. And groups that have been
    rebalancing for 5 minutes. `rebalances` lists the last ones: how many members joined and left,
    how many of those that left were short-lived, how many were there before and after (`stayed`), and
    how many partitions got another owner. A rebalance in which nobody stays disturbs nobody, and does
    not count.

Why it matters:
    While a classic group rebalances, its members read nothing or read less, and what they had
    fetched is read again by others. A member that is killed, or that takes too long between two
    polls, makes the others rebalance each time it comes back.

Inputs:
    The members, assignments and state of each group as its coordinator describes them, compared
    from round to round, and the group epoch (KIP-848). A rebalance of a classic group that begins
    and ends between two rounds and assigns as before is not observed: the count is a lower bound.
    What was observed in the last hour is kept across restarts, except for when members joined. A
    static member that restarts within its session timeout has not left. Needs DESCRIBE on the group: without
    it the rule is UNKNOWN.

Thresholds:
    5 rebalances within 15 minutes, and 15 more minutes before anybody is notified. In a rolling
    deployment each member leaves once and another one joins, in a group of any size, which does not
    count; one member of it that starts twice does not either. Nor does a rebalance after which everything
    is as before, as brokers that restart cause it. Nothing for 7.5 minutes: it is over,
    while a process that is restarted with backoff comes back at least every 5 minutes. 5 minutes for one
    rebalance, because that is how long members may take by default (max.poll.interval.ms).

False positives:
    A deployment that is rolled back so slowly that new members leave for more than a quarter of an
    hour; an autoscaler that adds and removes members every few minutes. None are consumers that come
    and go alone, as a job every few minutes or one that is scaled to zero: they disturb nobody. Nor are
    jobs of several members that end one after the other.

Runbook:
    - `repeated`: `tidemark groups show GROUP` lists who joined and left. The same client id that
      leaves and joins again: look in its log for a crash, for "max.poll.interval.ms" or for a
      session timeout. All members in turn: a deployment that does not end. Nobody joins or leaves:
      subscriptions change, or topics that match them are created.
    - `not_finished`: a member has not answered yet. `tidemark groups show GROUP` names the members;
      the one whose application hangs keeps the others waiting until it is fenced.
    - `not_described`: grant Tidemark DESCRIBE on the group; the gaps of the round name it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import numpy as np

from rules.evidence import Evidence
from rules.facts.column import Column
from rules.facts.groups import GroupType
from rules.facts.last_observation import microseconds
from rules.facts.times import MICROSECOND
from rules.judgement import Case, GroupSubjects, Judgement, Reason, decide
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

WITHIN: Final = timedelta(minutes=15)
LEAST: Final = 5
LEAST_REPEATED: Final = 2  # of them
GOING_ON: Final = WITHIN / 2
UNFINISHED: Final = timedelta(minutes=5)
HOUR: Final = timedelta(hours=1)
SHOWN: Final = 10  # rebalances
JUDGED: Final = (GroupType.CLASSIC, GroupType.CONSUMER)  # of others assignments are not known


class Why(Reason):
    """Reasons of this rule."""

    NOT_FINISHED = "not_finished"
    REPEATED = "repeated"
    NOT_DESCRIBED = "not_described"
    NO_MEMBERS = "no_members"
    SETTLED = "settled"


RULE: Final = RuleMeta(
    rule_id="consumer_group_rebalancing",
    subject=SubjectKind.GROUP,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    for_=timedelta(minutes=15),
    summary="A group rebalances again and again.",
)


def judge(view: View) -> Judgement:
    """Judge every classic and KIP-848 group."""
    snapshot, now = view.snapshot, microseconds(view.now)
    places = [place for place, group in enumerate(snapshot.groups) if group.group_type in JUDGED]
    groups = [snapshot.groups[place] for place in places]
    histories = [view.memory.members.history_of(group.group_id) for group in groups]
    since = now - WITHIN // MICROSECOND
    recent = Column.of(history.disturbing_since(since) for history in histories)
    repeated = Column.of(history.repeated_since(since) for history in histories)
    newest = Column.of(history.newest_disturbing_us for history in histories)
    is_over = view.is_unchanged_for(newest, GOING_ON)
    unsettled = Column.of(history.unsettled_since_us for history in histories)
    is_empty = np.array([group.members == () for group in groups], np.bool_)

    def details(position: int) -> Evidence:
        rebalances = histories[position].rebalances[: -SHOWN - 1 : -1]
        return {
            "assignor": groups[position].assignor,
            "rebalances": [
                {
                    "ms_ago": (now - entry.observed_us) // 1000,
                    "count": entry.count,
                    "joined": entry.joined,
                    "left": entry.left,
                    "short_lived": entry.short_lived,
                    "stayed": entry.stayed,
                    "moved_partitions": entry.moved_partitions,
                    "epoch": entry.epoch,
                }
                for entry in rebalances
            ],
        }

    return decide(
        RULE,
        GroupSubjects(snapshot, np.array(places, np.int64)),
        [
            Case(
                np.array([group.members is None for group in groups], np.bool_),
                Verdict.UNKNOWN,
                Why.NOT_DESCRIBED,
            ),
            Case(view.is_unchanged_for(unsettled, UNFINISHED), Verdict.BREACH, Why.NOT_FINISHED),
            Case(
                (recent.values >= LEAST) & (repeated.values >= LEAST_REPEATED) & ~is_over,
                Verdict.BREACH,
                Why.REPEATED,
            ),
            Case(is_empty, Verdict.OK, Why.NO_MEMBERS),
        ],
        (Verdict.OK, Why.SETTLED),
        {
            "rebalances_in_15_minutes": recent,
            "repeated_in_15_minutes": repeated,
            "rebalances_in_hour": Column.of(
                history.disturbing_since(now - HOUR // MICROSECOND) for history in histories
            ),
            "unfinished_ms": view.unchanged_ms(unsettled),
            "members": Column.of(group.member_count for group in groups),
        },
        details=details,
    )
