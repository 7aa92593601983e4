"""Fencing episodes of transactional ids, each fact declared once for the API and the command line."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rules.facts.fencing import (
    FencingClass,
    FencingEpisode,
    FencingReason,
    RejectionSource,
)
from rules.facts.transaction_log import Cut
from rules.fencing.evidence import evidence_of
from service.views.model import FindingState, Model, Timestamp


class FencingTakeover(Model):
    """A transactional id that was initialised again: older epochs are fenced from then on."""

    producer_epoch: Annotated[int, Field(description="That was given")]
    at: Annotated[Timestamp, Field(description="By the coordinator's clock")]
    cut_transaction: bool | None
    """Whether it aborted an open transaction; null: that, or its owner did just before"""
    client: str | None
    """Client id, host and port; null: the request log is not read"""


class FencedRequest(Model):
    """Requests that were rejected as of an older epoch: they wrote nothing."""

    request: Annotated[str, Field(description="Kafka's name of the API")]
    error: str
    source: RejectionSource
    count: Annotated[int, Field(description="At least so many")]
    producer_epoch: int | None
    last_at: Timestamp
    client: str | None


class FencingCut(Model):
    """A transaction that was aborted by somebody other than its producer."""

    cut: Annotated[Cut, Field(description="By whom")]
    producer_id: int | None
    producer_epoch: int | None
    started_at: Annotated[Timestamp | None, Field(validation_alias="started_us")]
    aborted_at: Annotated[Timestamp, Field(validation_alias="ended_us")]
    timeout_ms: int | None


class Fencing(Model):
    """All that is known of one transactional id whose producers were fenced."""

    id: str
    transactional_id: str | None
    """null: a producer id of which none is known, or what brokers only counted"""
    producer_id: int | None
    class_: Annotated[FencingClass, Field(alias="class")]
    """Who fenced the producer"""
    reason: Annotated[FencingReason, Field(description="What decides the class")]
    explanation: Annotated[str, Field(description="The class in a sentence")]
    first_seen: Annotated[Timestamp, Field(description="By the clock of Tidemark")]
    last_seen: Timestamp
    state: FindingState
    """ended: nothing was seen of it for an hour"""
    ended_at: Timestamp | None
    newest_epoch: int | None
    newer_instance: str | None
    """The client that was initialised last, where the request log names it"""
    older_instance: str | None
    cut_transactions: Annotated[
        int | None, Field(description="At least; null: nothing shows who aborted")
    ]
    cuts: Annotated[list[FencingCut], Field(description="The last 8")]
    takeover_count: int
    takeovers: Annotated[list[FencingTakeover], Field(description="The last 16")]
    rejected_requests: int
    rejected: Annotated[list[FencedRequest], Field(description="The last 16 kinds")]
    read_committed: str | None
    """What a read_committed reader sees, if a transaction was aborted"""
    not_lost: str
    advice: Annotated[str, Field(description="What to do")]
    needed_evidence: str | None
    """Evidence that would settle it; null: it is settled"""


def fencing_of(episode: FencingEpisode) -> Fencing:
    """Return an episode of a round."""
    evidence = evidence_of(episode)
    return Fencing.of(
        episode,
        **{"class": episode.verdict.class_},
        reason=episode.verdict.reason,
        explanation=evidence["explanation"],
        first_seen=episode.first_seen_us,
        last_seen=episode.last_seen_us,
        state=FindingState.OPEN if episode.ended_us is None else FindingState.ENDED,
        ended_at=episode.ended_us,
        newest_epoch=evidence.get("newest_epoch"),
        newer_instance=evidence.get("newer_instance"),
        older_instance=evidence.get("older_instance"),
        cut_transactions=evidence.get("cut_transactions"),
        cuts=[FencingCut.of(cut) for cut in episode.cuts],
        takeovers=[FencingTakeover.model_validate(row) for row in evidence.get("takeovers", [])],
        rejected_requests=episode.rejections,
        rejected=[FencedRequest.model_validate(row) for row in evidence.get("rejected", [])],
        read_committed=evidence.get("read_committed"),
        not_lost=evidence["not_lost"],
        advice=evidence["advice"],
        needed_evidence=evidence.get("needed_evidence"),
    )
