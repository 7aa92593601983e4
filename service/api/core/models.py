"""What the answers of all resources are made of; absent values are null, never 0 or -1."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rules.verdict import Verdict

ItemT = TypeVar("ItemT")


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


class VerdictWord(StrEnum):
    """The words of `rules.verdict.Verdict`."""

    OK = "ok"
    UNKNOWN = "unknown"
    BREACH = "breach"

    @classmethod
    def _missing_(cls, value: object) -> VerdictWord | None:
        return cls[value.name] if isinstance(value, Verdict) else None


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
NextCursor = Annotated[
    str | None, Field(description="Pass it as `cursor` to get the next page; null at the end")
]


class Stamped(Model):
    """An answer about the cluster."""

    as_of: datetime | None
    """When the data was read; null before the first round"""
    is_current: bool
    """False when the last round failed and older data is shown"""


class Paged(Stamped, Generic[ItemT]):
    """A page of a list."""

    # Each Paged[...] would be searched for docstrings that it cannot have: 0.7 s of each start.
    model_config = ConfigDict(use_attribute_docstrings=False)

    items: list[ItemT]
    next: NextCursor


class FieldProblem(Model):
    """A parameter that cannot be used."""

    field: str
    message: str


class Problem(Model):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: list[FieldProblem] | None = None
