"""Findings and rounds for the storage tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from sqlalchemy import Engine, select

from rules.completeness import Completeness
from rules.evidence import Scalar
from rules.facts.column import Column
from rules.judgement import Judgement, NamedSubjects, Reason
from rules.open_findings import (
    Change,
    EndReason,
    Identity,
    OpenFinding,
    Step,
    apply_changes,
    next_changes,
)
from rules.verdict import Kind, RuleMeta, Severity, SubjectKind, Verdict
from service.storage.findings import findings
from service.storage.findings.findings import StoredFinding, StoredTransition
from service.storage.formats.checkpoint import Checkpoint
from service.storage.formats.values import read
from service.storage.rounds import clusters
from service.storage.rounds.clusters import ClusterKey, RoundId
from service.storage.rounds.rounds import Round
from service.storage.tables.core import FINDING, TRANSITION
from tests.factories import CLUSTER_ID, NOON, snapshot

WRITER = UUID(int=7)


class Why(Reason):
    SAID = "said"


BLOCKED: dict[str, Scalar] = {"group": "billing", "offsets": 5, "waits": True, "end": None}


def meta(kind: Kind = Kind.STATE) -> RuleMeta:
    return RuleMeta(
        rule_id="some_rule",
        subject=SubjectKind.PARTITION,
        kind=kind,
        severity=Severity.WARNING,
        for_=timedelta(0),
        summary="For tests.",
    )


def judged(verdicts: Mapping[str, Verdict], kind: Kind = Kind.STATE, lag: int = 7) -> Judgement:
    labels = tuple({"cluster": "default", "topic": topic} for topic in verdicts)
    return Judgement(
        rule=meta(kind),
        subjects=NamedSubjects(SubjectKind.PARTITION, labels),
        verdicts=np.array(list(verdicts.values()), np.int8),
        reasons=(Why.SAID,),
        reason=np.zeros(len(labels), np.int8),
        evidence={
            "lag": Column.of([lag] * len(labels)),
            "end": Column.of([None] * len(labels)),
        },
        details=lambda _position: {"held_by": "payments", "blocked": [dict(BLOCKED)]},
    )


class Story:
    """Rounds of one cluster, one after the other, as a service would make them.

    With an engine the cluster is registered, and `cluster` is its row id.
    """

    def __init__(self, engine: Engine | None, name: str = "default", writer: UUID = WRITER) -> None:
        self.key = ClusterKey(name, CLUSTER_ID)
        self.cluster = 0 if engine is None else clusters.register(engine, self.key, NOON)
        self.open: dict[Identity, OpenFinding] = {}
        self._writer = writer
        self._number = 0

    def round(
        self,
        verdicts: Mapping[str, Verdict],
        *,
        kind: Kind = Kind.STATE,
        at: datetime | None = None,
    ) -> Round:
        self._number += 1
        now = at or NOON + timedelta(seconds=15 * self._number)
        said = [judged(verdicts, kind, lag=self._number)]
        everything = Completeness.of(snapshot())
        changes = next_changes(self.open, said, completeness=everything, now=now)
        self.open = apply_changes(self.open, changes, now)
        return made_round(self.key, self._number, changes, now, self._writer)


def made_round(
    cluster: ClusterKey, number: int, changes: Sequence[Change], at: datetime, writer: UUID = WRITER
) -> Round:
    return Round(
        cluster=cluster,
        round_id=RoundId(writer, number),
        at=at,
        changes=changes,
        checkpoint=Checkpoint(unknown_since={"some_rule": number}),
    )


def list_findings(engine: Engine, cluster: int, *, only_open: bool) -> list[StoredFinding]:
    """Return a cluster's findings in the order of their row ids."""
    query = select(FINDING).where(FINDING.c.cluster == cluster).order_by(FINDING.c.id)
    if only_open:
        query = query.where(FINDING.c.ended_at.is_(None))
    with engine.connect() as connection:
        return [read(StoredFinding, row) for row in connection.execute(query).mappings()]


def list_transitions(engine: Engine, finding: int) -> list[StoredTransition]:
    """Return the transitions of a finding, oldest first."""
    query = select(TRANSITION).where(TRANSITION.c.finding == finding).order_by(TRANSITION.c.id)
    with engine.connect() as connection:
        return [read(StoredTransition, row) for row in connection.execute(query).mappings()]


def close_finding(engine: Engine, cluster: int, finding: StoredFinding, at: datetime) -> None:
    """Close a finding as a round does on request."""
    closed = Change(
        step=Step.ENDED,
        identity=finding.identity,
        before=finding.verdict,
        after=None,
        end_reason=EndReason.CLOSED,
    )
    with engine.begin() as connection:
        findings.save(connection, cluster, [closed], at)
