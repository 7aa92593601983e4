"""The report of an incident as data; `docs/schemas/incident.json` is generated from it.

Field names are a contract with scripts: they may be added to, never changed. Absent values are null.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from service.views.model import Evidence, Model

VERSION: Final = 1

Related = Annotated[
    bool,
    Field(description="Whether it shares a subject with the alert; true where there is no alert"),
]


class Outcome(StrEnum):
    """What the findings of the time say of lost records."""

    LOST = "lost"  # proven
    MAY_BE_LOST = "may_be_lost"
    UNKNOWN = "unknown"  # not determinable, or not all of the facts could be read
    NONE_FOUND = "none_found"  # no rule found a loss


class RangeKind(StrEnum):
    """How certain it is that a range is lost, as in /losses."""

    CERTAIN = "certain"
    EXACT = "exact"
    POSSIBLE = "possible"
    UNCOMMITTED = "uncommitted"


class Entry(Model):
    """A fact with its time."""

    at: datetime
    what: str
    source: Annotated[
        str, Field(description="Path below /api/v1 that has it, or the file of a transcript")
    ]


class Proof(Model):
    """A verdict and the evidence that it follows from."""

    finding: str
    rule: str
    summary: str | None
    severity: str
    verdict: str
    reason: str
    labels: dict[str, str]
    since: datetime
    ended_at: datetime | None
    evidence: Evidence
    is_related: Related


class LostRange(Model):
    """Offsets of a partition that are gone, from `begin` on and before `end`; markers count too."""

    loss: Annotated[str, Field(description="Id in /losses")]
    topic: str | None
    partition: int | None
    kind: RangeKind
    begin: int
    end: int
    offsets: int
    is_related: Related


class UnknownLoss(Model):
    """A partition whose loss has no end that is known, or no range at all."""

    loss: str
    topic: str | None
    partition: int | None
    reason: str
    unknown_since: Annotated[
        datetime | None, Field(description="What was appended after this may be lost, unobserved")
    ]
    at_least_offsets: Annotated[
        int | None, Field(description="So many are not in the log, as the commit of a group shows")
    ]
    is_related: Related


class ClientOfEvent(Model):
    """A client whose failed records or retries rose at the time of rejected batches; no proof of a loss."""

    sequence: Annotated[str, Field(description="Id in /sequences")]
    of_topic: Annotated[str | None, Field(description="Of the rejected batches")]
    partition: int | None
    client_id: str
    address: str
    topic: Annotated[str | None, Field(description="null: the sum over the client's topics")]
    errors: int | None
    """Records that failed for good, at least; null: not reported, or by a rate alone"""
    errors_since: Annotated[datetime | None, Field(description="null: they did not rise")]
    errors_until: datetime | None
    retries: int | None
    """Records that were sent again, likewise"""
    retries_since: datetime | None
    retries_until: datetime | None
    is_related: Related


class ChartPoint(Model):
    """A value; null: not measured."""

    at: datetime
    value: float | None


class Chart(Model):
    """What was measured of a series around the incident."""

    title: str
    unit: str | None
    points: list[ChartPoint]


class IncidentReport(Model):
    """An incident between two times, from facts only."""

    version: int = VERSION
    server: str
    cluster: str
    made_at: Annotated[datetime | None, Field(description="Of the server's answers")]
    title: str
    alert: Annotated[str | None, Field(description="Fingerprint, if the report is of an alert")]
    begin: datetime
    end: datetime
    outcome: Annotated[Outcome, Field(description="Of what is related to the alert")]
    other_outcome: Annotated[
        Outcome | None, Field(description="Of other losses of that time; null: none is known")
    ]
    lost_offsets: Annotated[
        int | None,
        Field(description="Of them certainly lost, a lower bound; null: that is not known"),
    ]
    loss_summaries: Annotated[
        list[str], Field(description="What one cause did, in a sentence each")
    ]
    proofs: list[Proof]
    lost_ranges: list[LostRange]
    unknown_losses: list[UnknownLoss]
    clients: list[ClientOfEvent]
    """That had records fail, or sent them again, when batches were rejected"""
    groups: Annotated[
        list[str],
        Field(description="Named by the alert, a related finding or a loss of the same incident"),
    ]
    transactional_ids: list[str]
    timeline: list[Entry]
    charts: list[Chart]
    missing: Annotated[list[str], Field(description="What the report lacks, and why")]
