"""Members, owners and rebalances of groups, as the API answers and the command line prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field

from rules.facts import members as facts
from rules.facts.column import Int64s
from rules.facts.groups import Group
from rules.facts.member_memory import GroupHistory
from rules.facts.members import Ownership
from rules.facts.snapshot import Snapshot
from rules.owners import owners_of
from service.views.model import Model, Row, Timestamp

# Of one group in an answer.
MOST_MEMBERS: Final = 1000
MOST_UNOWNED: Final = 1000  # partitions

OwnerField = Annotated[
    Ownership,
    Field(
        description="Whether a member owns the partition; unknown while the group rebalances, and "
        "where it could not be described"
    ),
]
OwnerText = Annotated[str | None, Field(description="Of the owner; null where none is known")]


class AssignedTopic(Model):
    """The partitions of one topic that a member owns."""

    topic: str
    partitions: list[int]


class Member(Model):
    """A member of a group as its coordinator describes it."""

    member_id: str
    client_id: str
    host: Annotated[str, Field(description="The client's address as the coordinator sees it")]
    instance_id: Annotated[str | None, Field(description="Of a static member")]
    epoch: Annotated[int | None, Field(description="Of a KIP-848 member")]
    partition_count: Annotated[int | None, Field(description="null: not known")]
    assignment: Annotated[
        list[AssignedTopic] | None, Field(description="null: not known, as during a rebalance")
    ]


class Rebalance(Model):
    """A change of a group between two rounds."""

    observed_at: Annotated[Timestamp, Field(validation_alias="observed_us")]
    count: Annotated[int, Field(description="At least so many")]
    joined: Annotated[int | None, Field(description="Members; null: not known")]
    left: Annotated[int | None, Field(description="Members; null: not known")]
    short_lived: Annotated[
        int | None,
        Field(description="Of those that left: members that had joined within the hour before"),
    ]
    stayed: Annotated[
        int | None,
        Field(
            description="Members there before and after; 0: it disturbed nobody; null: not known"
        ),
    ]
    moved_partitions: Annotated[
        int | None, Field(description="That have another owner, or none; null: not known")
    ]
    epoch: Annotated[int | None, Field(description="Of a KIP-848 group afterwards")]


class UnownedPartition(Model):
    """A partition that had an owner and has none."""

    topic: str
    partition: int
    last_member_id: str
    last_client_id: str
    last_host: str
    has_left: Annotated[bool, Field(description="false: still a member, and owns it no longer")]
    since: Timestamp


def member_models(group: Group) -> list[Member] | None:
    """Return the first members of a group by client id; None if it was not described."""
    if group.members is None:
        return None
    return [_member(member) for member in group.members[:MOST_MEMBERS]]


def member_rows(group: Group) -> list[Row] | None:
    """Return the same as JSON documents."""
    models = member_models(group)
    return None if models is None else [model.to_row() for model in models]


def _member(member: facts.Member) -> Member:
    topics = member.assignment
    assignment = (
        None
        if topics is None
        else [AssignedTopic(topic=name, partitions=list(numbers)) for name, numbers in topics]
    )
    return Member.of(member, assignment=assignment)


def rebalance_models(history: GroupHistory) -> list[Rebalance]:
    """Return the rebalances of the last hour, the newest first."""
    return [Rebalance.of(entry) for entry in reversed(history.rebalances)]


def unowned_models(history: GroupHistory) -> list[UnownedPartition]:
    """Return the first partitions that had an owner and have none, by topic and partition."""
    partitions = sorted(
        (
            (entry.topic, number, entry.last_owner)
            for entry in history.unowned
            for number in entry.partitions
        ),
        key=lambda row: row[:2],
    )
    return [
        UnownedPartition.of(
            owner,
            topic=topic,
            partition=number,
            last_member_id=owner.member_id,
            last_client_id=owner.client_id,
            last_host=owner.host,
            since=owner.lost_us,
        )
        for topic, number, owner in partitions[:MOST_UNOWNED]
    ]


def count_unowned(history: GroupHistory) -> int:
    """Return how many partitions had an owner and have none."""
    return sum(len(entry.partitions) for entry in history.unowned)


def owner_columns(snapshot: Snapshot, places: Int64s) -> dict[str, Sequence[Any]]:
    """Return the owners of the partitions of these commits, a column per field."""
    commits = snapshot.commits
    owners = owners_of(snapshot, commits.group[places], commits.row[places])
    return {
        "owner": [str(ownership) for ownership, _ in owners],
        **{
            name: [None if member is None else getattr(member, name) for _, member in owners]
            for name in ("member_id", "client_id", "host", "instance_id")
        },
    }
