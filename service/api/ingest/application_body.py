"""How the endpoint of applications' logs reads a request.

A record of a shipper is a line with fields around it. A record that an application wrote as JSON has its stack trace,
its level or its logger in fields of its own, and is read as a whole.
"""

from __future__ import annotations

import json
from typing import Final

from service.api.ingest.body import FILE_FIELDS, UNNAMED, Fields, Reading, first_name, line_of
from service.api.ingest.query import ApplicationQuery
from service.observe.log_submissions import Stream

MAX_APPLICATIONS: Final = 1_000  # files of applications in one request: a node has many
APPLICATION_FIELDS: Final = (
    "application", "app", "service", "service_name", "service.name", "container", "container_name", "pod", "job",
    "source", "host", "instance",
)  # fmt: skip
# Of Fluent Bit's filter and Vector's source for Kubernetes, and of ECS.
NESTED: Final = (
    ("service", ("name",)),
    ("kubernetes", ("container_name", "pod_name")),
    ("container", ("name",)),
    ("host", ("name",)),
)
# What only an application's own JSON has, by its first word: flat ones have dots.
OWN_FIELDS: Final = frozenset({
    "stack_trace", "stackTrace", "stacktrace", "exception", "exc_info", "error", "thrown", "throwable", "err", "stack",
    "full_message", "level", "severity", "levelname", "log_level", "logger", "logger_name", "loggerName", "thread_name",
    "short_message", "textPayload", "jsonPayload", "@message",
})  # fmt: skip


def application_reading(query: ApplicationQuery) -> Reading:
    """Return how requests with a query are read."""
    return Reading(query, lambda fields: _stream(query, fields), _text, MAX_APPLICATIONS)


def _stream(query: ApplicationQuery, fields: Fields) -> Stream:
    return Stream(
        source=query.application or _application(fields) or UNNAMED,
        file=first_name(fields, FILE_FIELDS),
    )


def _application(fields: Fields) -> str | None:
    for outer, names in NESTED:
        inner = fields.get(outer)
        name = first_name(inner, names) if isinstance(inner, dict) else None
        if name is not None:
            return name
    return first_name(fields, APPLICATION_FIELDS)


def _text(record: Fields) -> str:
    """Return the line of a record of a shipper, or a whole record as one line."""
    is_own = any(name.partition(".")[0] in OWN_FIELDS or name == "log.level" for name in record)
    try:
        line = line_of(record)
    except ValueError:
        return json.dumps(record)
    return json.dumps(record) if is_own else line
