"""What live scoring says to the rules of a round: what is open, and the last step that was judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from rules.baseline.live_series import StepVerdict
from rules.baseline.open_series import OpenSeries
from rules.facts.times import EPOCH


class ScoringState(StrEnum):
    """Whether anything is judged."""

    OFF = "off"  # no history is kept, or no baseline run is in force: nothing is judged
    STARTING = "starting"  # nothing was judged yet: the baselines are being loaded
    JUDGED = "judged"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnusualValues:
    """What is unusual as of the last step that was judged."""

    state: ScoringState = ScoringState.OFF
    step: StepVerdict | None = None  # there is one when something was judged
    open: OpenSeries = field(default_factory=OpenSeries.none)  # as last known, also at the start
    valid_for: timedelta = timedelta(0)  # after the step began

    def is_current(self, now: datetime) -> bool:
        """Whether the last step is recent; a clock that was set back makes it none."""
        if self.step is None:
            return False
        age = now - (EPOCH + timedelta(milliseconds=self.step.start_ms))
        return -self.valid_for <= age <= self.valid_for
