"""How the endpoint of brokers' logs reads a request: parameters hold for all lines, else a record names its source."""

from __future__ import annotations

from typing import Final

from rules.facts.identity import BrokerId
from service.api.ingest.body import FILE_FIELDS, UNNAMED, Fields, Reading, first_name, line_of
from service.api.ingest.query import MAX_BROKER_ID, IngestQuery
from service.observe.log_submissions import Stream

SOURCE_FIELDS: Final = ("source", "pod")  # before the host, which may be a node with many pods
HOST_FIELDS: Final = ("host", "instance")


def broker_reading(query: IngestQuery) -> Reading:
    """Return how requests with a query are read."""
    return Reading(query, lambda fields: _stream(query, fields), line_of)


def _stream(query: IngestQuery, fields: Fields) -> Stream:
    broker_id = query.broker_id if query.broker_id is not None else _broker_id(fields)
    unnamed = UNNAMED if broker_id is None else f"broker-{broker_id}"
    return Stream(
        source=query.source or _source(fields) or unnamed,
        broker_id=None if broker_id is None else BrokerId(broker_id),
        file=first_name(fields, FILE_FIELDS),
    )


def _source(fields: Fields) -> str | None:
    about_pod = fields.get("kubernetes")  # by Fluent Bit's filter and Vector's source
    pod = first_name(about_pod, ("pod_name",)) if isinstance(about_pod, dict) else None
    return first_name(fields, SOURCE_FIELDS) or pod or first_name(fields, HOST_FIELDS)


def _broker_id(fields: Fields) -> int | None:
    value = fields.get("broker_id")
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_BROKER_ID:
        raise ValueError("broker_id is not a valid broker id")
    return value
