"""Explains rejections to people and programs: the numbers, the verdict, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rules.facts.broker_log import SequenceRejected
from rules.facts.episode_transactions import ABORTED, TransactionOutcome, UnknownOutcome
from rules.facts.episodes import Episode
from rules.facts.rejections import Rejection, distinct, rejection_of
from rules.facts.sequence_verdicts import (
    Arrival,
    Phase,
    SequenceClass,
    SequenceReason,
    SequenceVerdict,
)
from rules.sequence.arrivals import arrival_evidence, unwritten_records
from rules.sequence.evidence_fields import SequenceEvidence
from rules.sequence.fact_evidence import for_and_against, resolution_evidence
from rules.sequence.log_entries import producer_epoch_of
from rules.sequence.numbers import (
    BEFORE_IN_FLIGHT,
    gap_of,
    records_per_batch,
    suspicion_of,
    unresolved_with,
)
from rules.sequence.producer_transactions import IN_TRANSACTIONS
from rules.sequence.record_errors import record_error_evidence
from rules.sequence.transaction_outcome import outcome_of, transaction_evidence
from rules.sequence.transaction_words import Advice, advise
from rules.sequence.words import ARRIVALS, WORDS, Words, format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that is reported of the rejections of one producer on one partition."""

    producer_id: int | None
    producer_epoch: int | None  # None: not in the line, and not found otherwise
    topic: str | None
    partition: int | None
    offset: int | None  # that the rejected batch would have got
    incoming_sequence: int
    current_sequence: int | None
    # Records that are missing before it; None: the batch is behind the last sequence.
    gap: int | None
    rejections: int  # how often it was rejected
    verdict: SequenceVerdict
    evidence: SequenceEvidence
    # Whether the rejected batch arrived, where nothing acknowledged is missing, and how many records
    # at least were not written if it did not.
    arrival: Arrival | None = None
    unwritten: int | None = None
    # Whether the producer is transactional (None: not known), and what became of the transaction.
    transactional: bool | None = None
    transactional_id: str | None = None
    transaction: TransactionOutcome | None = None  # None: it is not known to have any
    transaction_unknown: UnknownOutcome | None = None

    @property
    def class_(self) -> SequenceClass:
        """Return what became of the missing records."""
        return self.verdict.class_

    @property
    def phase(self) -> Phase:
        """Return whether that is suspected or confirmed."""
        return self.verdict.phase

    @property
    def reason(self) -> SequenceReason:
        """Return the reason for the verdict."""
        return self.verdict.reason

    @property
    def explanation(self) -> str:
        """Return the verdict in a sentence, whether the rejected batch arrived, and its transaction."""
        sentence = WORDS[self.reason].explanation
        came = self._advice.arrival
        records = format_count(self.unwritten or 0, "record")
        arrived = "" if came is None else came.format(records=records)
        return " ".join(filter(None, (sentence, arrived, self._advice.explanation)))

    @property
    def needed_evidence(self) -> str | None:
        """Return the evidence that would settle it; None where it is settled."""
        return self._words.needed_evidence or self._advice.needed_evidence

    @property
    def check(self) -> str:
        """Return what to do."""
        return self._advice.check

    @property
    def _open_arrival(self) -> Arrival | None:
        """Return whether the rejected batch arrived; None where its transaction was aborted meanwhile."""
        is_open = self.arrival in (Arrival.AWAITED, Arrival.NOT_KNOWN)
        return None if is_open and self.transaction in ABORTED else self.arrival

    @property
    def _words(self) -> Words:
        """Return the words about the arrival, where there are some, else those of the reason."""
        came = None if self._open_arrival is None else ARRIVALS.get(self._open_arrival)
        return WORDS[self.reason] if came is None else came

    @property
    def _advice(self) -> Advice:
        """Return what the producer's transaction adds."""
        return advise(
            self._words.check,
            loss=self.phase if self.class_ is SequenceClass.LOSS else None,
            arrival=self._open_arrival,
            transactional=self.transactional,
            transactional_id=self.transactional_id,
            outcome=self.transaction,
            unknown_reason=self.transaction_unknown,
        )


def explain(
    rejections: Sequence[SequenceRejected], largest_batch: int | None = None
) -> Explanation:
    """Explain rejections of one producer on one partition by their numbers alone.

    `rejections` has at least one. `largest_batch` is the known maximum of records per batch of the
    partition.
    """
    distinct_rejections = distinct(rejection_of(event) for event in rejections)
    suspicion = suspicion_of(distinct_rejections, largest_batch)
    shown = suspicion.rejection
    named = next((event for event in rejections if event.topic is not None), rejections[0])
    is_loss = suspicion.class_ is SequenceClass.LOSS
    is_in_transaction = any(event.form in IN_TRANSACTIONS for event in rejections)
    verdict = SequenceVerdict(
        class_=suspicion.class_,
        phase=suspicion.phase,
        reason=suspicion.reason,
        at_most_records=suspicion.gap if is_loss else None,
    )
    return Explanation(
        producer_id=named.producer_id,
        producer_epoch=shown.producer_epoch,
        topic=named.topic,
        partition=named.partition,
        offset=shown.offset,
        incoming_sequence=shown.incoming_sequence,
        current_sequence=shown.current_sequence,
        gap=suspicion.gap,
        rejections=sum(rejection.count for rejection in distinct_rejections),
        verdict=verdict,
        transactional=is_in_transaction or None,
        transaction=TransactionOutcome.UNKNOWN if is_in_transaction else None,
        evidence=number_evidence(shown, distinct_rejections, largest_batch),
    )


def explain_episode(episode: Episode) -> Explanation:
    """Explain an episode by all evidence that was gathered for it."""
    shown, arrival = episode.shown, arrival_evidence(episode)
    is_missing = arrival in (Arrival.NOT_ARRIVED, Arrival.NEWER_EPOCH)
    unwritten = unwritten_records(shown, episode) if is_missing else None
    return Explanation(
        producer_id=episode.producer_id,
        producer_epoch=producer_epoch_of(shown),
        topic=None if episode.name is None else episode.name.topic,
        partition=None if episode.name is None else episode.name.partition,
        offset=shown.offset,
        incoming_sequence=shown.incoming_sequence,
        current_sequence=shown.current_sequence,
        gap=gap_of(shown),
        rejections=episode.rejection_count,
        verdict=episode.verdict,
        arrival=arrival,
        unwritten=unwritten,
        transactional=episode.transaction.is_transactional,
        transactional_id=episode.transaction.transactional_id,
        transaction=outcome_of(episode),
        transaction_unknown=episode.transaction.unknown_reason,
        evidence={
            **number_evidence(shown, episode.rejections, episode.largest_batch),
            "rejections": episode.rejection_count,
            "arrival": None if arrival is None else str(arrival),
            "unwritten_records": unwritten,
            **resolution_evidence(episode, shown),
            **transaction_evidence(episode),
            **for_and_against(episode, shown),
            **record_error_evidence(episode),
        },
    )


def number_evidence(
    shown: Rejection, rejections: Sequence[Rejection], largest_batch: int | None
) -> SequenceEvidence:
    """Return the statistics by which one rejection, among others, was judged."""
    beside = unresolved_with(shown, rejections)
    gaps = [gap for other in beside if (gap := gap_of(other)) is not None]
    per_batch = records_per_batch(beside, largest_batch)
    return {
        "rejections": sum(rejection.count for rejection in rejections),
        "distinct_rejections": len(rejections),
        "smallest_gap": min(gaps, default=None),
        "largest_batch": largest_batch,
        "records_per_batch": per_batch,
        "in_flight_records": BEFORE_IN_FLIGHT * per_batch,
    }
