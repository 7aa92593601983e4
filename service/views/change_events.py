"""Change events, each fact declared once for the API and the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from rules.changes.words import common, explain_change, name_of, summarize_change
from rules.facts.change_events import ChangeEvent, ChangeEventKind, ChangeEvidence, SubjectKind
from service.views.model import Model


class ChangedSubject(Model):
    """One subject of an event, and its state before and after as Kafka writes it."""

    kind: SubjectKind
    name: Annotated[str, Field(examples=["topic orders"])]
    topic: str | None
    partition: int | None
    broker: int | None
    feature: str | None
    setting: str | None
    before: Annotated[str | None, Field(description="null: there was none, or it is not known")]
    after: Annotated[str | None, Field(description="null: there is none, or it is not known")]
    before_source: str | None
    """Of a setting: where its value came from"""
    after_source: str | None


class ChangeEventRow(Model):
    """The same change of one or many subjects, which one round saw."""

    id: str
    kind: ChangeEventKind
    seen_at: datetime
    """The first round that saw it, by the clock of Tidemark"""
    since: datetime | None
    """The last round before that saw the state before: it happened in between; null: not known"""
    summary: Annotated[str, Field(description="What changed, in a line")]
    explanation: Annotated[str, Field(description="What follows from it")]
    setting: Annotated[str | None, Field(description="null: no setting changed, or several")]
    before: Annotated[
        str | None, Field(description="Of all subjects; null: they differ, or there was none")
    ]
    after: Annotated[
        str | None, Field(description="Of all subjects; null: they differ, or there is none")
    ]
    count: Annotated[int, Field(description="Subjects")]
    subjects: list[ChangedSubject]
    """The first 20, in the order of their names"""
    evidence: ChangeEvidence | None
    """What proves it beside the answers of two rounds; null: nothing else"""
    cluster: Annotated[str, Field(description="Its configured name")]
    cluster_id: str


def change_event_row(
    event: ChangeEvent,
    *,
    seen_at: datetime,
    since: datetime | None,
    cluster: str,
    cluster_id: str,
) -> ChangeEventRow:
    """Return an event as it is shown."""
    return ChangeEventRow.of(
        event,
        seen_at=seen_at,
        since=since,
        summary=summarize_change(event),
        explanation=explain_change(event),
        setting=common(event, "setting"),
        before=common(event, "before"),
        after=common(event, "after"),
        subjects=[ChangedSubject.of(each, name=name_of(each)) for each in event.subjects],
        cluster=cluster,
        cluster_id=cluster_id,
    )
