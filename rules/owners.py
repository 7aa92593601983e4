"""Which member of a group owns a partition: the evidence that names whom to ask at 3 a.m.

Unknown is said as such: an owner is never guessed from what an earlier round saw.
"""

from __future__ import annotations

import numpy as np

from rules.evidence import Scalar
from rules.facts.column import Int64s
from rules.facts.members import Member, Ownership
from rules.facts.snapshot import Snapshot


def owners_of(
    snapshot: Snapshot, group: Int64s, row: Int64s
) -> list[tuple[Ownership, Member | None]]:
    """Return who owns each (group position, row); a member only where one is known."""
    groups = snapshot.groups
    positions, unowned = snapshot.assignments.owners(group, row)
    rows = zip(group.tolist(), positions.to_list(), unowned.tolist(), strict=True)
    owners: list[tuple[Ownership, Member | None]] = []
    for place, position, is_unowned in rows:
        members = groups[place].members
        if position is not None and members is not None:
            owners.append((Ownership.MEMBER, members[position]))
        else:
            owners.append((Ownership.NOBODY if is_unowned else Ownership.UNKNOWN, None))
    return owners


def owner_evidence(snapshot: Snapshot, group: int, row: int) -> dict[str, Scalar]:
    """Return the owner of one partition for a finding."""
    [evidence] = owners_evidence(snapshot, np.array([group]), np.array([row]))
    return evidence


def owners_evidence(snapshot: Snapshot, group: Int64s, row: Int64s) -> list[dict[str, Scalar]]:
    """Return the owner of each (group position, row) for a finding that shows them all."""
    return [_evidence(*owner) for owner in owners_of(snapshot, group, row)]


def _evidence(ownership: Ownership, member: Member | None) -> dict[str, Scalar]:
    if member is None:
        return {"owner": str(ownership)}
    return {
        "owner": str(ownership),
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
    }
