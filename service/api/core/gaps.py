"""A gap of the last observation as the API shows it: what was not seen, why, and what that makes unknown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from rules.facts import gap as facts
from rules.facts.gap_words import EXPLANATIONS, MAKES_UNKNOWN, gap_key
from service.rounds.latest import ServiceState
from service.views.cluster import SnapshotGap


class Gap(SnapshotGap):
    """Something that the last observation did not see, and why."""

    explanation: str
    """The cause in words, and whether it resolves by itself"""
    makes_unknown: Annotated[str, Field(description="What stays unknown while it lasts")]
    since: datetime | None
    """The first of the consecutive observations that had it"""


def gap_of(state: ServiceState, gap: facts.Gap) -> Gap:
    """Return a gap with its explanation, and since when every observation has had it."""
    return Gap.of(
        gap,
        explanation=EXPLANATIONS[gap.cause],
        makes_unknown=MAKES_UNKNOWN[gap.scope],
        since=state.gaps_since.get(gap_key(gap)),
    )
