"""The documents of commands that read a cluster or logs themselves, made of the models of views.

`groups` and `lag` have the same one from a running Tidemark, which knows more: what it alone knows is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from service.api.baselines.models import Usual
from service.api.clusters.groups import Commit, Group, GroupDetail
from service.api.clusters.partitions import Partition
from service.api.core.models import Stamped, VerdictWord
from service.api.losses.models import LossClass, LossIncident
from service.schemas.client_configs import ClientConfigs
from service.schemas.explained import (
    ExplainedIncident,
    ExplainedLine,
    ExplainedOutput,
    KnownNow,
    LoggedTransactions,
    Unexplained,
)
from service.schemas.forms import Form, compose, list_of, picked
from service.schemas.log_diff import LogDiff
from service.views.application_errors import RelatedErrors
from service.views.cluster import Broker, GroupDescription, SnapshotGap
from service.views.doctor import Doctor
from service.views.fencing import Fencing
from service.views.members import UnownedPartition
from service.views.model import Model
from service.views.posture import PostureCheckRow, PostureRow
from service.views.sequences import ExplainedRejections, LeaderChange, SequenceEvent
from service.views.transactions import Completeness, DescribedTransaction, Transaction


class Source(Stamped):
    """Where groups were read, and whether all of them were."""

    server: Annotated[str | None, Field(description="null: read from the cluster itself")]
    complete: bool
    gaps: Annotated[list[SnapshotGap], Field(description="What was not seen, the first ones")]


class Observed(Model):
    """The cluster that was read, and when."""

    cluster: str
    cluster_id: str | None
    taken_at: datetime


class Round(Observed):
    """What one round took."""

    format: Annotated[int, Field(description="A higher one has fields that mean something else")]
    took_seconds: float
    phase_seconds: dict[str, float]
    requests: Annotated[dict[str, int], Field(description="By kind of request")]
    setup_requests: dict[str, int]
    duplicate_commits: int
    controller: int | None
    brokers: list[Broker]
    gaps_by_cause: dict[str, int]
    gaps: list[SnapshotGap]


class OtherLine(Model):
    """Another line of the logs about the same partition."""

    kind: str
    at: datetime | None
    broker: int | None
    explanation: str


class EarlierRound(Model):
    """The round that a check compares with."""

    file: str
    taken_at: datetime


class CheckedPartition(Model):
    """What can be said of one partition."""

    topic: str
    partition: int
    verdict: VerdictWord
    reason: str
    class_: Annotated[LossClass | None, Field(alias="class", description="Of its worst loss")]
    leader_epoch: int | None
    high_watermark: int | None
    leader_epoch_before: int | None
    high_watermark_before: int | None


_TIME_LAGS: Final = tuple(name for name in Commit.model_fields if "_lag_" in name)
_COLLECTED_COMMIT: Final = compose("CollectedCommit", Commit, without=_TIME_LAGS)
_COLLECTED_GROUP: Final = compose(
    "CollectedGroup", GroupDescription, commits=list_of(_COLLECTED_COMMIT)
)
_COLLECTED_PARTITION: Final = compose(
    "CollectedPartition", Partition, without=("open_span", "unreplicated_span")
)
_GROUPS: Final = compose("Groups", Source, groups=list[Group])
_USUAL: Final = compose("UsualLag", picked(Commit, "topic"), Usual, partition=int | None)
_GROUP: Final = compose(
    "GroupDocument",
    GroupDetail,
    Source,
    without=("unowned", "unowned_count", "items", "next"),
    unowned=list[UnownedPartition] | None,
    unowned_count=int | None,
    partitions=list[Commit],
    usual=list_of(_USUAL) | None,
)
_EXPLAINED: Final = compose(
    "ExplainedEvent",
    ExplainedRejections,
    picked(SequenceEvent, "id", "leader_epoch"),
    optional=("id", "leader_epoch"),
    first_seen=datetime | None,
    last_seen=datetime | None,
    brokers=list[int],
    other_lines=list[OtherLine],
    changes=list[LeaderChange],
    next_command=str | None,
    verdict_by=Annotated[str, Field(description="numbers, lines, service or brokers")],
    by_numbers=picked(ExplainedRejections, "class_", "phase", "reason"),
)

FROM_CLUSTER: Final[Mapping[str, Form]] = {
    "collect": compose(
        "Collected",
        Round,
        partitions=list_of(_COLLECTED_PARTITION),
        groups=list_of(_COLLECTED_GROUP),
    ),
    "doctor": Doctor,
    "explain": compose(
        "Explained",
        lines=int,
        kafka_lines=Annotated[int, Field(description="That speak of Kafka")],
        incidents=Annotated[list[ExplainedIncident], Field(description="Harmless ones last")],
        sequences=Annotated[list_of(_EXPLAINED), Field(description="As of sequence explain")],
        broker_lines=list[ExplainedLine],
        transactions=list[LoggedTransactions],
        tools=Annotated[list[ExplainedOutput], Field(description="Of Kafka's own tools")],
        answers=Annotated[list[KnownNow], Field(description="Of --server or the brokers")],
        unexplained=Annotated[list[Unexplained], Field(description="Of Kafka, and not known")],
        not_kept=Annotated[int, Field(description="Errors beyond the limits")],
        cut_lines=Annotated[int, Field(description="Of Kafka's tools, not whole and not read")],
        errors=Annotated[list[str], Field(description="Queries that failed")],
    ),
    "groups ls": _GROUPS,
    "groups show": _GROUP,
    "lag": _GROUPS | _GROUP,
    "log diff": LogDiff,
    "posture": compose("Posture", Source, checks=list[PostureCheckRow], lines=list[PostureRow])
    | ClientConfigs,
    "loss check": compose(
        "LossCheck",
        cluster=str,
        cluster_id=str | None,
        as_of=datetime,
        before=EarlierRound | None,
        rounds=int,
        complete=bool,
        counts=Annotated[dict[str, int], Field(description="Of partitions, by verdict")],
        limit=Annotated[str, Field(description="What the check could not have seen")],
        errors=list[str],
        gaps=list[SnapshotGap],
        incidents=list[LossIncident],
        partitions=list[CheckedPartition],
    ),
    "sequence explain": list_of(_EXPLAINED),
    "tx hanging": compose(
        "HangingTransactions",
        Observed,
        picked(Completeness, "complete", "transactional_id_visibility"),
        hanging=list[Transaction],
        unknown=list[Transaction],
        gaps=list[SnapshotGap],
    ),
    "tx ls": compose(
        "OpenTransactions",
        Observed,
        Completeness,
        gaps=list[SnapshotGap],
        transactions=list[Transaction],
    ),
    "tx show": compose(
        "TransactionalId",
        Observed,
        transactional_id=str,
        described=DescribedTransaction | None,
        error=list[str],
        transactions=list[Transaction],
        fencing=Annotated[
            list[Fencing] | None, Field(description="null: no running Tidemark was queried")
        ],
        application_errors=RelatedErrors,
        gaps=list[SnapshotGap],
    ),
}
