"""What Tidemark knows of the producer, the group and the topics of an error that an application logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import Field

from rules.exceptions.known_producers import producer_of_episode, producer_of_transaction
from rules.exceptions.problems import Problem
from rules.exceptions.relating import Match, ProblemNames, match
from rules.facts.episodes import Episode
from rules.facts.sequence_verdicts import Phase, SequenceClass
from rules.transactions.classes import TransactionClass
from rules.transactions.listing import Listing
from rules.verdict import Severity
from service.api.core.models import VerdictWord
from service.api.findings.views import finding_id
from service.rounds.latest import ServiceState
from service.views.model import Model

MOST_SHOWN: Final = 50  # of each kind


class RelatedSequence(Model):
    """An event of sequences of its producer, or of its partition at that time."""

    id: str
    match: Annotated[Match, Field(description="may_be_of_it: partition and time alone")]
    topic: str | None
    partition: int | None
    producer_id: int | None
    class_: Annotated[SequenceClass, Field(alias="class")]
    phase: Phase


class RelatedTransaction(Model):
    """An open transaction of its producer, or of its topic."""

    transactional_id: str | None
    producer_id: int | None
    match: Annotated[Match, Field(description="may_be_of_it: topic and time alone")]
    class_: Annotated[TransactionClass, Field(alias="class")]


class RelatedFinding(Model):
    """An open finding about its transactional id, its group or its topic."""

    id: str
    match: Annotated[Match, Field(description="may_be_of_it: the topic alone")]
    rule: str
    severity: Severity
    verdict: VerdictWord
    reason: str


def related_sequences(problem: Problem, state: ServiceState) -> list[RelatedSequence]:
    """Return the events of sequences that a problem is of, or may be of, the surest first."""
    if state.view is None:
        return []
    transactions = state.view.snapshot.transactions.by_producer()
    names, related = ProblemNames.of(problem), []
    for episode in state.view.memory.sequences.episodes:
        by = match(names, producer_of_episode(episode, transactions))
        if by is not None:
            related.append(_sequence(episode, by))
    return sorted(related, key=_order)[:MOST_SHOWN]


def related_transactions(problem: Problem, listing: Listing) -> list[RelatedTransaction]:
    """Return the open transactions that a problem is of, or may be of, the surest first."""
    names, related = ProblemNames.of(problem), []
    for entry in listing.transactions:
        by = match(names, producer_of_transaction(entry))
        if by is not None:
            related.append(RelatedTransaction.of(entry, match=by))
    return sorted(related, key=_order)[:MOST_SHOWN]


def related_findings(problem: Problem, state: ServiceState) -> list[RelatedFinding]:
    """Return the open findings about the names of a problem, the surest first."""
    return sorted(_findings(problem, state), key=_order)[:MOST_SHOWN]


def _findings(problem: Problem, state: ServiceState) -> Iterator[RelatedFinding]:
    for finding in state.open_findings.values():
        rule_id, pairs = finding.identity
        labels = dict(pairs)
        by = _by_labels(problem, labels)
        if by is not None:
            yield RelatedFinding(
                id=finding_id(rule_id, labels),
                match=by,
                rule=rule_id,
                severity=finding.severity,
                verdict=VerdictWord[finding.verdict.name],
                reason=finding.reason,
            )


def _by_labels(problem: Problem, labels: Mapping[str, str]) -> Match | None:
    names = problem.names
    for by in (Match.TRANSACTIONAL_ID, Match.GROUP):
        own, label = getattr(names, by), labels.get(by)
        if own is not None and label is not None:
            return by if own == label else None
    topic, partition = labels.get("topic"), labels.get("partition")
    if names.topic is None or topic != names.topic:
        return None
    places = {str(place.partition) for place in problem.places if place.topic == topic}
    is_there = partition is None or not places or partition in places
    return Match.MAY_BE if is_there else None


def _sequence(episode: Episode, by: Match) -> RelatedSequence:
    name, verdict = episode.name, episode.verdict
    return RelatedSequence.of(
        episode,
        match=by,
        topic=None if name is None else name.topic,
        partition=None if name is None else name.partition,
        class_=verdict.class_,
        phase=verdict.phase,
    )


def _order(row: RelatedSequence | RelatedTransaction | RelatedFinding) -> int:
    return tuple(Match).index(row.match)
