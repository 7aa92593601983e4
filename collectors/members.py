"""Reads the members of a group out of the answer that describes it.

A classic group's coordinator passes on what the group's leader assigned, and only while the group is
stable; a KIP-848 or share group's coordinator assigns itself. An assignment that is not reported, or
that cannot be read, is not known: it is never taken for an empty one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final

from collectors.wire.codec import UnreadableError
from collectors.wire.consumer_protocol import read_assignment
from rules.facts.column import replace_fields
from rules.facts.groups import Group, GroupType
from rules.facts.members import STABLE, Assignment, Member

Description = tuple[Any, Group, Group]  # the answer, the group as listed, and as described
CONSUMER_PROTOCOL: Final = "consumer"  # others, such as Kafka Connect's, do not assign partitions


@dataclass(slots=True)
class Descriptions:
    """Groups as they were described; one that is described as in the round before is the same object.

    So what follows from its members is not computed anew, where one of a thousand groups has changed.
    """

    before: Mapping[str, Description]
    now: dict[str, Description] = field(default_factory=dict)

    def group_of(self, listed: Group, described: Any) -> Group:
        """Return a listed group with what its description adds."""
        name = listed.group_id
        cached = self.before.get(name)
        if cached is not None and cached[1] == listed and cached[0] == described:
            self.now[name] = cached
            return cached[2]
        group = replace_fields(
            listed,
            state=described.group_state or None,
            member_count=len(described.members),
            epoch=getattr(described, "group_epoch", None),
            assignor=assignor_of(described),
            members=members_of(described, listed.group_type, cached),
        )
        self.now[name] = described, listed, group
        return group


def assignor_of(described: Any) -> str | None:
    """Return who assigns the partitions; None where nobody does, or the answer has no such field."""
    named = getattr(described, "assignor_name", None) or getattr(described, "protocol_data", None)
    return str(named) if named else None


def members_of(
    described: Any, group_type: GroupType, before: Description | None = None
) -> tuple[Member, ...]:
    """Return the members of a described group, ordered by client id and member id.

    A member that is described as `before` is the same object: what follows from it stays true.
    """
    read = _classic if group_type is GroupType.CLASSIC else _assigned_by_broker
    known = {} if before is None else _known_members(before, described, group_type)
    members: list[Member] = []
    for answer in described.members:
        cached = known.get(answer.member_id)
        is_same = cached is not None and cached[0] == answer
        members.append(cached[1] if cached and is_same else read(described, answer))
    return tuple(sorted(members, key=_by_client))


_by_client: Final = attrgetter("client_id", "member_id")


def _known_members(
    before: Description, described: Any, group_type: GroupType
) -> Mapping[str, tuple[Any, Member]]:
    """Return by id how members were described and what was read; none if it must be read otherwise now."""
    answer, listed, group = before
    if listed.group_type is not group_type or answer.group_state != described.group_state:
        return {}
    members = {member.member_id: member for member in group.members or ()}
    return {entry.member_id: (entry, members[str(entry.member_id)]) for entry in answer.members}


def _classic(described: Any, member: Any) -> Member:
    is_reported = described.group_state == STABLE and described.protocol_type == CONSUMER_PROTOCOL
    return Member(
        member_id=str(member.member_id),
        client_id=str(member.client_id),
        host=_host(member.client_host),
        instance_id=member.group_instance_id,
        epoch=None,
        assignment=_assignment(bytes(member.member_assignment)) if is_reported else None,
    )


def _assigned_by_broker(described: Any, member: Any) -> Member:
    del described
    # The tasks of a streams group name subtopologies, from which partitions do not follow.
    topics = getattr(member.assignment, "topic_partitions", None)
    return Member(
        member_id=str(member.member_id),
        client_id=str(member.client_id),
        host=_host(member.client_host),
        instance_id=getattr(member, "instance_id", None),
        epoch=int(member.member_epoch),
        assignment=None
        if topics is None
        else tuple((str(topic.topic_name), tuple(map(int, topic.partitions))) for topic in topics),
    )


def _assignment(body: bytes) -> Assignment | None:
    try:
        return read_assignment(body)
    except UnreadableError:
        return None


def _host(client_host: str) -> str:
    """Return the address without the slash that Java prints before it."""
    return str(client_host).removeprefix("/")
