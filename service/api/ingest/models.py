"""What the routes that take something answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from service.api.core.models import Model


class Ingested(Model):
    """What came of log lines; it is stored."""

    lines: Annotated[int, Field(description="Lines that came")]
    events: Annotated[int, Field(description="What they tell of sequences and of lost records")]
    unparsed: Annotated[int, Field(description="Lines of these kinds that could not be read")]
