"""Queries of stored findings: pages of them, and one finding with its transitions.

A page begins after the last row of the previous one (keyset pagination), so that new findings neither
repeat nor hide others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Engine,
    Select,
    and_,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import JSONB, JSONPATH

from rules.verdict import Severity, Verdict
from service.storage.database.translate import translate_errors
from service.storage.findings.findings import (
    ESCAPE,
    StoredFinding,
    StoredTransition,
    like_of,
)
from service.storage.formats.values import read
from service.storage.tables.core import CLUSTER, FINDING, TRANSITION

LAST_TRANSITIONS: Final = 1000  # of one finding; one that flaps every round makes 5760 a day
GROUPS_BEYOND: Final = '$.groups_beyond[*] ? (@.group.type() == "string")'
PARTITIONS: Final = '$.partitions[*] ? (@.topic.type() == "string")'


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFilter:
    """Which findings a page shows; None takes all."""

    only_ended: bool
    rule_id: str | None = None
    rule_ids: frozenset[str] | None = None  # any of them
    severity: Severity | None = None
    verdict: Verdict | None = None
    # A pattern: an asterisk matches any text. Matches the label, or a row in `partitions`.
    topic: str | None = None
    partition: int | None = None
    group: str | None = None  # a pattern; matches the label, or a row in `groups_beyond`
    breached_since: datetime | None = None
    after: tuple[datetime, int] | None = None  # time and row id of the last one already shown


@dataclass(frozen=True, slots=True, kw_only=True)
class PastFinding:
    """A stored finding and the id of its cluster."""

    cluster_id: str  # empty if no broker had reported it
    finding: StoredFinding


class FindingHistory:
    """The findings of all clusters that had one name."""

    def __init__(self, engine: Callable[[], Engine], name: str) -> None:
        self._engine = engine  # raises StoreError as long as the database has not answered
        self._name = name

    def page(self, filters: FindingFilter, limit: int) -> list[PastFinding]:
        """Return findings, newest first: by their end if only ended ones are selected, else by start."""
        when = FINDING.c.ended_at if filters.only_ended else FINDING.c.since
        query = self._select().where(*_conditions(filters))
        if filters.after is not None:
            timestamp, row = filters.after
            last = tuple_(bindparam("timestamp", timestamp, when.type), bindparam("row", row))
            query = query.where(tuple_(when, FINDING.c.id) < last)
        return self._read(query.order_by(when.desc(), FINDING.c.id.desc()).limit(limit))

    def one(self, rule_id: str, hash_begins: str) -> PastFinding | None:
        """Return the newest finding of a rule whose labels' hash begins with `hash_begins`."""
        is_it = and_(
            FINDING.c.rule_id == rule_id,
            FINDING.c.labels_hash.startswith(hash_begins, autoescape=True),
        )
        newest = self._select().where(is_it).order_by(FINDING.c.since.desc(), FINDING.c.id.desc())
        return next(iter(self._read(newest.limit(1))), None)

    def transitions(self, finding: int) -> list[StoredTransition]:
        """Return the last transitions of a finding, oldest first."""
        of_it = select(TRANSITION).where(TRANSITION.c.finding == finding)
        last = of_it.order_by(TRANSITION.c.id.desc()).limit(LAST_TRANSITIONS)
        with translate_errors("transitions cannot be read"), self._engine().connect() as connection:
            rows = [read(StoredTransition, row) for row in connection.execute(last).mappings()]
        return rows[::-1]

    def _select(self) -> Select[tuple[object, ...]]:
        joined = FINDING.join(CLUSTER, CLUSTER.c.id == FINDING.c.cluster)
        columns = (FINDING, CLUSTER.c.cluster_id.label("of_cluster_id"))
        return select(*columns).select_from(joined).where(CLUSTER.c.name == self._name)

    def _read(self, query: Select[tuple[object, ...]]) -> list[PastFinding]:
        with translate_errors("findings cannot be read"), self._engine().connect() as connection:
            rows = connection.execute(query).mappings()
            return [
                PastFinding(cluster_id=row["of_cluster_id"], finding=read(StoredFinding, row))
                for row in rows
            ]


def _conditions(filters: FindingFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.only_ended:
        conditions.append(FINDING.c.ended_at.is_not(None))
    if filters.rule_id is not None:
        conditions.append(FINDING.c.rule_id == filters.rule_id)
    if filters.severity is not None:
        conditions.append(FINDING.c.severity == filters.severity.value)
    if filters.verdict is not None:
        conditions.append(FINDING.c.verdict == filters.verdict.name.lower())
    if filters.rule_ids is not None:
        conditions.append(FINDING.c.rule_id.in_(sorted(filters.rule_ids)))
    if filters.breached_since is not None:
        conditions.append(FINDING.c.last_breach_at >= filters.breached_since)
    return [*conditions, *_places(filters)]


def _places(filters: FindingFilter) -> Iterator[ColumnElement[bool]]:
    labels = FINDING.c.labels
    if filters.topic is not None:
        pattern = like_of(filters.topic)
        of_label = labels["topic"].astext.like(pattern, escape=ESCAPE)
        yield or_(of_label, _has_row(PARTITIONS, "topic", pattern))
    if filters.partition is not None:
        yield labels["partition"].astext == str(filters.partition)
    if filters.group is not None:
        pattern = like_of(filters.group)
        yield or_(
            labels["group"].astext.like(pattern, escape=ESCAPE),
            _has_row(GROUPS_BEYOND, "group", pattern),
        )


def _has_row(rows: str, key: str, pattern: str) -> ColumnElement[bool]:
    """Return the condition that a row of the evidence has a matching name; other evidence has none."""
    path = cast(rows, JSONPATH)
    row = func.jsonb_path_query(FINDING.c.evidence, path, type_=JSONB).column_valued(f"{key}_row")
    name = row[key].astext
    return exists(select(1).where(name.like(pattern, escape=ESCAPE)))
