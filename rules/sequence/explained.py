"""One event as people and programs are told it: the numbers, the verdict, and what follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rules.evidence import Evidence, EvidenceValue
from rules.facts.broker_log import SequenceRejected
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
from rules.sequence.fact_evidence import for_and_against, resolution_evidence
from rules.sequence.log_entries import producer_epoch_of
from rules.sequence.numbers import (
    BEFORE_IN_FLIGHT,
    gap_of,
    records_per_batch,
    suspicion_of,
    unresolved_with,
)
from rules.sequence.words import ARRIVALS, WORDS, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Everything that is told of the rejections of one producer on one partition."""

    producer_id: int | None
    producer_epoch: int | None  # None: the line does not tell it, and nobody was asked
    topic: str | None
    partition: int | None
    offset: int | None  # that the rejected batch would have got
    incoming_sequence: int
    current_sequence: int | None
    gap: int | None  # records that are missing before it; None: none, it is behind
    rejections: int  # how often it was rejected
    verdict: SequenceVerdict
    evidence: Evidence
    # Whether the rejected batch came, where nothing acknowledged is missing, and how many records at
    # least were not written if it did not.
    arrival: Arrival | None = None
    unwritten: int | None = None

    @property
    def class_(self) -> SequenceClass:
        """Return what became of the missing records."""
        return self.verdict.class_

    @property
    def phase(self) -> Phase:
        """Return how sure that is."""
        return self.verdict.phase

    @property
    def reason(self) -> SequenceReason:
        """Return why it is said."""
        return self.verdict.reason

    @property
    def explanation(self) -> str:
        """Return the verdict in a sentence, and whether the rejected batch came."""
        said = WORDS[self.reason].explanation
        came = None if self.arrival is None else ARRIVALS.get(self.arrival)
        if came is None:
            return said
        return f"{said} {came.explanation.format(records=counted(self.unwritten or 0, 'record'))}"

    @property
    def needed_evidence(self) -> str | None:
        """Return what would settle it; None where it is settled."""
        came = None if self.arrival is None else ARRIVALS.get(self.arrival)
        return WORDS[self.reason].needed_evidence if came is None else came.needed_evidence

    @property
    def check(self) -> str:
        """Return what to do."""
        came = None if self.arrival is None else ARRIVALS.get(self.arrival)
        return WORDS[self.reason].check if came is None else came.check


def explain(rejections: Sequence[SequenceRejected], largest_batch: int | None = None) -> Explained:
    """Explain rejections of one producer on one partition by their numbers alone.

    There has to be one. `largest_batch` is how many records the partition's batches have at most,
    as far as that is known.
    """
    known = distinct(rejection_of(event) for event in rejections)
    said = suspicion_of(known, largest_batch)
    shown = said.rejection
    named = next((event for event in rejections if event.topic is not None), rejections[0])
    is_loss = said.class_ is SequenceClass.LOSS
    verdict = SequenceVerdict(
        class_=said.class_,
        phase=said.phase,
        reason=said.reason,
        at_most_records=said.gap if is_loss else None,
    )
    return Explained(
        producer_id=named.producer_id,
        producer_epoch=shown.producer_epoch,
        topic=named.topic,
        partition=named.partition,
        offset=shown.offset,
        incoming_sequence=shown.incoming_sequence,
        current_sequence=shown.current_sequence,
        gap=said.gap,
        rejections=sum(one.count for one in known),
        verdict=verdict,
        evidence=numbers_told(shown, known, largest_batch),
    )


def explain_episode(episode: Episode) -> Explained:
    """Explain an episode by all that was found out of it."""
    shown, arrival = episode.shown, arrival_evidence(episode)
    is_missing = arrival in (Arrival.NOT_ARRIVED, Arrival.NEWER_EPOCH)
    unwritten = unwritten_records(shown, episode) if is_missing else None
    return Explained(
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
        evidence={
            **numbers_told(shown, episode.rejections, episode.largest_batch),
            "rejections": episode.rejection_count,
            "arrival": None if arrival is None else str(arrival),
            "unwritten_records": unwritten,
            **resolution_evidence(episode, shown),
            **for_and_against(episode, shown),
        },
    )


def numbers_told(
    shown: Rejection, rejections: Sequence[Rejection], largest_batch: int | None
) -> dict[str, EvidenceValue]:
    """Return the stats by which the numbers of one rejection among others were judged."""
    beside = unresolved_with(shown, rejections)
    gaps = [gap for one in beside if (gap := gap_of(one)) is not None]
    per_batch = records_per_batch(beside, largest_batch)
    return {
        "rejections": sum(rejection.count for rejection in rejections),
        "distinct_rejections": len(rejections),
        "smallest_gap": min(gaps, default=None),
        "largest_batch": largest_batch,
        "records_per_batch": per_batch,
        "in_flight_records": BEFORE_IN_FLIGHT * per_batch,
    }
