"""Answers of the API; absent values are null, never 0 or -1."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import GroupType
from rules.facts.scrapes import EndpointKind
from rules.open_findings import EndReason
from rules.verdict import Kind, Severity
from service.api.core.time_lag_models import LowerBound, TimeLag, WhyNoTimeLag
from service.rounds.latest import RoundOutcome
from service.rounds.persistence import PersistenceState


class Model(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class VerdictWord(StrEnum):
    """The words of `rules.verdict.Verdict`."""

    OK = "ok"
    UNKNOWN = "unknown"
    BREACH = "breach"


Evidence = Annotated[
    dict[str, Any],
    Field(
        description="Numbers, words, and lists of both. Stored evidence may have been written by "
        "another version and have other names"
    ),
]


class Stamped(Model):
    """An answer about the cluster."""

    as_of: datetime | None
    """When the data was read; null before the first round"""
    is_current: bool
    """False when the last round failed and older data is shown"""


NextCursor = Annotated[
    str | None, Field(description="Pass it as `cursor` to get the next page; null at the end")
]


class RoundStatus(Model):
    """The last round."""

    number: int
    at: datetime | None
    outcome: RoundOutcome | None
    error: str | None
    took_seconds: float | None
    interval_seconds: float
    age_seconds: Annotated[float | None, Field(description="Since the last round began")]


class StorageStatus(Model):
    """Whether the results of rounds are stored."""

    state: PersistenceState
    error: str | None
    is_final: Annotated[bool, Field(description="No retry will help: an operator has to act")]
    waiting_rounds: int
    lost_rounds: int
    lost_transitions: int
    stored_at: datetime | None
    took_seconds: float | None
    alerts_error: str | None = None
    """Why the last round was stored without its alerts"""


class LogSourceStatus(Model):
    """State of one source of broker log lines; counts are since the start of the process."""

    source: str
    lines: int
    unparsed: int
    """Lines about sequences or lost records that could not be parsed"""
    unreadable: Annotated[list[str], Field(description="The latest of these lines, truncated")]
    lost_bytes: Annotated[int, Field(description="Bytes that were removed before they were read")]
    last_line_at: datetime | None
    """By the broker's clock; null before the first line"""
    error: str | None
    """Why nothing, or not all, could be read in the last round"""


class EndpointStatus(Model):
    """State of scraping the metrics of brokers or clients at one endpoint."""

    endpoint: str
    kind: EndpointKind
    is_up: Annotated[bool, Field(description="The latest scrape was answered")]
    is_fresh: Annotated[bool, Field(description="Its last answer is recent enough to be used")]
    answered_at: Annotated[datetime | None, Field(description="null before its first answer")]
    took_seconds: Annotated[float | None, Field(description="Duration of the latest scrape")]
    samples: Annotated[int, Field(description="Samples kept of its last answer")]
    errors: list[str]
    """Why samples are missing since the latest scrape"""


class RuleStatus(Model):
    """What one rule found in the last round; null before its first evaluation."""

    rule: str
    severity: Severity
    ok: int | None
    unknown: int | None
    breach: int | None
    open_findings: int


class Status(Stamped):
    """State of the service."""

    version: str
    cluster: str
    cluster_id: str | None
    started_at: datetime
    now: datetime
    round: RoundStatus
    storage: StorageStatus
    rules: list[RuleStatus]
    gaps_by_cause: dict[GapCause, int] | None
    broker_logs: list[LogSourceStatus]
    """Configured files, and the sources that submit lines"""
    broker_logs_behind: bool | None
    """More lines waited than the last round could read; null before it"""
    scrapes: list[EndpointStatus]
    """Endpoints of metrics of brokers and clients"""
    restarts: Annotated[dict[str, int], Field(description="Restarts by task")]


class Broker(Model):
    """A registered broker."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class Gap(Model):
    """Something that the last observation did not see, and why."""

    what: str
    why: str
    cause: GapCause
    scope: GapScope
    explanation: str
    """The cause in words, and whether it resolves by itself"""
    makes_unknown: Annotated[str, Field(description="What stays unknown while it lasts")]
    since: datetime | None
    """The first of the consecutive observations that had it"""
    broker_id: int | None
    topic: str | None
    partition: int | None
    group: str | None


class Cluster(Model):
    """A cluster and its counts."""

    name: str
    cluster_id: str | None
    brokers: list[Broker]
    controller: int | None
    topics: int
    partitions: int
    groups: int
    gaps: int


class ClusterPage(Stamped):
    """The watched clusters."""

    items: list[Cluster]
    next: NextCursor


class ClusterDetail(Stamped):
    """A cluster and a page of its gaps."""

    cluster: Cluster
    items: list[Gap]
    next: NextCursor


class Group(Model):
    """A consumer group; its lag is the sum over its commits, in offsets."""

    group: str
    type: GroupType
    state: str | None
    members: int | None
    coordinator: int | None
    commit_count: int
    read_committed_lag: int | None
    """Sum of the known lags; null if none is known"""
    unknown_lags: Annotated[int, Field(description="Commits whose lag is not known")]


class GroupPage(Stamped):
    """Groups by name."""

    items: list[Group]
    next: NextCursor


class Commit(Model):
    """What a group committed for one partition."""

    topic: str
    partition: int
    committed_offset: int
    committed_leader_epoch: int | None
    read_committed_lag: int | None
    read_uncommitted_lag: int | None
    nothing_to_read: bool | None
    read_committed_lag_seconds: TimeLag
    read_committed_lag_at_least_seconds: LowerBound
    read_committed_lag_seconds_absent: WhyNoTimeLag
    read_uncommitted_lag_seconds: TimeLag
    read_uncommitted_lag_at_least_seconds: LowerBound
    read_uncommitted_lag_seconds_absent: WhyNoTimeLag


class GroupDetail(Stamped):
    """A group and a page of its commits."""

    group: Group
    items: list[Commit]
    next: NextCursor


class Partition(Model):
    """A partition as its leader and the controller see it."""

    topic: str
    partition: int
    topic_id: str | None
    leader: int | None
    leader_epoch: int | None
    replicas: list[int] | None
    isr: list[int] | None
    elr: list[int] | None
    last_known_elr: list[int] | None
    min_insync_replicas: int | None
    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int | None
    log_end_offset: int | None
    replica_log_end_offsets: dict[str, int | None] | None
    open_span: int | None
    unreplicated_span: int | None


class PartitionPage(Stamped):
    """Partitions by topic and number."""

    items: list[Partition]
    next: NextCursor


class FindingState(StrEnum):
    """Whether a finding is still open."""

    OPEN = "open"
    ENDED = "ended"


class Finding(Model):
    """A breach that a rule found, with its latest verdict."""

    id: str
    cluster_id: str | None
    rule: str
    summary: str | None
    """The rule's summary; its runbook is in /rules. null: the rule was withdrawn"""
    severity: Severity
    kind: Kind
    labels: dict[str, str]
    verdict: VerdictWord
    reason: str
    evidence: Evidence
    since: datetime
    last_breach_at: datetime
    last_judged_at: datetime
    state: FindingState
    subject_gone: bool
    """An event whose subject, such as a topic, was deleted since: it stays open"""
    ended_at: datetime | None
    end_reason: EndReason | None


class FindingPage(Stamped):
    """Findings, newest first."""

    items: list[Finding]
    next: NextCursor
    storage: PersistenceState
    """not_loaded: findings of an earlier process may be missing"""


class Transition(Model):
    """A change of a finding's verdict; from breach to breach: an event that happened again."""

    at: datetime
    from_verdict: Annotated[VerdictWord | None, Field(description="null: it was not open")]
    to_verdict: Annotated[VerdictWord | None, Field(description="null: it is no longer judged")]
    reason: str
    evidence: Evidence


class FindingDetail(Stamped):
    """A finding and its last transitions, oldest first."""

    finding: Finding
    transitions: list[Transition] | None
    """null while the database cannot be read"""
    error: Annotated[str | None, Field(description="Why there are no transitions")]


class Rule(Model):
    """A rule of the catalogue."""

    id: str
    summary: str
    severity: Severity
    milder: dict[str, Severity]
    """Reasons for which a breach is less bad"""
    kind: Kind
    for_seconds: float
    is_critical: bool
    reasons: list[str]
    why_it_matters: Annotated[str | None, Field(description="Markdown")]
    runbook: Annotated[str | None, Field(description="What to do about a breach, Markdown")]


class RulePage(Model):
    """Rules in the order in which they judge."""

    items: list[Rule]
    next: NextCursor


class FieldProblem(Model):
    """A parameter that cannot be used."""

    field: str
    message: str


class Problem(Model):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldProblem] | None = None
