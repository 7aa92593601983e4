"""What the service last saw and judged: one immutable value that everybody may read at any time.

Whoever shows something reads it once and stays with it; the next round replaces it whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from rules.facts.snapshot import Snapshot
from rules.judgement import Judgement
from rules.open_findings import Identity, OpenFinding
from service.keeping import KeepingStatus


class RoundOutcome(StrEnum):
    """How a round ended."""

    COMPLETE = "complete"
    GAPS = "gaps"  # something could not be seen
    FAILED = "failed"  # the cluster could not be asked at all


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Look:
    """The state of the service after a round, and before the first one."""

    cluster: str  # the configured name
    version: str  # of Tidemark
    started_at: datetime  # aware, UTC
    interval_seconds: float
    rounds: int = 0  # made since the start
    at: datetime | None = None  # when the last round began; None before the first
    outcome: RoundOutcome | None = None
    trouble: str | None = None  # why the last round failed, one line
    took_seconds: float | None = None  # the last round, judging and storing included
    snapshot: Snapshot | None = None  # of the last round that gave one
    judgements: tuple[Judgement, ...] = ()  # of the last round
    open_findings: Mapping[Identity, OpenFinding] = field(default_factory=dict)
    keeping: KeepingStatus = field(default_factory=KeepingStatus)
    restarts: Mapping[str, int] = field(default_factory=dict)  # task -> times it was restarted

    @property
    def is_current(self) -> bool:
        """Whether the snapshot is that of the last round."""
        return self.snapshot is not None and self.snapshot.taken_at == self.at


class Latest:
    """Holds the newest look; one writer, any number of readers."""

    def __init__(self, first: Look) -> None:
        self._look = first

    @property
    def look(self) -> Look:
        """Return the newest look."""
        return self._look

    def publish(self, look: Look) -> None:
        """Replace the look."""
        self._look = look
