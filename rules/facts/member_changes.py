"""What changed in a group between two descriptions of it: members, and what they own.

A static member keeps its instance id when it restarts, and gets another member id: it is the same member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rules.facts.members import Assignment, Member

Members = Sequence[Member]
Owned = Mapping[str, set[int]]  # partitions by topic
_NOTHING: Assignment = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChanges:
    """What is different in a group; members are named by their identity."""

    joined: frozenset[str]
    left: frozenset[str]
    # Members of before that own something else now, with what they are now; None: they left.
    changed: tuple[tuple[Member, Member | None], ...]
    is_known: bool  # every assignment, before and now

    @property
    def is_empty(self) -> bool:
        """Whether no member joined, left, or owns something else."""
        return not (self.joined or self.left or self.changed)

    @property
    def moved_partitions(self) -> int | None:
        """Return how many partitions have another owner, or none, of those that had one; None: not known."""
        if not self.is_known:
            return None
        return sum(
            len(set(numbers).difference(_own(now, topic)))
            for member, now in self.changed
            for topic, numbers in member.assignment or _NOTHING
        )


def compare_members(before: Members, after: Members) -> MemberChanges:
    """Return what changed in a group."""
    new = {member.identity: member for member in after}
    left: list[str] = []
    changed: list[tuple[Member, Member | None]] = []
    joined = set(new)
    for member in before:
        identity = member.identity
        now = new.get(identity)
        if now is None:
            left.append(identity)
        joined.discard(identity)
        if now is not member and (now is None or now.assignment != member.assignment):
            changed.append((member, now))
    return MemberChanges(
        joined=frozenset(joined),
        left=frozenset(left),
        changed=tuple(changed),
        is_known=_are_assignments_known(before) and _are_assignments_known(after),
    )


def _are_assignments_known(members: Members) -> bool:
    return None not in [member.assignment for member in members]


def owned_partitions(members: Members) -> Owned:
    """Return the partitions that some member owns."""
    owned: dict[str, set[int]] = {}
    for member in members:
        for topic, numbers in member.assignment or _NOTHING:
            owned.setdefault(topic, set()).update(numbers)
    return owned


def _own(member: Member | None, topic: str) -> tuple[int, ...]:
    assignment = _NOTHING if member is None else member.assignment or _NOTHING
    return next((numbers for name, numbers in assignment if name == topic), ())
