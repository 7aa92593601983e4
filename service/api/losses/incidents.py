"""Findings of lost records by incident, one line per partition: pure.

A row view is made only of what is shown: a broker that led ten thousand partitions leaves as many
findings three times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rules.catalogue import committed_records_lost
from rules.loss.summary import LossFact, Outcome, by_partition, summary_of
from rules.verdict import SEVERITIES, Severity
from service.api.core.models import Finding, FindingState
from service.api.losses.models import AlsoFound, LossIncident, PartitionLoss
from service.api.losses.views import loss_of

MOST_PARTITIONS: Final = 1000  # of an incident
RESTORED: Final = str(committed_records_lost.Why.RESTORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding of lost records, and how its row view is made."""

    fact: LossFact
    last_breach_at: datetime
    view: Callable[[], Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The findings of one incident, by partition, the worst first."""

    incident_id: str
    lines: Sequence[Sequence[Found]]

    @property
    def outcome(self) -> Outcome:
        """Return the worst that became of a partition."""
        return self.lines[0][0].fact.outcome

    @property
    def since(self) -> datetime:
        """Return when the first of it was found."""
        return min(found.fact.since for line in self.lines for found in line)


def incidents_of(found: Iterable[Found]) -> list[Incident]:
    """Return findings by incident, in no order."""
    together: dict[str, list[Found]] = {}
    for one in found:
        together.setdefault(one.fact.incident, []).append(one)
    return [Incident(incident_id=name, lines=_lines(members)) for name, members in together.items()]


def incident_view(incident: Incident) -> LossIncident:
    """Return an incident as the API shows it."""
    summary = summary_of([[one.fact for one in line] for line in incident.lines])
    lines = [_partition_view(line) for line in incident.lines[:MOST_PARTITIONS]]
    everything = [one for line in incident.lines for one in line]
    states = {one.state for one in lines} | {other.state for one in lines for other in one.also}
    observations = [one.last_observation for one in lines if one.last_observation is not None]
    return LossIncident(
        id=incident.incident_id,
        summary=summary.sentence,
        severity=min(_severities(lines), key=SEVERITIES.index),
        broker=summary.broker,
        since=summary.began,
        last_happened_at=max(one.last_breach_at for one in everything),
        last_observation=min(observations, default=None),
        state=FindingState.OPEN if FindingState.OPEN in states else FindingState.ENDED,
        partition_count=len(incident.lines),
        lost_partitions=summary.partitions.get(Outcome.LOST, 0),
        certain_offsets=summary.certain_offsets,
        possibly_lost_partitions=summary.possibly_lost,
        partitions=lines,
    )


def _lines(members: Sequence[Found]) -> list[list[Found]]:
    of_fact: Mapping[int, Found] = {id(member.fact): member for member in members}
    lines = by_partition([member.fact for member in members])
    return [[of_fact[id(fact)] for fact in line] for line in lines]


def _partition_view(line: Sequence[Found]) -> PartitionLoss:
    first, *others = (loss_of(one.view()) for one in line)
    also = [
        AlsoFound(
            **{"class": other.class_},
            id=other.id,
            reason=other.reason,
            severity=other.severity,
            state=other.state,
            group=other.group,
        )
        for other in others
    ]
    return PartitionLoss(**first.model_dump(by_alias=True), also=also)


def _severities(lines: Iterable[PartitionLoss]) -> Iterator[Severity]:
    """Give how bad each line is; what other rules said of records that are back counts no more."""
    for line in lines:
        yield line.severity
        if line.reason != RESTORED:
            yield from (one.severity for one in line.also)
