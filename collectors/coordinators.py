"""Which broker coordinates a group, where brokers disagree.

The leader of the group's partition of `__consumer_offsets` coordinates it. A broker that was frozen
(a long pause, a suspended machine) and wakes up believes briefly that it still is: it lists the
group and answers with commits that are minutes old, which would resembles a rewind. What a broker that
does not lead there says of a group is not taken; the leader is asked instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from collectors.naming import counted, listed
from collectors.session import Session
from collectors.state_topic import OFFSETS_TOPIC, StateTopic, StateTopicAnswer
from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Group
from rules.facts.identity import BrokerId

_DEAD: Final = "Dead"
_GROUP_ID_NOT_FOUND: Final = 69


def choose(
    session: Session, listings: Mapping[str, Sequence[Group]], placed: StateTopicAnswer
) -> dict[str, Group]:
    """Return each listed group once, with its coordinator; what cannot be asked of it is a gap.

    Without the placement of `__consumer_offsets` (no DESCRIBE on it) the only broker that lists a
    group is taken for its coordinator, and of two none.
    """
    known = placed if isinstance(placed, StateTopic) else None
    chosen = {name: _chosen(known, name, found) for name, found in listings.items()}
    _tell_ignored(session, listings, chosen)
    _tell_unasked(session, chosen.values())
    return chosen


def is_dead(described: Any) -> bool:
    """Whether a coordinator says that there is no such group."""
    code = int(described.error_code)
    return code == _GROUP_ID_NOT_FOUND or (not code and described.group_state == _DEAD)


def _chosen(placed: StateTopic | None, name: str, found: Sequence[Group]) -> Group:
    leader = None if placed is None else placed.leader_of(name)
    own = [group for group in found if group.coordinator == leader]
    if placed is None and len(found) == 1:
        own = [*found]
    return own[0] if own else replace(found[0], coordinator=leader, state=None, protocol_type=None)


def _tell_ignored(
    session: Session, listings: Mapping[str, Sequence[Group]], chosen: Mapping[str, Group]
) -> None:
    """Add a gap for each broker that lists groups which it does not coordinate."""
    ignored: dict[BrokerId, list[str]] = {}
    for name, found in listings.items():
        for group in found:
            if group.coordinator is not None and group.coordinator != chosen[name].coordinator:
                ignored.setdefault(group.coordinator, []).append(name)
    for broker_id, names in ignored.items():
        why = f"by the newest leaders of {OFFSETS_TOPIC} it does not coordinate them: it was not asked"
        failure = Failure(GapCause.COORDINATOR_MOVING, why)
        what = f"what broker {broker_id} says of {counted(len(names), 'group')} ({listed(names)})"
        session.add_gap(GapScope.MEMBERS, what, failure, broker_id=broker_id)


def _tell_unasked(session: Session, groups: Iterable[Group]) -> None:
    """Add gaps for the groups whose coordinator is not known or cannot be asked."""
    unasked: dict[BrokerId | None, list[str]] = {}
    for group in groups:
        coordinator = group.coordinator
        if coordinator is None or session.broker(coordinator) is None:
            unasked.setdefault(coordinator, []).append(group.group_id)
    for coordinator, names in unasked.items():
        what = f"{counted(len(names), 'group')} ({listed(names)})"
        for scope, of in ((GapScope.MEMBERS, "members"), (GapScope.COMMITS, "commits")):
            session.add_gap(scope, f"{of} of {what}", _failure(coordinator), broker_id=coordinator)


def _failure(coordinator: BrokerId | None) -> Failure:
    if coordinator is None:
        why = f"no broker is known to lead their partitions of {OFFSETS_TOPIC}"
        return Failure(GapCause.COORDINATOR_MOVING, why)
    why = (
        f"broker {coordinator}, which leads their partitions of {OFFSETS_TOPIC}, is not registered"
    )
    return Failure(GapCause.UNREACHABLE, why)
