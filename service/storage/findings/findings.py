"""Findings and their transitions: three statements per round, however many changed.

Rows are passed as one parameter. A finding keeps its row for ever: the same rule and labels open it
again, and its transitions are its history.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from json import JSONEncoder
from typing import Final

from sqlalchemy import Connection, Engine, select, text

from rules.evidence import Evidence, EvidenceValue, Scalar
from rules.judgement import Finding
from rules.open_findings import Change, EndReason, Identity, OpenFinding, Step
from rules.verdict import Kind, Severity, Verdict
from service.storage.database.bulk import json_value, lines_of, plain, rows_from
from service.storage.database.rejections import RejectedRow, RowKind, save_each
from service.storage.database.translate import translate_errors
from service.storage.formats.values import read
from service.storage.tables.core import FINDING

_REMEMBERED: Final = 1_024
_SORTED: Final = JSONEncoder(sort_keys=True)
ESCAPE: Final = "!"  # in patterns of LIKE
OPEN_STEPS: Final = (Step.OPENED, Step.STILL, Step.AGAIN, Step.UNKNOWN)

_COLUMNS: Final = {
    "rule_id": "text",
    "labels": "jsonb",
    "labels_hash": "text",
    "before": "text",
    "after": "text",
    "reason": "text",
    "evidence": "jsonb",
    "severity": "text",
    "kind": "text",
    "judged": "boolean",
    "absent_rounds": "smallint",
    "end_reason": "text",
    "since": "timestamptz",
    "last_breach_at": "timestamptz",
}
_ROWS: Final = rows_from("rows", _COLUMNS)
_IS_LATE: Final = "(excluded.since < excluded.last_judged_at)"  # it opened in a round that was lost
_UPSERT: Final = text(f"""
INSERT INTO finding AS f (cluster, rule_id, labels, labels_hash, verdict, reason, evidence,
                          severity, kind, since, last_breach_at, last_judged_at)
SELECT :cluster, r.rule_id, r.labels, r.labels_hash, r.after, r.reason, r.evidence,
       r.severity, r.kind, coalesce(r.since, :at), coalesce(r.last_breach_at, :at), :at
FROM {_ROWS}
ON CONFLICT (cluster, rule_id, labels_hash) DO UPDATE SET
    verdict = excluded.verdict, reason = excluded.reason, evidence = excluded.evidence,
    severity = excluded.severity, kind = excluded.kind, last_judged_at = excluded.last_judged_at,
    since = CASE WHEN f.ended_at IS NULL AND NOT {_IS_LATE} THEN f.since ELSE excluded.since END,
    last_breach_at = CASE WHEN excluded.verdict = 'breach' OR f.ended_at IS NOT NULL OR {_IS_LATE}
                          THEN excluded.last_breach_at ELSE f.last_breach_at END,
    absent_rounds = 0, ended_at = NULL, end_reason = NULL
WHERE f.ended_at IS NULL OR excluded.verdict = 'breach' OR {_IS_LATE}
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
FROM {_ROWS}
WHERE f.cluster = :cluster AND f.rule_id = r.rule_id AND f.labels_hash = r.labels_hash
  AND f.ended_at IS NULL
""")  # noqa: S608
_TRANSITIONS: Final = text(f"""
INSERT INTO transition (finding, at, from_verdict, to_verdict, reason, evidence)
SELECT f.id, coalesce(r.since, :at), r.before, r.after, r.reason, r.evidence
FROM {_ROWS}
JOIN finding AS f ON f.cluster = :cluster AND f.rule_id = r.rule_id AND f.labels_hash = r.labels_hash
WHERE (f.ended_at IS NULL OR f.ended_at = :at) AND NOT EXISTS (
    -- an opening that counts as lost may have been stored: only the answer was lost
    SELECT 1 FROM transition AS t
    WHERE t.finding = f.id AND t.at = r.since AND t.from_verdict IS NULL)
ORDER BY r.place
""")  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """A finding as stored."""

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
    to_verdict: Verdict | None  # None: it is no longer judged
    reason: str
    evidence: Evidence


def load_open(engine: Engine, cluster: int) -> dict[Identity, OpenFinding]:
    """Return a cluster's open findings by identity, as the lifecycle needs them."""
    query = select(FINDING).where(FINDING.c.cluster == cluster, FINDING.c.ended_at.is_(None))
    with translate_errors("findings cannot be read"), engine.connect() as connection:
        rows = connection.execute(query.order_by(FINDING.c.id)).mappings()
        open_findings = [
            read(OpenFinding, {**row, "identity": (row["rule_id"], sorted(row["labels"].items()))})
            for row in rows
        ]
    return {finding.identity: finding for finding in open_findings}


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRows:
    """Changes of a round as lines for the database; empty for no rows."""

    open: str
    others: str
    transitions: str


def rows_of(changes: Sequence[Change]) -> FindingRows:
    """Return changes as lines."""
    rows = [(change, _row(change)) for change in changes]
    return FindingRows(
        open=lines_of(row for change, row in rows if change.step in OPEN_STEPS),
        others=lines_of(row for change, row in rows if change.step not in OPEN_STEPS),
        transitions=lines_of(row for change, row in rows if change.is_transition),
    )


def save(
    connection: Connection, cluster: int, changes: Sequence[Change], at: datetime
) -> list[RejectedRow]:
    """Store the changes of one round; return those that the database rejects for good.

    `at` is the time of the round. A change is stored with its transition or not at all.
    """
    rejections = save_each(
        connection,
        changes,
        lambda part: _save(connection, cluster, rows_of(part), at),
        "a finding cannot be stored",
    )
    return [rejection.report(RowKind.FINDING, _name(rejection.row)) for rejection in rejections]


def _save(connection: Connection, cluster: int, rows: FindingRows, at: datetime) -> None:
    for statement, lines in (
        (_UPSERT, rows.open),
        (_UPDATE, rows.others),
        (_TRANSITIONS, rows.transitions),
    ):
        if lines:
            connection.execute(statement, {"cluster": cluster, "at": at, "rows": lines})


def _name(change: Change) -> str:
    rule_id, labels = change.identity
    return f"{rule_id} {dict(labels)}"


def _row(change: Change) -> Sequence[str | None]:
    """Return the line of a change, in the order of `_COLUMNS`."""
    finding, (labels, its_hash) = change.finding, _named(change.identity[1])
    return (
        plain(change.identity[0]),
        labels,
        its_hash,
        _word(change.before),
        _word(change.after),
        plain(_reason(change, finding)),
        "{}" if finding is None else json_value(finding.evidence),
        change.severity,
        None if finding is None else finding.rule.kind,
        "false" if finding is None else "true",
        str(change.absent_rounds),
        change.end_reason,
        _time(change.since),
        _time(change.last_breach_at),
    )


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _reason(change: Change, finding: Finding | None) -> str:
    """Return the rule's reason, or the end reason if the rule did not end the finding."""
    ended_by_us = change.end_reason not in (None, EndReason.OK)
    return str(change.end_reason) if ended_by_us or finding is None else finding.reason


@lru_cache(maxsize=_REMEMBERED)  # a finding that flaps is stored in round after round
def _named(labels: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """Return labels as JSON, and their hash."""
    stored_labels = storable(dict(labels))
    return json_value(stored_labels), labels_hash(stored_labels)


def labels_hash(labels: Mapping[str, str]) -> str:
    """Return the hash of a finding's labels in its row: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(_SORTED.encode(storable(labels)).encode()).hexdigest()


def storable(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels without NUL, which PostgreSQL's text rejects and a group id may contain."""
    return {name: storable_text(value) for name, value in labels.items()}


def storable_evidence(evidence: Evidence) -> dict[str, EvidenceValue]:
    """Return evidence without NUL; it contains names of groups and producers too."""
    return {
        name: [{key: _scalar(scalar) for key, scalar in row.items()} for row in value]
        if isinstance(value, list)
        else _scalar(value)
        for name, value in evidence.items()
    }


def _scalar(value: Scalar) -> Scalar:
    return storable_text(value) if isinstance(value, str) else value


def storable_text(text: str) -> str:
    """Return a text with NUL replaced by a symbol."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}")


def like_of(pattern: str) -> str:
    """Return a name pattern, where an asterisk matches any text, as a LIKE pattern with `ESCAPE`."""
    text = pattern.replace(ESCAPE, ESCAPE * 2).replace("%", f"{ESCAPE}%").replace("_", f"{ESCAPE}_")
    return storable_text(text).replace("*", "%")


def _word(verdict: Verdict | None) -> str | None:
    return None if verdict is None else verdict.name.lower()
