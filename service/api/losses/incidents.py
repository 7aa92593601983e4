"""Findings of lost records by incident, one line per partition; pure.

Views are built only for what is shown: the failure of a broker that led ten thousand partitions opens up to
three times as many findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from rules.catalogue import committed_records_lost
from rules.loss.summary import LossFact, Outcome, by_partition, summary_of
from rules.verdict import SEVERITIES, Severity
from service.api.core.models import FindingState
from service.api.findings.views import Finding
from service.api.losses.models import AlsoFound, LossIncident, PartitionLoss
from service.api.losses.views import loss_of

MOST_PARTITIONS: Final = 1000  # of an incident
RESTORED: Final = str(committed_records_lost.Why.RESTORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFinding:
    """A finding of lost records, and a function that builds its view."""

    fact: LossFact
    last_breach_at: datetime
    view: Callable[[], Finding]


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """The findings of one incident, by partition, the worst first."""

    incident_id: str
    lines: Sequence[Sequence[LossFinding]]

    @property
    def outcome(self) -> Outcome:
        """Return the worst outcome of its partitions."""
        return self.lines[0][0].fact.outcome

    @property
    def since(self) -> datetime:
        """Return when its first finding opened."""
        return min(finding.fact.since for line in self.lines for finding in line)


def incidents_of(findings: Iterable[LossFinding]) -> list[Incident]:
    """Group findings by incident, unordered."""
    together: dict[str, list[LossFinding]] = {}
    for finding in findings:
        together.setdefault(finding.fact.incident, []).append(finding)
    return [Incident(incident_id=name, lines=_lines(members)) for name, members in together.items()]


def incident_view(incident: Incident) -> LossIncident:
    """Return an incident as the API shows it."""
    summary = summary_of([[finding.fact for finding in line] for line in incident.lines])
    lines = [_partition_view(line) for line in incident.lines[:MOST_PARTITIONS]]
    everything = [finding for line in incident.lines for finding in line]
    states = {partition.state for partition in lines} | {
        other.state for partition in lines for other in partition.also
    }
    observations = [
        partition.last_observation for partition in lines if partition.last_observation is not None
    ]
    return LossIncident(
        id=incident.incident_id,
        summary=summary.sentence,
        severity=min(_severities(lines), key=SEVERITIES.index),
        broker=summary.broker,
        since=summary.began,
        last_happened_at=max(finding.last_breach_at for finding in everything),
        last_observation=min(observations, default=None),
        state=FindingState.OPEN if FindingState.OPEN in states else FindingState.ENDED,
        partition_count=len(incident.lines),
        lost_partitions=summary.partitions.get(Outcome.LOST, 0),
        certain_offsets=summary.certain_offsets,
        possibly_lost_partitions=summary.possibly_lost,
        partitions=lines,
    )


def _lines(members: Sequence[LossFinding]) -> list[list[LossFinding]]:
    of_fact: Mapping[int, LossFinding] = {id(member.fact): member for member in members}
    lines = by_partition([member.fact for member in members])
    return [[of_fact[id(fact)] for fact in line] for line in lines]


def _partition_view(line: Sequence[LossFinding]) -> PartitionLoss:
    first, *others = (loss_of(finding.view()) for finding in line)
    also = [AlsoFound.model_validate(other) for other in others]
    return PartitionLoss(**first.model_dump(), also=also)


def _severities(lines: Iterable[PartitionLoss]) -> Iterator[Severity]:
    """Yield the severities of all lines; those of other rules do not count where records are restored."""
    for line in lines:
        yield line.severity
        if line.reason != RESTORED:
            yield from (other.severity for other in line.also)
