"""A group has members, and none of them owns a partition that has something to read.

Detects:
    Partitions on which a group has committed, which have records that it has not read, and which no
    member of the group owns although the group is stable and has members. One finding per group;
    `partitions` lists them, the largest lag first, with the member that owned each one last.

Why it matters:
    The group looks healthy, and nobody reads these partitions: their lag grows until the records
    expire. It happens where two applications share a group id and only one of them is still there,
    and where the members that are left do not subscribe to the topic.

Inputs:
    The members and assignments of each group as its coordinator describes them, and who owned a
    partition when it last had an owner: for 7 days, and for 24 hours while the group cannot be listed.
    A restart knows the owners of up to 100,000 partitions in all; read_committed and read_uncommitted
    lag; `nothing_to_read`. While a group rebalances, and without DESCRIBE on the group, owners are not
    known and the rule is UNKNOWN.

Thresholds:
    30 seconds until a partition that lost its owner counts: a classic group that rebalances
    cooperatively is stable in between, when a member has given a partition up and nobody has got it
    yet. 5 minutes before anybody is notified: as long as a rebalance may take by default. A partition
    that had no owner since it was first observed is reported as info: the group may have stopped
    reading that topic on purpose.

False positives:
    A topic that the application no longer reads on purpose: delete the group's offsets of that
    topic, or wait for 7 days, after which Kafka forgets them.

Runbook:
    - `member_left`: `last_client_id` and `last_host` name the member that owned the partition. Start
      its application again, or let another one subscribe to the topic.
    - `not_reassigned`: the member that owned it is still there and no longer owns it. Compare the
      subscriptions of the members.
    - `never_owned`: no member owned it since it was first observed (beyond 100,000 partitions: since
      Tidemark started). Delete the offsets if the group no longer reads this topic.
    - `being_reassigned`: it lost its owner in the last 30 seconds; wait for the next rounds.
    - `owners_not_known`: the group rebalances, or Tidemark lacks DESCRIBE on it.
    A group without any member is reported by consumer_group_stalled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

import numpy as np

from rules.by_group import Shown, by_group
from rules.evidence import Scalar
from rules.facts.column import Bools, Column, Int64s
from rules.facts.group_memory import have_members
from rules.facts.groups import GroupType
from rules.facts.last_observation import microseconds
from rules.facts.partitions import PartitionIndex
from rules.facts.snapshot import Snapshot
from rules.facts.unowned_partitions import LastOwner, UnownedPartitions
from rules.judgement import Case, CommitSubjects, Judgement, Reason, decide
from rules.question import SMALL_LAG
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from rules.view import View

REASSIGNED_WITHIN: Final = timedelta(seconds=30)
JUDGED: Final = (GroupType.CLASSIC, GroupType.CONSUMER)


class Why(Reason):
    """Reasons of this rule, the most important first: that one is the reason of the group."""

    MEMBER_LEFT = "member_left"
    NOT_REASSIGNED = "not_reassigned"
    NEVER_OWNED = "never_owned"
    BEING_REASSIGNED = "being_reassigned"
    OWNERS_NOT_KNOWN = "owners_not_known"
    END_NOT_SEEN = "end_not_seen"
    NOT_DETERMINED = "not_determined"  # the lag may be markers alone, and the log was not read
    NO_MEMBERS = "no_members"  # consumer_group_stalled judges those
    NOTHING_TO_READ = "nothing_to_read"
    OWNED = "owned"


RULE: Final = RuleMeta(
    rule_id="consumer_partitions_unowned",
    subject=SubjectKind.GROUP,
    kind=Kind.STATE,
    severity=Severity.WARNING,
    milder=((Why.NEVER_OWNED, Severity.INFO),),
    for_=timedelta(minutes=5),
    summary="No member of a group owns a partition that has records to read.",
)
SHOWN: Final = Shown(
    totals={"total_lag": "lag"},
    most={"members": "members"},
    each=("committed_offset", "lag"),
)


def judge(view: View) -> Judgement:
    """Judge every classic and KIP-848 group that has commits."""
    snapshot, commits = view.snapshot, view.snapshot.commits
    places = _judged(snapshot)
    subjects = CommitSubjects(snapshot, places)
    group, row = commits.group[places], commits.row[places]
    lag = _lag(snapshot, places)
    nothing = commits.nothing_to_read.take(places)
    owners, is_unowned = snapshot.assignments.owners(group, row)
    members = have_members(snapshot.groups).take(group)
    last = _last_owners(view, places[is_unowned & members.valid & (members.values == 1)])
    newest_us = microseconds(view.now - REASSIGNED_WITHIN)
    is_small = (lag.values <= SMALL_LAG) | commits.scan_failed[places]
    judgement = decide(
        RULE,
        subjects,
        [
            Case(members.valid & (members.values == 0), Verdict.OK, Why.NO_MEMBERS),
            Case(owners.valid, Verdict.OK, Why.OWNED),
            Case(nothing.valid & (nothing.values == 1), Verdict.OK, Why.NOTHING_TO_READ),
            Case(lag.valid & (lag.values == 0), Verdict.OK, Why.NOTHING_TO_READ),
            Case(~is_unowned, Verdict.UNKNOWN, Why.OWNERS_NOT_KNOWN),
            Case(~lag.valid, Verdict.UNKNOWN, Why.END_NOT_SEEN),
            Case(~nothing.valid & is_small, Verdict.UNKNOWN, Why.NOT_DETERMINED),
            Case(
                _are(places, last, lambda owner: owner.lost_us > newest_us),
                Verdict.UNKNOWN,
                Why.BEING_REASSIGNED,
            ),
            Case(_are(places, last, lambda owner: owner.has_left), Verdict.BREACH, Why.MEMBER_LEFT),
            Case(
                _are(places, last, lambda owner: not owner.has_left),
                Verdict.BREACH,
                Why.NOT_REASSIGNED,
            ),
        ],
        (Verdict.BREACH, Why.NEVER_OWNED),
        {
            "committed_offset": Column.known(commits.committed_offset[places]),
            "lag": lag,
            "members": Column.of(entry.member_count for entry in snapshot.groups).take(group),
        },
    )
    return by_group(
        judgement, subjects, replace(SHOWN, remark=lambda place: _remark(last.get(place)))
    )


def _judged(snapshot: Snapshot) -> Int64s:
    is_judged = np.array([group.group_type in JUDGED for group in snapshot.groups], np.bool_)
    if not len(snapshot.commits):
        return np.zeros(0, np.int64)
    return np.flatnonzero(is_judged[snapshot.commits.group]).astype(np.int64)


def _lag(snapshot: Snapshot, places: Int64s) -> Column:
    """Return the read_committed lag, or the read_uncommitted lag of a group that is above the LSO."""
    committed = snapshot.commits.read_committed_lag(snapshot.offsets).take(places)
    uncommitted = snapshot.commits.read_uncommitted_lag(snapshot.offsets).take(places)
    stable = snapshot.offsets.last_stable_offset.take(snapshot.commits.row[places])
    values = np.where(committed.valid, committed.values, uncommitted.values)
    return Column(values, committed.valid | uncommitted.valid).where(stable.valid)


def _last_owners(view: View, places: Int64s) -> Mapping[int, LastOwner]:
    """Return by position in the commits who owned what nobody owns, where that was seen."""
    commits, index = view.snapshot.commits, view.snapshot.partitions.index
    owners: dict[int, LastOwner] = {}
    owner_of_row: dict[int, LastOwner] = {}
    last_group = -1
    for place in places.tolist():  # ordered by group
        group = int(commits.group[place])
        if group != last_group:
            history = view.memory.members.history_of(view.snapshot.groups[group].group_id)
            owner_of_row, last_group = _owner_by_row(history.unowned, index), group
        owner = owner_of_row.get(int(commits.row[place]))
        if owner is not None:
            owners[place] = owner
    return owners


def _owner_by_row(
    unowned: Sequence[UnownedPartitions], index: PartitionIndex
) -> dict[int, LastOwner]:
    by_row: dict[int, LastOwner] = {}
    for entry in unowned:
        place = index.position_of_topic.get(entry.topic)
        if place is not None:
            begin, end = index.starts[place : place + 2].tolist()
            rows = (begin + number for number in entry.partitions if number < end - begin)
            by_row |= dict.fromkeys(rows, entry.last_owner)
    return by_row


def _are(
    places: Int64s, last: Mapping[int, LastOwner], accept: Callable[[LastOwner], bool]
) -> Bools:
    chosen = [place for place, owner in last.items() if accept(owner)]
    mask: Bools = np.isin(places, np.array(chosen, np.int64))
    return mask


def _remark(owner: LastOwner | None) -> dict[str, Scalar]:
    if owner is None:
        return {}
    return {
        "last_member_id": owner.member_id,
        "last_client_id": owner.client_id,
        "last_host": owner.host,
    }
