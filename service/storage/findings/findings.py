"""The findings and their transitions: three statements per round, however much changed.

Rows travel as one parameter. A finding keeps its row for ever: the same rule and labels open
it again, and its transitions tell the story.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from json import JSONEncoder
from typing import Final

from sqlalchemy import Connection, Engine, RowMapping, select, text

from rules.evidence import Evidence, EvidenceValue, Scalar
from rules.judgement import Finding
from rules.open_findings import Change, EndReason, Identity, OpenFinding, Step
from rules.verdict import Kind, Severity, Verdict
from service.storage.database.bulk import json_value, lines_of, plain, rows_from
from service.storage.database.translate import translated
from service.storage.tables.core import FINDING, TRANSITION

_REMEMBERED: Final = 32_768
_SORTED: Final = JSONEncoder(sort_keys=True)
SAID: Final = (Step.OPENED, Step.STILL, Step.AGAIN, Step.UNKNOWN)

_SAID: Final = {
    "rule_id": "text",
    "labels": "jsonb",
    "labels_hash": "text",
    "after": "text",
    "reason": "text",
    "evidence": "jsonb",
    "severity": "text",
    "kind": "text",
}
_OTHER: Final = {
    "rule_id": "text",
    "labels_hash": "text",
    "judged": "boolean",
    "absent_rounds": "smallint",
    "end_reason": "text",
    "reason": "text",
    "evidence": "jsonb",
}
_TOLD: Final = {
    "rule_id": "text",
    "labels_hash": "text",
    "before": "text",
    "after": "text",
    "reason": "text",
    "evidence": "jsonb",
}
_UPSERT: Final = text(f"""
INSERT INTO finding AS f (cluster, rule_id, labels, labels_hash, verdict, reason, evidence,
                          severity, kind, since, last_breach_at, last_judged_at)
SELECT :cluster, r.rule_id, r.labels, r.labels_hash, r.after, r.reason, r.evidence,
       r.severity, r.kind, :at, :at, :at
FROM {rows_from("rows", _SAID)}
ON CONFLICT (cluster, rule_id, labels_hash) DO UPDATE SET
    verdict = excluded.verdict, reason = excluded.reason, evidence = excluded.evidence,
    severity = excluded.severity, kind = excluded.kind, last_judged_at = excluded.last_judged_at,
    since = CASE WHEN f.ended_at IS NULL THEN f.since ELSE excluded.since END,
    last_breach_at = CASE WHEN excluded.verdict = 'breach' OR f.ended_at IS NOT NULL
                          THEN excluded.last_breach_at ELSE f.last_breach_at END,
    absent_rounds = 0, ended_at = NULL, end_reason = NULL
WHERE f.ended_at IS NULL OR excluded.verdict = 'breach'
""")  # noqa: S608 - our own names alone, here and below
_UPDATE: Final = text(f"""
UPDATE finding AS f SET
    absent_rounds = r.absent_rounds,
    last_judged_at = CASE WHEN r.judged THEN :at ELSE f.last_judged_at END,
    verdict = CASE WHEN r.end_reason = 'ok' THEN 'ok' ELSE f.verdict END,
    reason = CASE WHEN r.end_reason = 'ok' THEN r.reason ELSE f.reason END,
    evidence = CASE WHEN r.end_reason = 'ok' THEN r.evidence ELSE f.evidence END,
    ended_at = CASE WHEN r.end_reason IS NULL THEN NULL ELSE CAST(:at AS timestamptz) END,
    end_reason = r.end_reason
FROM {rows_from("rows", _OTHER)}
WHERE f.cluster = :cluster AND f.rule_id = r.rule_id AND f.labels_hash = r.labels_hash
  AND f.ended_at IS NULL
""")  # noqa: S608
_TRANSITIONS: Final = text(f"""
INSERT INTO transition (finding, at, from_verdict, to_verdict, reason, evidence)
SELECT f.id, :at, r.before, r.after, r.reason, r.evidence
FROM {rows_from("rows", _TOLD)}
JOIN finding AS f ON f.cluster = :cluster AND f.rule_id = r.rule_id AND f.labels_hash = r.labels_hash
WHERE f.ended_at IS NULL OR f.ended_at = :at
ORDER BY r.place
""")  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """One finding as it is in the database."""

    id: int
    rule_id: str
    labels: Mapping[str, str]
    verdict: Verdict
    reason: str
    evidence: Evidence
    severity: Severity
    kind: Kind
    since: datetime
    last_breach_at: datetime
    last_judged_at: datetime
    absent_rounds: int
    ended_at: datetime | None
    end_reason: EndReason | None

    @property
    def identity(self) -> Identity:
        """Return rule id and sorted labels."""
        return self.rule_id, tuple(sorted(self.labels.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTransition:
    """One step in the life of a finding."""

    finding: int
    at: datetime
    from_verdict: Verdict | None  # None: it was not open
    to_verdict: Verdict | None  # None: it is judged no more
    reason: str
    evidence: Evidence


def load_open(engine: Engine, cluster: int) -> dict[Identity, OpenFinding]:
    """Return what the lifecycle needs of a cluster's open findings."""
    return {
        stored.identity: OpenFinding(
            identity=stored.identity,
            kind=stored.kind,
            verdict=stored.verdict,
            severity=stored.severity,
            reason=stored.reason,
            evidence=stored.evidence,
            since=stored.since,
            last_breach_at=stored.last_breach_at,
            last_judged_at=stored.last_judged_at,
            absent_rounds=stored.absent_rounds,
        )
        for stored in list_findings(engine, cluster, only_open=True)
    }


def list_findings(engine: Engine, cluster: int, *, only_open: bool) -> list[StoredFinding]:
    """Return a cluster's findings in the order in which their rows were made."""
    wanted = select(FINDING).where(FINDING.c.cluster == cluster).order_by(FINDING.c.id)
    if only_open:
        wanted = wanted.where(FINDING.c.ended_at.is_(None))
    with translated("findings cannot be read"), engine.connect() as connection:
        return [finding_of(row) for row in connection.execute(wanted).mappings()]


def list_transitions(engine: Engine, finding: int) -> list[StoredTransition]:
    """Return the transitions of a finding, oldest first."""
    wanted = select(TRANSITION).where(TRANSITION.c.finding == finding).order_by(TRANSITION.c.id)
    with translated("transitions cannot be read"), engine.connect() as connection:
        return [transition_of(row) for row in connection.execute(wanted).mappings()]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRows:
    """What rounds changed as lines for the database; empty for no rows."""

    said: str
    others: str
    reported: str


def rows_of(changes: Sequence[Change]) -> FindingRows:
    """Return changes as lines."""
    shown = [(change, _evidence(change.finding)) for change in changes]
    return FindingRows(
        said=lines_of(_said(*one) for one in shown if one[0].step in SAID),
        others=lines_of(_other(*one) for one in shown if one[0].step not in SAID),
        reported=lines_of(_told(*one) for one in shown if one[0].is_transition),
    )


def save(connection: Connection, cluster: int, rows: FindingRows, at: datetime) -> None:
    """Store what one round changed; `at` is the time of the round."""
    for statement, lines in (
        (_UPSERT, rows.said),
        (_UPDATE, rows.others),
        (_TRANSITIONS, rows.reported),
    ):
        if lines:
            connection.execute(statement, {"cluster": cluster, "at": at, "rows": lines})


def close_finding(engine: Engine, finding: int, at: datetime) -> bool:
    """End a finding because a person says so; False if it is not open.

    Who carries the open findings from round to round has to drop it too; until then only a breach
    opens it again.
    """
    closed = text("""
        WITH closed AS (
            UPDATE finding AS f SET ended_at = :at, end_reason = :why FROM finding AS old
            WHERE f.id = :id AND old.id = f.id AND f.ended_at IS NULL
            RETURNING f.id, old.verdict, f.evidence)
        INSERT INTO transition (finding, at, from_verdict, to_verdict, reason, evidence)
        SELECT id, :at, verdict, NULL, :why, evidence FROM closed""")
    with translated(f"finding {finding} cannot be closed"), engine.begin() as connection:
        given = {"id": finding, "at": at, "why": EndReason.CLOSED.value}
        return connection.execute(closed, given).rowcount == 1


Row = Sequence[str | None]


def _said(change: Change, evidence: str) -> Row:
    """Return a line of what is open, in the order of `_SAID`."""
    finding, (known, its_hash) = change.finding, _named(change.identity[1])
    return (
        plain(change.identity[0]),
        known,
        its_hash,
        _word(change.after),
        plain(_reason(change, finding)),
        evidence,
        change.severity,
        None if finding is None else finding.rule.kind,
    )


def _other(change: Change, evidence: str) -> Row:
    """Return a line of what was not seen or is over, in the order of `_OTHER`."""
    finding = change.finding
    return (
        plain(change.identity[0]),
        _named(change.identity[1])[1],
        "false" if finding is None else "true",
        str(change.absent_rounds),
        change.end_reason,
        plain(_reason(change, finding)),
        evidence,
    )


def _told(change: Change, evidence: str) -> Row:
    """Return a line of a transition, in the order of `_TOLD`."""
    finding = change.finding
    return (
        plain(change.identity[0]),
        _named(change.identity[1])[1],
        _word(change.before),
        _word(change.after),
        plain(_reason(change, finding)),
        evidence,
    )


def _evidence(finding: Finding | None) -> str:
    return "{}" if finding is None else json_value(finding.evidence)


def _reason(change: Change, finding: Finding | None) -> str:
    """Return the rule's reason; an end that is not the rule's own has one of its own."""
    ended_by_us = change.end_reason not in (None, EndReason.OK)
    return str(change.end_reason) if ended_by_us or finding is None else finding.reason


@lru_cache(maxsize=_REMEMBERED)  # what is open comes with every round
def _named(labels: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return labels as JSON, and their hash."""
    known = storable(dict(labels))
    return json_value(known), labels_hash(known)


def labels_hash(labels: Mapping[str, str]) -> str:
    """Return what means a finding's labels in its row: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(_SORTED.encode(storable(labels)).encode()).hexdigest()


def storable(labels: Mapping[str, str]) -> dict[str, str]:
    """PostgreSQL's text cannot hold NUL, which a group's name may; one name must not stop all."""
    return {name: storable_text(value) for name, value in labels.items()}


def storable_evidence(evidence: Evidence) -> dict[str, EvidenceValue]:
    """Return evidence as the database can hold it; names of groups and producers are in it too."""
    return {
        name: [{key: _scalar(one) for key, one in row.items()} for row in value]
        if isinstance(value, list)
        else _scalar(value)
        for name, value in evidence.items()
    }


def _scalar(value: Scalar) -> Scalar:
    return storable_text(value) if isinstance(value, str) else value


def storable_text(text: str) -> str:
    """Return a text as the database can hold it."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


def _word(verdict: Verdict | None) -> str | None:
    return None if verdict is None else verdict.name.lower()


def _verdict(word: str | None) -> Verdict | None:
    return None if word is None else Verdict[word.upper()]


def finding_of(row: RowMapping) -> StoredFinding:
    """Return the finding in a row of its table."""
    kept = {name: row[name] for name in StoredFinding.__dataclass_fields__}
    kept["verdict"] = _verdict(row["verdict"])
    kept["severity"], kept["kind"] = Severity(row["severity"]), Kind(row["kind"])
    kept["end_reason"] = None if row["end_reason"] is None else EndReason(row["end_reason"])
    return StoredFinding(**kept)


def transition_of(row: RowMapping) -> StoredTransition:
    """Return the step in a row of its table."""
    return StoredTransition(
        finding=row["finding"],
        at=row["at"],
        from_verdict=_verdict(row["from_verdict"]),
        to_verdict=_verdict(row["to_verdict"]),
        reason=row["reason"],
        evidence=row["evidence"],
    )
