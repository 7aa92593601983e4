"""Findings of lost records as losses, and by incident, one line per partition; pure.

Views are built only for what is shown: the failure of a broker that led ten thousand partitions opens up to
three times as many findings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from rules.catalogue import (
    committed_beyond_log_end,
    committed_records_lost,
    records_possibly_lost,
    unclean_leader_election,
    unreplicated_records_lost,
)
from rules.evidence import read_evidence
from rules.loss.evidence_fields import LossEvidence, SummaryEvidence
from rules.loss.summary import LossFact, Outcome, by_partition, summary_of
from rules.open_findings import OpenFinding
from rules.verdict import SEVERITIES, Severity
from service.api.core.models import VerdictWord
from service.api.findings.views import Finding, Transition, from_memory
from service.api.losses.models import (
    AlsoFound,
    Loss,
    LossClass,
    LossEvent,
    LossFacts,
    LossIncident,
    PartitionLoss,
)
from service.api.losses.steps import next_steps
from service.storage.findings.findings import StoredFinding, storable
from service.views.model import FindingState

RULE_OF: Final = {
    LossClass.COMMITTED_LOST: committed_records_lost.RULE.rule_id,
    LossClass.POSSIBLY_LOST: records_possibly_lost.RULE.rule_id,
    LossClass.UNREPLICATED_LOST: unreplicated_records_lost.RULE.rule_id,
    LossClass.UNCLEAN_ELECTION: unclean_leader_election.RULE.rule_id,
    LossClass.COMMITTED_BEYOND_LOG_END: committed_beyond_log_end.RULE.rule_id,
}
CLASS_OF: Final = {rule_id: class_ for class_, rule_id in RULE_OF.items()}
NOT_DETERMINABLE: Final = (
    records_possibly_lost.Why.NOT_DETERMINABLE,
    records_possibly_lost.Why.ELECTION_NOT_KNOWN,
)
OF_THE_LOSS: Final = frozenset({"topic_id", "incident"})  # not among the facts of one occurrence


def class_of(rule_id: str, reason: str) -> LossClass | None:
    """Return the loss class of a finding; None if its rule detects no losses."""
    is_unknown = rule_id == records_possibly_lost.RULE.rule_id and reason in NOT_DETERMINABLE
    return LossClass.NOT_DETERMINABLE if is_unknown else CLASS_OF.get(rule_id)


def rule_of(class_: LossClass) -> str:
    """Return the rule that detects a loss class."""
    is_unknown = class_ is LossClass.NOT_DETERMINABLE
    return RULE_OF[LossClass.POSSIBLY_LOST if is_unknown else class_]


def loss_of(finding: Finding) -> Loss:
    """Return a finding of one of the rules in `RULE_OF` as a loss."""
    labels, evidence = finding.labels, read_evidence(finding.evidence, LossEvidence)
    class_ = class_of(finding.rule, finding.reason) or CLASS_OF[finding.rule]
    partition, facts = labels.get("partition", ""), facts_of(finding.reason, finding.evidence)
    is_number = partition.isascii() and partition.isdecimal()
    return Loss(
        **facts.model_dump(),
        id=finding.id,
        class_=class_,
        severity=finding.severity,
        cluster=labels.get("cluster"),
        cluster_id=finding.cluster_id,
        topic=labels.get("topic"),
        partition=int(partition) if is_number else None,
        topic_id=evidence.get("topic_id"),
        group=labels.get("group"),
        since=finding.since,
        last_happened_at=finding.last_breach_at,
        state=finding.state,
        subject_gone=finding.subject_gone,
        incident=evidence.get("incident"),
        ended_at=finding.ended_at,
        end_reason=finding.end_reason,
        next_steps=next_steps(class_, labels, facts, is_deleted=finding.subject_gone),
    )


def event_of(step: Transition) -> LossEvent | None:
    """Return the occurrence of a loss that a transition records; None if it is no breach."""
    if step.to_verdict is not VerdictWord.BREACH:
        return None
    return LossEvent(at=step.at, **facts_of(step.reason, step.evidence).model_dump())


def facts_of(reason: str, stored: Mapping[str, Any]) -> LossFacts:
    """Return the facts that stored evidence holds."""
    evidence = read_evidence(stored, LossEvidence)
    _count_offsets(evidence)
    if evidence["certain_from"] is None:
        evidence["visible_to_read_committed"] = None
    facts = {name: evidence.get(name) for name in LossFacts.model_fields}
    named = facts.keys() | OF_THE_LOSS
    more = {name: value for name, value in stored.items() if name not in named}
    return LossFacts.model_validate(facts | {"reason": reason, "more": more})


def groups_in(stored: Mapping[str, Any]) -> list[str]:
    """Return the groups that evidence names as having read beyond the end of the log."""
    return [row["group"] for row in read_evidence(stored, LossEvidence).get("groups_beyond", ())]


def _count_offsets(evidence: LossEvidence) -> None:
    """Set the number of offsets of each range."""
    evidence["certain_from"], evidence["certain_to"], evidence["certain_offsets"] = _range(
        evidence.get("certain_from"), evidence.get("certain_to")
    )
    evidence["possible_from"], evidence["possible_to"], evidence["possible_offsets"] = _range(
        evidence.get("possible_from"), evidence.get("possible_to")
    )
    evidence["exact_from"], evidence["exact_to"], evidence["exact_offsets"] = _range(
        evidence.get("exact_from"), evidence.get("exact_to")
    )
    evidence["uncommitted_from"], evidence["uncommitted_to"], evidence["uncommitted_offsets"] = (
        _range(evidence.get("uncommitted_from"), evidence.get("uncommitted_to"))
    )


def _range(start: int | None, end: int | None) -> tuple[int | None, int | None, int | None]:
    """Return start, end and number of offsets; all None where an end is not known."""
    return (None, None, None) if start is None or end is None else (start, end, end - start)


MOST_PARTITIONS: Final = 1000  # of an incident
RESTORED: Final = str(committed_records_lost.Why.RESTORED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFinding:
    """A finding of lost records, and a function that builds its view."""

    fact: LossFact
    severity: Severity
    is_open: bool
    last_breach_at: datetime
    view: Callable[[], Finding]


def open_loss(entry: OpenFinding, cluster_id: str | None) -> LossFinding:
    """Return an open finding of one of the rules in `RULE_OF`."""
    return LossFinding(
        fact=open_fact(entry),
        severity=entry.severity,
        is_open=True,
        last_breach_at=entry.last_breach_at,
        view=partial(from_memory, entry, cluster_id),
    )


def open_fact(entry: OpenFinding) -> LossFact:
    """Return what an open finding says of its partition."""
    rule_id, labels = entry.identity
    return fact_of(rule_id, storable(dict(labels)), entry)


def fact_of(
    rule_id: str, labels: Mapping[str, str], finding: OpenFinding | StoredFinding
) -> LossFact:
    """Return what a finding says of its partition."""
    evidence = read_evidence(finding.evidence, SummaryEvidence)
    return LossFact(rule_id, labels, finding.reason, evidence, finding.since)


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


def incident_view(incident: Incident, open_ids: Collection[str]) -> LossIncident:
    """Return an incident as the API shows it; it is open, too, if its id is in `open_ids`."""
    summary = summary_of([[finding.fact for finding in line] for line in incident.lines])
    everything = [finding for line in incident.lines for finding in line]
    is_open = incident.incident_id in open_ids or any(finding.is_open for finding in everything)
    return LossIncident(
        id=incident.incident_id,
        summary=summary.sentence,
        severity=min(_severities(incident.lines), key=SEVERITIES.index),
        broker=summary.broker,
        since=summary.began,
        last_happened_at=max(finding.last_breach_at for finding in everything),
        last_observation=summary.last_observation,
        state=FindingState.OPEN if is_open else FindingState.ENDED,
        partition_count=len(incident.lines),
        lost_partitions=summary.partitions.get(Outcome.LOST, 0),
        certain_offsets=summary.certain_offsets,
        possibly_lost_partitions=summary.possibly_lost,
        partitions=[_partition_view(line) for line in incident.lines[:MOST_PARTITIONS]],
    )


def _lines(members: Sequence[LossFinding]) -> list[list[LossFinding]]:
    of_fact: Mapping[int, LossFinding] = {id(member.fact): member for member in members}
    lines = by_partition([member.fact for member in members])
    return [[of_fact[id(fact)] for fact in line] for line in lines]


def _partition_view(line: Sequence[LossFinding]) -> PartitionLoss:
    first, *others = (loss_of(finding.view()) for finding in line)
    also = [AlsoFound.model_validate(other) for other in others]
    return PartitionLoss(**first.model_dump(), also=also)


def _severities(lines: Iterable[Sequence[LossFinding]]) -> Iterator[Severity]:
    """Yield the severities of all lines; those of other rules do not count where records are restored."""
    for first, *others in lines:
        yield first.severity
        if first.fact.reason != RESTORED:
            yield from (other.severity for other in others)
