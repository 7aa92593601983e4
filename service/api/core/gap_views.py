"""A gap of the last observation as the API shows it: what was not seen, why, and what that makes unknown."""

from __future__ import annotations

from rules.facts.gap import Gap
from rules.facts.gap_words import EXPLANATIONS, MAKES_UNKNOWN, gap_key
from service.api.core import models
from service.rounds.latest import ServiceState
from service.views.snapshot_rows import gap_row


def gap_of(state: ServiceState, gap: Gap) -> models.Gap:
    """Return a gap with its explanation, and since when every observation has had it."""
    return models.Gap(
        **gap_row(gap),
        explanation=EXPLANATIONS[gap.cause],
        makes_unknown=MAKES_UNKNOWN[gap.scope],
        since=state.gaps_since.get(gap_key(gap)),
    )
