"""Answers of the routes that ingest log lines."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.core.models import Model


class Ingested(Model):
    """Counts of the log lines that were stored."""

    lines: Annotated[int, Field(description="Received lines")]
    events: Annotated[int, Field(description="Parsed events about sequences and lost records")]
    unparsed: Annotated[int, Field(description="Lines about them that could not be parsed")]
