"""Lines as applications write them, and the problems that they make, for tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from collectors.application_log.reader import Reader
from rules.exceptions.judging import judge
from rules.exceptions.problems import Occurrence, Problem, with_occurrence
from rules.facts.application_log import ApplicationError
from tests.factories import NOON

ERRORS: Final = "org.apache.kafka.common.errors."
FENCED: Final = (
    f"{ERRORS}ProducerFencedException: There is a newer producer with the same transactionalId"
)
TIME: Final = "2025-06-02 12:00:00,000"  # noon, as the factories have it


def fatal(transactional_id: str = "pay-1", *, at: str = TIME, client_id: str = "p-1") -> str:
    """Return the line with which a Java producer says that it is fenced."""
    of = f"[Producer clientId={client_id}, transactionalId={transactional_id}]"
    return f"{at} INFO {of} Transiting to fatal error state due to {FENCED}"


def retried(topic: str = "orders", partition: int = 3, *, at: str = TIME) -> str:
    """Return the line of a Java producer whose batch was rejected, and is sent again."""
    place = f"on topic-partition {topic}-{partition}, retrying (9 attempts left)"
    said = f"Got error produce response with correlation id 7 {place}. Error: OUT_OF_ORDER_SEQUENCE_NUMBER"
    return f"{at} WARN [Producer clientId=p-1] {said}"


def broker_side(producer_id: int = 2001, *, at: str = TIME) -> str:
    """Return a line that names a producer id and its epoch."""
    said = f"Failed to send: producer id {producer_id} and producer epoch 3 for partition orders-3"
    return f"{at} ERROR {said}: {ERRORS}InvalidProducerEpochException: old epoch"


def errors_in(text: str) -> list[ApplicationError]:
    """Return the errors in lines."""
    reader = Reader("app.log")
    events = [*reader.feed_all(text.encode().split(b"\n")), *reader.close()]
    return [event for event in events if isinstance(event, ApplicationError)]


def problem(
    text: str,
    application: str | None = "payments",
    *,
    received_at: datetime = NOON,
    is_of_many: bool = False,
) -> Problem:
    """Return the problem of the errors in lines, which are the same."""
    made: Problem | None = None
    for event in errors_in(text):
        names = replace(event.names, application=event.names.application or application)
        judged = judge(replace(event, names=names))
        assert judged is not None, text
        occurrence = Occurrence(judged=judged, received_at=received_at, delivery=None)
        made = with_occurrence(made, occurrence, is_of_many=is_of_many)
    assert made is not None, text
    return made
