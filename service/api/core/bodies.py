"""Base and field types of requests: unknown fields and unstorable text are rejected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from service.alerting.alerts.matchers import LONGEST_TEXT
from service.alerting.alerts.silences import LONGEST_COMMENT

FIRST_YEAR: Final = 2000
LAST_YEAR: Final = 9000  # some calendars end, and times in other zones lie beyond
LINES: Final = "\n\r\t"
_YEARS: Final = {"first": FIRST_YEAR, "last": LAST_YEAR}


class Body(BaseModel):
    """Base of all request bodies and queries."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def no_controls(text: str) -> str:
    """Reject control characters: PostgreSQL stores no NUL, and a terminal interprets the others."""
    if any(not character.isprintable() and character not in LINES for character in text):
        raise PydanticCustomError("text", "control characters are not allowed")
    return text


def _require_text(text: str) -> str:
    stripped = text.strip()
    if not stripped:
        raise PydanticCustomError("blank", "must not be blank: others will read it")
    return stripped


def _in_utc(timestamp: datetime) -> datetime:
    if not FIRST_YEAR <= timestamp.year < LAST_YEAR:
        raise PydanticCustomError("year", "a year from {first} on, before {last}", _YEARS)
    return timestamp.astimezone(UTC)


Remark = Annotated[str, Field(max_length=LONGEST_COMMENT), AfterValidator(no_controls)]
Why = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_COMMENT),
    AfterValidator(no_controls),
    AfterValidator(_require_text),
]
MatcherText = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_TEXT,
        description="As amtool writes them, all of which have to match",
        examples=['topic="orders", severity=~"warning|info"'],
    ),
    AfterValidator(no_controls),
]
Timestamp = Annotated[AwareDatetime, AfterValidator(_in_utc)]
