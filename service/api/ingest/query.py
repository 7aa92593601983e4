"""What a request that brings log lines says of them beside its body."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from collectors.broker_log.zones import zone_of
from service.api.core.queries import NoQuery

MAX_NAME: Final = 200  # characters of a source
MAX_BROKER_ID: Final = 2**31 - 1


def is_name(text: str) -> bool:
    """Tell whether a text may name a source."""
    return 0 < len(text) <= MAX_NAME and text.isprintable() and not text.isspace()


def _named(text: str) -> str:
    if not is_name(text):
        raise PydanticCustomError("name", "a source is printable and has 1 to 200 characters")
    return text


def _in_zone(text: str) -> str:
    try:
        zone_of(text)
    except ValueError as exc:
        raise PydanticCustomError("zone", str(exc)) from exc
    return text


class IngestQuery(NoQuery):
    """Whose log lines these are; what is not given, records may tell themselves."""

    source: Annotated[
        str | None,
        AfterValidator(_named),
        Field(
            description="Name of where the lines come from, one per broker. Default: what a record "
            "tells, else its broker",
            examples=["broker-1"],
        ),
    ] = None
    broker_id: Annotated[
        int | None,
        Field(ge=0, le=MAX_BROKER_ID, description="The broker, where lines do not tell it"),
    ] = None
    time_zone: Annotated[
        str,
        AfterValidator(_in_zone),
        Field(
            max_length=100,
            description="Zone of times that name none, as Kafka's own do: an IANA name or an offset",
            examples=["Europe/Berlin"],
        ),
    ] = "UTC"

    @property
    def zone(self) -> tzinfo:
        """Return the zone of the lines' times."""
        return zone_of(self.time_zone)
