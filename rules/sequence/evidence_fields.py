"""The evidence of rejected sequences: its names and types; times are texts, in UTC."""

from __future__ import annotations

from typing import TypedDict

_Class = TypedDict("_Class", {"class": str}, total=False)  # a keyword of Python


class FactEvidence(TypedDict):
    """A sentence that speaks for or against a verdict."""

    fact: str


class ChangeEvidence(TypedDict):
    """One change of leader that was not clean."""

    kind: str
    leader_epoch: int
    leader: int | None
    leader_before: int | None
    epoch_end: int | None
    lost_from: int | None
    lost_to: int | None
    seen_at: str


class ClientEvidence(TypedDict):
    """A client whose failed records or retries rose within the time of an episode."""

    client_id: str
    address: str
    topic: str | None  # None: the sum over its topics
    errors: int | None  # at least; None: not reported, or by a rate alone
    errors_since: str | None  # when they rose; None: they did not
    errors_until: str | None
    retries: int | None
    retries_since: str | None
    retries_until: str | None


class ShortEpisode(_Class, total=False):
    """An episode as one of several of its partition."""

    episode: str
    producer_id: int | None
    phase: str
    why: str
    gap: int | None
    rejections: int
    is_new: bool
    transaction: str | None


class SourceError(TypedDict):
    """A source of broker logs that could not be read."""

    source: str
    error: str | None


class SuspicionEvidence(TypedDict):
    """Rejected batches that only a counter shows."""

    suspicion: str
    brokers: list[int]
    address: str
    error: str
    count: int
    since: str
    until: str
    outcome: str
    explanation: str
    needed_evidence: str | None


class SequenceEvidence(_Class, total=False):
    """The evidence of rejections: numbers, log entries and facts; a finding adds what follows them."""

    rejections: int
    distinct_rejections: int
    smallest_gap: int | None
    largest_batch: int | None
    records_per_batch: int
    in_flight_records: int
    arrival: str | None
    unwritten_records: int | None
    leader_epoch_first_seen: int | None
    appended_offset: int | None
    appended_leader_epoch: int | None
    next_offset: int | None
    next_sequence: int | None
    next_producer_epoch: int | None
    state_known: bool | None
    state_producer_epoch: int | None
    state_last_sequence: int | None
    leader_changes: list[ChangeEvidence]
    transactional: bool | None
    transactional_id: str | None
    transaction: str | None
    transaction_shown_by: str | None
    transaction_unknown_reason: str | None
    transaction_epoch: int | None
    transaction_start_offset: int | None
    transaction_marker_offset: int | None
    transaction_timeout_ms: int | None
    evidence_for: list[FactEvidence]
    evidence_against: list[FactEvidence]
    record_errors: list[ClientEvidence]
    record_error_clients: int
    client_metrics: str
    client_metrics_until: str | None
    topic_id: str | None
    episode: str
    phase: str
    why: str
    explanation: str
    needed_evidence: str | None
    check: str
    producer_id: int | None
    producer_epoch: int | None
    offset: int | None
    incoming_sequence: int
    current_sequence: int | None
    gap: int | None
    lost_from: int | None
    lost_to: int | None
    lost_offsets: int | None
    at_most_records: int | None
    first_seen: str
    last_seen: str
    episodes: list[ShortEpisode]
    episode_count: int
    source_errors: list[SourceError]
    unreported_episodes: int
    without_partition: list[ShortEpisode]
    without_partition_count: int
    suspicions: list[SuspicionEvidence]
