"""Sequence events, each fact declared once for the API and the command line."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AliasPath, Field

from rules.facts.broker_log import SequenceForm
from rules.facts.episode_transactions import TransactionOutcome
from rules.facts.episodes import ChangeKind, Episode
from rules.facts.sequence_verdicts import Arrival, Phase, SequenceClass, SequenceReason
from rules.sequence.arrivals import arrival_evidence
from rules.sequence.explained import explain_episode
from rules.sequence.transaction_outcome import outcome_of
from rules.sequence.transaction_words import show_command
from service.views.model import Evidence, FindingState, Model, Timestamp


def _of_verdict(name: str, description: str | None = None) -> Any:
    return Field(validation_alias=AliasPath("verdict", name), description=description)


class ExplainedRejections(Model):
    """The verdict on rejections of one producer on one partition, explained."""

    producer_id: Annotated[int | None, Field(description="null: the line does not contain it")]
    producer_epoch: int | None
    topic: Annotated[str | None, Field(description="null: the line does not contain it")]
    partition: int | None
    offset: int | None
    """The one that the rejected batch would have got"""
    incoming_sequence: Annotated[int, Field(description="The first one of the rejected batch")]
    current_sequence: int | None
    """The last one that the broker had; -1: none of this epoch"""
    gap: int | None
    """Records that are missing before it; null: it is no new batch"""
    class_: Annotated[SequenceClass, Field(alias="class")]
    """What became of the missing records"""
    phase: Annotated[Phase, Field(description="confirmed: there is a proof")]
    reason: SequenceReason
    evidence: Evidence
    lost_from: Annotated[int | None, _of_verdict("lost_from")]
    """Offsets that are gone for certain: from here"""
    lost_to: Annotated[int | None, _of_verdict("lost_to", "Exclusive")]
    lost_offsets: Annotated[int | None, _of_verdict("lost_offsets")]
    at_most_records: Annotated[int | None, _of_verdict("at_most_records")]
    """Of this producer, if it is a loss: its gap"""
    rejections: Annotated[int, Field(description="How often batches of it were rejected")]
    transactional: bool | None
    """Whether the producer is transactional; null: nothing says so"""
    transactional_id: str | None
    transaction: TransactionOutcome | None
    """What became of the rejected batch's transaction; null: the producer is not known to have any"""
    explanation: Annotated[str, Field(description="The verdict in a sentence")]
    needed_evidence: str | None
    """Evidence that would settle it; null: it is settled"""
    check: Annotated[str, Field(description="What to do")]


class SequenceEvent(ExplainedRejections):
    """Rejections of one producer on one partition; numbers are of the rejection that decides."""

    id: str
    topic_id: str | None
    leader_epoch: Annotated[int | None, Field(description="Of the partition, when first seen")]
    brokers: list[int]
    """Brokers that rejected batches, as far as the lines name them"""
    first_seen: Annotated[Timestamp, Field(description="By the clock of Tidemark")]
    last_seen: Timestamp
    state: FindingState
    """ended: nothing more is rejected, and nothing more can be found out"""
    ended_at: Timestamp | None
    is_investigating: bool
    """The next rounds search for more: the verdict may change"""
    next_command: str | None


class RejectedBatch(Model):
    """One distinct rejection; its times are by the clock of the broker that wrote it."""

    form: SequenceForm
    incoming_sequence: int
    current_sequence: int | None
    producer_epoch: int | None
    current_epoch: int | None
    offset: int | None
    broker: Annotated[int | None, Field(validation_alias="broker_id")]
    source: Annotated[str, Field(description="Where the line was read")]
    rejections: Annotated[int, Field(validation_alias="count")]
    first_at: Annotated[Timestamp | None, Field(validation_alias="first_us")]
    last_at: Annotated[Timestamp | None, Field(validation_alias="last_us")]
    proof: SequenceReason | None
    """Why nothing acknowledged is missing before it"""


class LeaderChange(Model):
    """A change of leader that was not clean, or not seen to be."""

    kind: ChangeKind
    leader_epoch: Annotated[int, Field(description="The new one")]
    leader: int | None
    leader_before: int | None
    epoch_end: int | None
    """Where the older epoch ended in the new leader's log"""
    lost_from: int | None
    lost_to: Annotated[int | None, Field(description="Exclusive")]
    seen_at: Annotated[Timestamp, Field(validation_alias="seen_us")]


def sequence_event(episode: Episode) -> SequenceEvent:
    """Return an episode of a round; its times are those of the rounds that read its lines."""
    brokers = {rejection.broker_id for rejection in episode.rejections}
    return SequenceEvent.of(
        explain_episode(episode),
        id=episode.id,
        topic_id=episode.topic_id,
        leader_epoch=episode.leader_epoch,
        brokers=sorted(broker for broker in brokers if broker is not None),
        first_seen=episode.first_seen_us,
        last_seen=episode.last_seen_us,
        state=FindingState.OPEN if episode.ended_us is None else FindingState.ENDED,
        ended_at=episode.ended_us,
        is_investigating=not episode.is_reported or arrival_evidence(episode) is Arrival.AWAITED,
        next_command=_next_command(episode),
    )


def _next_command(episode: Episode) -> str | None:
    """Return the command to run next for an episode; None: none is needed."""
    if episode.name is None:
        return None
    if episode.verdict.class_ is not SequenceClass.LOSS:
        return show_transaction(episode)
    if episode.verdict.is_confirmed:
        return f"tidemark loss show {episode.name}"
    return f"tidemark loss ls --topic {episode.name.topic} --state all"


def show_transaction(episode: Episode) -> str | None:
    """Return the command that shows a transaction which failed, or whose end is not known."""
    name, outcome = episode.transaction.transactional_id, outcome_of(episode)
    if name is None or outcome in (None, TransactionOutcome.COMMITTED):
        return None
    return show_command(name)
