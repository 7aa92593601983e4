"""What the answers of all resources are made of; absent values are null, never 0 or -1."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Generic, TypeVar

from pydantic import ConfigDict, Field

from rules.verdict import Verdict
from service.views.model import Model

ItemT = TypeVar("ItemT")


class VerdictWord(StrEnum):
    """The words of `rules.verdict.Verdict`."""

    OK = "ok"
    UNKNOWN = "unknown"
    BREACH = "breach"

    @classmethod
    def _missing_(cls, value: object) -> VerdictWord | None:
        return cls[value.name] if isinstance(value, Verdict) else None


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
