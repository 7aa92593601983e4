"""The base of every group of settings."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Group(BaseModel):
    """A group of settings: frozen, and with unknown keys rejected."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
