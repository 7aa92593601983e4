"""Errors that applications logged, each fact declared once for the API and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from rules.exceptions.judging import Judged, judge
from rules.exceptions.meaning import Ability, Records, Role
from rules.exceptions.problems import Problem
from rules.exceptions.relating import KnownProducer, Match, ProblemNames, match
from rules.facts.application_log import Client, Framework, Operation, Outcome, Part
from service.views.model import Model, PartitionName

ORDER: Final = tuple(Match)
MOST_RELATED: Final = 20  # of one producer


class LoggedProducer(Model):
    """A producer that lines name."""

    producer_id: int
    producer_epoch: int | None


class LoggedExample(Model):
    """One occurrence."""

    text: Annotated[str, Field(description="Shortened; what seems to be a secret is ***")]
    source: Annotated[str, Field(description="Where the line came from")]
    at: Annotated[datetime | None, Field(description="By the clock of the application")]
    received_at: datetime


class LoggedError(Model):
    """The same error of the same client, with what it means; no verdict of Tidemark."""

    id: str
    error: Annotated[
        str, Field(description="Kafka's or librdkafka's name; _X: no error of the protocol")
    ]
    meaning: Annotated[str, Field(description="Lasting name of what it means")]
    title: str
    role: Annotated[Role, Field(description="consequence: an earlier error is the reason")]
    outcome: Annotated[Outcome, Field(description="What the client says that it does now")]
    client: Annotated[Client | None, Field(description="The library")]
    part: Part | None
    framework: Framework | None
    operation: Annotated[Operation | None, Field(description="What failed")]
    records: Annotated[Records, Field(description="What may have become of records")]
    condition: Annotated[str, Field(description="When that is so")]
    idempotent_producer: Annotated[
        Ability | None, Field(description="What a producer without transactions can still do")
    ]
    transactional_producer: Annotated[
        Ability | None, Field(description="What a transactional producer can still do")
    ]
    explanation: str
    framework_does: Annotated[str | None, Field(description="What the framework around it does")]
    action: Annotated[str, Field(description="What to do")]
    check: Annotated[str, Field(description="What shows more")]
    application: str | None
    client_id: str | None
    transactional_id: str | None
    group: str | None
    topic: str | None
    partitions: Annotated[list[PartitionName], Field(description="The latest 20 that lines name")]
    producers: Annotated[list[LoggedProducer], Field(description="The latest 10 that lines name")]
    count: int
    first_seen: Annotated[datetime, Field(description="By the clock of Tidemark")]
    last_seen: datetime
    first_at: Annotated[datetime | None, Field(description="By the clock of the application")]
    last_at: datetime | None
    is_of_many: Annotated[
        bool,
        Field(description="Too many problems: those of this meaning are counted without names"),
    ]
    examples: Annotated[list[LoggedExample], Field(description="The first, and the latest")]


class RelatedError(Model):
    """An error that an application logged about a producer; it decides nothing."""

    id: str
    match: Annotated[Match, Field(description="may_be_of_it: topic and time alone")]
    error: str
    title: str
    records: Records
    idempotent_producer: Ability | None
    transactional_producer: Ability | None
    application: str | None
    client_id: str | None
    count: int
    first_at: datetime | None
    last_at: datetime | None
    last_seen: datetime
    text: Annotated[str, Field(description="The latest line, shortened")]


RelatedErrors = Annotated[
    list[RelatedError] | None,
    Field(
        description="What applications logged about its producer, the surest first; it decides nothing. "
        "null: not queried"
    ),
]


def logged_error(problem: Problem) -> LoggedError | None:
    """Return a problem with what it means; None: this version has no meaning for it."""
    judged = judge(problem.event)
    if judged is None:
        return None
    return LoggedError.of(
        problem,
        **_meaning(judged),
        **{name: getattr(problem.names, name) for name in _NAMES},
        role=judged.role,
        outcome=problem.event.outcome,
        client=problem.event.client,
        part=problem.event.part,
        framework=problem.event.framework,
        operation=judged.thrown.operation or problem.event.operation,
        partitions=problem.places,
        examples=problem.examples,
        producers=problem.producers,
    )


_NAMES: Final = ("application", "client_id", "transactional_id", "group", "topic")


def _meaning(judged: Judged) -> dict[str, object]:
    meaning = judged.meaning
    return {
        "meaning": meaning.id,
        "title": meaning.title,
        "explanation": meaning.explanation,
        "records": judged.records,
        "condition": judged.condition,
        "idempotent_producer": judged.idempotent,
        "transactional_producer": judged.transactional,
        "framework_does": None if judged.framework is None else judged.framework.explanation,
        "action": meaning.action,
        "check": meaning.check,
    }


def related_errors(problems: Iterable[Problem], producer: KnownProducer) -> list[RelatedError]:
    """Return the errors of a producer, the surest first, then the latest."""
    pairs = [
        (problem, by) for problem in problems if (by := match(ProblemNames.of(problem), producer))
    ]
    pairs.sort(key=lambda pair: pair[0].last_seen, reverse=True)
    pairs.sort(key=lambda pair: ORDER.index(pair[1]))
    return list(_related(pairs[:MOST_RELATED]))


def _related(pairs: Iterable[tuple[Problem, Match]]) -> Iterator[RelatedError]:
    for problem, by in pairs:
        judged = judge(problem.event)
        if judged is not None:
            yield RelatedError.of(
                problem,
                match=by,
                title=judged.meaning.title,
                records=judged.records,
                idempotent_producer=judged.idempotent,
                transactional_producer=judged.transactional,
                application=problem.names.application,
                client_id=problem.names.client_id,
                text=problem.event.text,
            )
