"""The evidence of a fencing episode, as findings, the API and the command line show it."""

from __future__ import annotations

from typing import TypedDict

from rules.facts.broker_log import ClientInstance
from rules.facts.fencing import (
    CutTransaction,
    FencedRequests,
    FencingClass,
    FencingEpisode,
    RejectionSource,
    Takeover,
)
from rules.facts.times import iso_time
from rules.fencing.classify import count_cuts, cut_of
from rules.fencing.words import (
    ADVICE,
    DISCARDED,
    EXPLANATIONS,
    NEEDED_EVIDENCE,
    PROTECTED,
    RESTART_OR_OWN_EPOCH,
    instance_text,
)


class RejectedRow(TypedDict):
    """Requests that were rejected as of an older epoch."""

    request: str
    error: str
    source: str
    count: int
    producer_epoch: int | None
    last_at: str
    client: str | None


class TakeoverRow(TypedDict):
    """A transactional id that was initialised again."""

    producer_epoch: int
    at: str
    cut_transaction: bool | None
    client: str | None


class FencingEvidence(TypedDict, total=False):
    """What is known of an episode."""

    episode: str
    transactional_id: str | None
    producer_id: int | None
    because: str
    explanation: str
    # Of the last transaction that was aborted by somebody other than its producer.
    producer_epoch: int | None
    started_at: str | None
    aborted_at: str | None
    was_open_ms: int | None
    timeout_ms: int | None
    cut_transactions: int
    newest_epoch: int | None
    newer_instance: str | None
    older_instance: str | None
    takeover_count: int
    takeovers: list[TakeoverRow]
    rejected_requests: int
    rejected: list[RejectedRow]
    read_committed: str
    not_lost: str
    advice: str
    needed_evidence: str


def evidence_of(episode: FencingEpisode) -> FencingEvidence:
    """Return all that is known of an episode; what is not known is left out."""
    evidence = FencingEvidence(
        episode=episode.id,
        producer_id=episode.producer_id,
        because=str(episode.verdict.reason),
        explanation=_explanation(episode),
        not_lost=PROTECTED,
        advice=ADVICE[episode.verdict.class_],
    )
    cuts = count_cuts(episode)
    if cuts is not None:
        evidence["cut_transactions"] = cuts
    if episode.cuts:
        evidence.update(_of_cut(episode.cuts[-1]))
    if episode.takeovers:
        evidence.update(_of_takeovers(episode))
    if episode.requests:
        evidence["rejected_requests"] = episode.rejections
        evidence["rejected"] = [_rejected(each) for each in episode.requests]
    older = _older_instance(episode)
    if older is not None:
        evidence["older_instance"] = instance_text(older)
    if episode.cuts or any(cut_of(episode, each) for each in episode.takeovers):
        evidence["read_committed"] = DISCARDED
    needed = NEEDED_EVIDENCE.get(episode.verdict.reason)
    if needed is not None:
        evidence["needed_evidence"] = needed
    return evidence


def _explanation(episode: FencingEpisode) -> str:
    is_restart = episode.verdict.class_ is FencingClass.HANDOVER and not count_cuts(episode)
    return RESTART_OR_OWN_EPOCH if is_restart else EXPLANATIONS[episode.verdict.class_]


def _of_cut(cut: CutTransaction) -> FencingEvidence:
    started = cut.started_us
    return FencingEvidence(
        producer_epoch=cut.producer_epoch,
        started_at=None if started is None else iso_time(started),
        aborted_at=iso_time(cut.ended_us),
        was_open_ms=None if started is None else (cut.ended_us - started) // 1000,
        timeout_ms=cut.timeout_ms,
    )


def _of_takeovers(episode: FencingEpisode) -> FencingEvidence:
    newest = episode.takeovers[-1]
    evidence = FencingEvidence(
        newest_epoch=newest.producer_epoch,
        takeover_count=episode.takeover_count,
        takeovers=[_takeover(episode, each) for each in episode.takeovers],
    )
    if newest.instance is not None:
        evidence["newer_instance"] = instance_text(newest.instance)
    return evidence


def _takeover(episode: FencingEpisode, takeover: Takeover) -> TakeoverRow:
    return TakeoverRow(
        producer_epoch=takeover.producer_epoch,
        at=iso_time(takeover.at_us),
        cut_transaction=cut_of(episode, takeover),
        client=instance_text(takeover.instance),
    )


def _rejected(requests: FencedRequests) -> RejectedRow:
    return RejectedRow(
        request=requests.request,
        error=requests.error,
        source=str(requests.source),
        count=requests.count,
        producer_epoch=requests.producer_epoch,
        last_at=iso_time(requests.last_us),
        client=instance_text(requests.instance),
    )


def _older_instance(episode: FencingEpisode) -> ClientInstance | None:
    """Return the instance that was rejected, else the one that was initialised before the newest."""
    rejected = [
        each.instance
        for each in episode.requests
        if each.source is RejectionSource.REQUEST_LOG and each.instance is not None
    ]
    before = [each.instance for each in episode.takeovers[:-1] if each.instance is not None]
    return next(iter((*reversed(rejected), *reversed(before))), None)
