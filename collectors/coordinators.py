"""Chooses the coordinator of each group where brokers disagree.

The leader of the group's partition of `__consumer_offsets` coordinates it. A broker that was frozen
(a long pause, a suspended machine) and wakes up believes briefly that it still is the coordinator: it
lists the group and answers with commits that are minutes old, which would resemble a rewind. The
answer of a broker that does not lead the partition is ignored; the leader is queried instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from collectors.naming import grouped, summarize
from collectors.session import Session
from collectors.state_topic import StateTopic, StateTopicAnswer
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Group
from rules.facts.identity import CONSUMER_OFFSETS, BrokerId

_DEAD: Final = "Dead"
_GROUP_ID_NOT_FOUND: Final = 69


def choose(
    session: Session, listings: Mapping[str, Sequence[Group]], placed: StateTopicAnswer
) -> dict[str, Group]:
    """Return each listed group once, with its coordinator; add a gap where that cannot be queried.

    Without the placement of `__consumer_offsets` (no DESCRIBE on it) the broker that lists a group is
    taken for its coordinator if it is the only one.
    """
    topic = placed if isinstance(placed, StateTopic) else None
    chosen = {name: _choose_listing(topic, name, groups) for name, groups in listings.items()}
    _report_ignored(session, listings, chosen)
    _report_unreachable(session, chosen.values())
    return chosen


def is_dead(described: Any) -> bool:
    """Whether a coordinator says that there is no such group."""
    code = int(described.error_code)
    return code == _GROUP_ID_NOT_FOUND or (not code and described.group_state == _DEAD)


def _choose_listing(placed: StateTopic | None, name: str, groups: Sequence[Group]) -> Group:
    leader = None if placed is None else placed.leader_of(name)
    own = [group for group in groups if group.coordinator == leader]
    if placed is None and len(groups) == 1:
        own = [*groups]
    return own[0] if own else replace(groups[0], coordinator=leader, state=None, protocol_type=None)


def _report_ignored(
    session: Session, listings: Mapping[str, Sequence[Group]], chosen: Mapping[str, Group]
) -> None:
    """Add a gap for each broker that lists groups which it does not coordinate."""
    ignored = grouped(
        (group.coordinator, name)
        for name, groups in listings.items()
        for group in groups
        if group.coordinator is not None and group.coordinator != chosen[name].coordinator
    )
    for broker_id, names in ignored.items():
        why = f"it does not lead their partitions of {CONSUMER_OFFSETS}: its answers are ignored"
        failure = Failure(GapCause.COORDINATOR_MOVING, why)
        what = f"answers of broker {broker_id} about {summarize(names, 'group')}"
        session.add_gap(GapScope.MEMBERS, what, failure, broker_id=broker_id)


def _report_unreachable(session: Session, groups: Iterable[Group]) -> None:
    """Add gaps for the groups whose coordinator is unknown or not registered."""
    unreachable = grouped(
        (group.coordinator, group.group_id)
        for group in groups
        if session.broker(group.coordinator) is None
    )
    for coordinator, names in unreachable.items():
        what = summarize(names, "group")
        for scope, of in ((GapScope.MEMBERS, "members"), (GapScope.COMMITS, "commits")):
            session.add_gap(scope, f"{of} of {what}", _failure(coordinator), broker_id=coordinator)


def _failure(coordinator: BrokerId | None) -> Failure:
    if coordinator is None:
        why = f"no broker is known to lead their partitions of {CONSUMER_OFFSETS}"
        return Failure(GapCause.COORDINATOR_MOVING, why)
    why = f"broker {coordinator}, which leads their partitions of {CONSUMER_OFFSETS}, is not registered"
    return Failure(GapCause.UNREACHABLE, why)
