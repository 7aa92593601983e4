"""Whether a subject that a round does not show is really gone: told per kind of subject.

A gap hides what it is about and nothing else. Brokers without ELR or a setting that may not be read
are gaps of every round, and must not keep the finding of a deleted topic open for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from rules.facts.snapshot import Snapshot
from rules.verdict import Kind, SubjectKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """What a round could see of all that exists; by default nothing."""

    was_made: bool = False
    placement: bool = False
    commits: bool = False
    but_groups: frozenset[str] = frozenset()  # those whose commits may be missing all the same
    transactions: bool = False
    clients: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Completeness:
        """Return what a snapshot shows completely; None is a round without one."""
        if snapshot is None:
            return cls()
        return cls(
            was_made=True,
            placement=snapshot.placement_complete,
            commits=snapshot.commits_complete,
            but_groups=snapshot.groups_without_commits,
            transactions=snapshot.transactions_seen,
            clients=snapshot.scrapes.is_complete,
        )

    def proves_absence(self, labels: Mapping[str, str], finding: Kind = Kind.STATE) -> bool:
        """Whether the subject with these labels is gone if it was not judged.

        A transaction that ended is gone, and what happened to it is not: an event stays.
        """
        kind = subject_kind(labels)
        match kind:
            case SubjectKind.PARTITION:
                return self.placement
            case SubjectKind.COMMIT | SubjectKind.GROUP:
                return self.commits and labels["group"] not in self.but_groups
            case SubjectKind.TRANSACTION:
                return self.transactions and finding is Kind.STATE
            case SubjectKind.CLIENT:
                return self.clients
            case SubjectKind.CLUSTER | SubjectKind.RULE:
                return self.was_made
            case _:
                assert_never(kind)


def subject_kind(labels: Mapping[str, str]) -> SubjectKind:
    """Return what labels name; a kind of subject fixes them."""
    if "group" in labels:
        return SubjectKind.COMMIT if "topic" in labels else SubjectKind.GROUP
    if "transactional_id" in labels:
        return SubjectKind.TRANSACTION
    if "client" in labels:
        return SubjectKind.CLIENT
    if "topic" in labels:
        return SubjectKind.PARTITION
    return SubjectKind.RULE if "rule" in labels else SubjectKind.CLUSTER
