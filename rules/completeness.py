"""Whether a subject that is missing from a round is really gone, per kind of subject.

A gap hides its own subject and nothing else. Brokers without ELR, or a setting without permission to read
it, are gaps of every round, and must not keep the finding of a deleted topic open for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from rules.facts.snapshot import Snapshot
from rules.verdict import Kind, SubjectKind

# Which kind of subject a label is of, outside groups: the first label that is there decides.
_NAMED_BY: Final = (
    ("transactional_id", SubjectKind.TRANSACTION),
    ("broker", SubjectKind.BROKER),
    ("client", SubjectKind.CLIENT),
    ("partition", SubjectKind.PARTITION),
    ("topic", SubjectKind.TOPIC),
    ("check", SubjectKind.CHECK),
    ("rule", SubjectKind.RULE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """Which kinds of subjects a round has read completely; by default none."""

    was_made: bool = False
    placement: bool = False
    commits: bool = False
    but_groups: frozenset[str] = frozenset()  # groups whose commits may be missing nevertheless
    transactions: bool = False
    clients: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot | None) -> Completeness:
        """Return the completeness of a snapshot; None is a round without one."""
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

        A transaction that has ended is gone, but an event about it stays.
        """
        kind = subject_kind(labels)
        match kind:
            case SubjectKind.PARTITION | SubjectKind.TOPIC | SubjectKind.BROKER:
                return self.placement
            case SubjectKind.COMMIT | SubjectKind.GROUP:
                return self.commits and labels["group"] not in self.but_groups
            case SubjectKind.TRANSACTION:
                return self.transactions and finding is Kind.STATE
            case SubjectKind.CLIENT:
                return self.clients
            case SubjectKind.CLUSTER | SubjectKind.RULE | SubjectKind.CHECK:
                return self.was_made
            case _:
                assert_never(kind)


def subject_kind(labels: Mapping[str, str]) -> SubjectKind:
    """Return the kind of subject that has these labels."""
    if "group" in labels:
        return SubjectKind.COMMIT if "topic" in labels else SubjectKind.GROUP
    return next((kind for name, kind in _NAMED_BY if name in labels), SubjectKind.CLUSTER)
