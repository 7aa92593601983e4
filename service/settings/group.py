"""What every group of settings is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """A group is frozen, and knows its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
