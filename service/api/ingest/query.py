"""Query parameters of submissions of log lines."""

from __future__ import annotations

from datetime import tzinfo
from typing import Annotated, Final

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from collectors.broker_log.wording.times import zone_of
from service.api.core.queries import NoQuery

MAX_NAME: Final = 200  # characters of a source
MAX_BROKER_ID: Final = 2**31 - 1


def is_name(text: str) -> bool:
    """Return whether a text may name a source."""
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


class TimeZoneQuery(NoQuery):
    """The zone of the lines' times."""

    time_zone: Annotated[
        str, AfterValidator(_in_zone), Field(max_length=100, examples=["Europe/Berlin"])
    ] = "UTC"
    """Zone of times without one, as in Kafka's log lines: an IANA name or an offset"""

    @property
    def zone(self) -> tzinfo:
        """Return the zone of the lines' times."""
        return zone_of(self.time_zone)


class IngestQuery(TimeZoneQuery):
    """Origin of the log lines; records may name what is not given here."""

    source: Annotated[str | None, AfterValidator(_named), Field(examples=["broker-1"])] = None
    """Source of the lines, one per broker. Default: the one that a record names, else its broker"""
    broker_id: Annotated[int | None, Field(ge=0, le=MAX_BROKER_ID)] = None
    """The broker, where lines do not name it"""


class ApplicationQuery(TimeZoneQuery):
    """Origin of the log lines of an application; records may name what is not given here."""

    application: Annotated[str | None, AfterValidator(_named), Field(examples=["payments"])] = None
    """Name of the application. Default: the one that a line or a record names"""
