"""Failed records and retries of clients as the API shows them; absent values are null, never 0."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from rules.facts.gap import GapCause
from rules.facts.scrapes import Counted, EndpointKind, EndpointState
from rules.record_errors.listing import ListedClient, ReadingState, RecordErrorList
from service.api.core.models import Paged
from service.api.core.queries import PageQuery, Pattern
from service.views.model import Model

RISES_SHOWN: Final = 10  # of a counter, the latest
ENDPOINTS_SHOWN: Final = 100


class RecordRise(Model):
    """A rise of a counter, which happened at some time between two observations."""

    since: datetime
    until: datetime
    count: int | None
    """null: the client exposes a rate alone"""


class RecordCounter(Model):
    """A counter of records of a client."""

    total: Annotated[int | None, Field(description="As exposed; null: only a rate is exposed")]
    increase: int | None
    """From `since` to `until`; null: it was observed once, or only a rate is exposed"""
    since: Annotated[datetime | None, Field(description="The observation before the last one")]
    until: Annotated[datetime, Field(description="The last observation that had it")]
    rate: Annotated[float | None, Field(description="Per second from `since` to `until`")]
    last_rise: Annotated[
        RecordRise | None, Field(description="null: there was none in the last 15 minutes")
    ]
    rises: list[RecordRise]
    """Of the last 15 minutes, the latest ten, newest first"""


class RecordErrors(Model):
    """Failed records and retries of a client for one topic."""

    cluster: str
    topic: Annotated[str | None, Field(description="null: the sum over the client's topics")]
    client_id: str
    address: Annotated[
        str, Field(description="Of the process; clients choose their ids themselves")
    ]
    endpoint: Annotated[str, Field(description="Where the numbers were read")]
    other_endpoints: list[str]
    """That report the same process; its numbers are not added up"""
    state: ReadingState
    """stale: its endpoint does not answer; gone: absent from two whole answers. Both are of `seen_at`"""
    seen_since: datetime
    seen_at: datetime
    last_rise_at: datetime | None
    """Of errors or retries; null: none was seen in the last 15 minutes"""
    errors: Annotated[
        RecordCounter | None,
        Field(description="Records that failed for good; null: the client does not report them"),
    ]
    retries: Annotated[
        RecordCounter | None,
        Field(description="Records that were sent again; null: the client does not report them"),
    ]


class EndpointError(Model):
    """Why something of an endpoint is missing."""

    cause: GapCause
    why: str


class IncompleteEndpoint(Model):
    """An endpoint whose clients may be missing, or have old numbers."""

    endpoint: Annotated[str, Field(validation_alias="name")]
    kind: EndpointKind
    answered_at: Annotated[datetime | None, Field(description="null: there was no answer yet")]
    errors: Annotated[list[EndpointError], Field(validation_alias="failures")]


class RecordErrorStatus(Model, use_attribute_docstrings=True):
    """Whether the list can be relied on."""

    is_read: bool
    """false: no endpoint of metrics is configured, so that nothing is known"""
    complete: Annotated[bool, Field(validation_alias="is_complete")]
    """false: clients may be missing, and an empty list says nothing; the endpoints below have why"""
    endpoint_count: int
    incomplete_endpoint_count: int
    incomplete_endpoints: list[IncompleteEndpoint]
    """The first 100"""
    endpoints_without_metrics: list[str]
    """They answer, with none of these metrics: of what runs there nothing is known; the first 100"""
    list_errors: Annotated[list[EndpointError], Field(validation_alias="list_failures")]
    """Why a list that names endpoints could not be read"""


class RecordErrorPage(RecordErrorStatus, Paged[RecordErrors], use_attribute_docstrings=True):
    """Clients by topic, client id and address."""


class RecordErrorQuery(PageQuery):
    """Which clients; those that are known to match are shown."""

    cluster: Pattern | None = None
    topic: Pattern | None = None
    """Clients that report only the sum over their topics match no topic"""
    client_id: Pattern | None = None
    failing: bool = False
    """Only clients whose errors or retries rose in the last 15 minutes"""


def record_errors(cluster: str, client: ListedClient) -> RecordErrors:
    """Return a client of the list."""
    reading = client.reading
    return RecordErrors.of(
        reading,
        cluster=cluster,
        state=client.state,
        other_endpoints=list(client.other_endpoints),
        last_rise_at=client.last_rise_at,
        errors=_counter(reading.errors, reading.seen_at),
        retries=_counter(reading.retries, reading.seen_at),
    )


def status_fields(entries: RecordErrorList) -> dict[str, object]:
    """Return the fields of a page that do not come from the list by their names."""
    shown = entries.incomplete_endpoints[:ENDPOINTS_SHOWN]
    return {
        "incomplete_endpoint_count": len(entries.incomplete_endpoints),
        "incomplete_endpoints": [_incomplete(endpoint) for endpoint in shown],
        "endpoints_without_metrics": list(entries.without_metrics[:ENDPOINTS_SHOWN]),
    }


def _incomplete(endpoint: EndpointState) -> IncompleteEndpoint:
    return IncompleteEndpoint.of(endpoint)


def _counter(counted: Counted | None, seen_at: datetime) -> RecordCounter | None:
    if counted is None:
        return None
    rises = [RecordRise.of(rise) for rise in reversed(counted.rises)]
    return RecordCounter.of(
        counted,
        until=seen_at,
        last_rise=rises[0] if rises else None,
        rises=rises[:RISES_SHOWN],
    )
