"""The base of models that the API answers and the command line prints; absent values are null.

Field names are a contract with scripts: they may be added to, never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from rules.facts.times import EPOCH, MICROSECOND

Row = dict[str, Any]


class Model(BaseModel):
    """Base of all answers; one whose fields are attributes of a value is made of that value.

    A description stands beside its type, a long one below it as the docstring of the field.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        validate_by_name=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def of(cls, value: object, **fields: object) -> Self:
        """Return the model of a value's attributes, with the fields that it does not have."""
        return cls.model_validate(_Attributes(value, fields))

    @classmethod
    def rows_of(cls, values: Iterable[object]) -> list[Row]:
        """Return the JSON documents of values by their attributes."""
        return [cls.of(value).to_row() for value in values]

    def to_row(self) -> Row:
        """Return the JSON document."""
        return self.model_dump(mode="json", by_alias=True)


class _Attributes:
    """The attributes of a value, after those of `fields`."""

    def __init__(self, value: object, fields: Mapping[str, object]) -> None:
        self._value = value
        self._fields = fields

    def __getattr__(self, name: str) -> object:
        return self._fields[name] if name in self._fields else getattr(self._value, name)


class PartitionName(Model):
    """A partition."""

    topic: str
    partition: int


class FindingState(StrEnum):
    """Whether a finding is still open."""

    OPEN = "open"
    ENDED = "ended"


Evidence = Annotated[
    dict[str, Any],
    Field(
        description="Numbers, words, and lists of both. Stored evidence may have been written by "
        "another version and have other names"
    ),
]


def _time_of(value: object) -> object:
    return EPOCH + value * MICROSECOND if isinstance(value, int) else value


def _milliseconds_of(value: object) -> object:
    return value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value


Timestamp = Annotated[datetime, BeforeValidator(_time_of)]  # of microseconds since 1970-01-01 UTC
Milliseconds = Annotated[int, BeforeValidator(_milliseconds_of)]
