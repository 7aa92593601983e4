"""One night: a day's samples and the states of before become states and baselines."""

from __future__ import annotations

from rules.baseline.blocks import BaselineBlock, DayBlock
from rules.baseline.civil import CivilDay
from rules.baseline.settings import NightSettings
from rules.baseline.state import StateBlock


def advance(
    states: StateBlock, day: DayBlock, calendar: CivilDay, settings: NightSettings
) -> tuple[StateBlock, BaselineBlock]:
    """Learn from one day; row i of the states is row i of the day.

    What comes out for a series depends on that series alone, bit for bit. Days that were left out since
    a state's last night count as days without data.

    Raises:
        ValueError: rows, shapes or the step do not fit; a state is of that day or later.
    """
    raise NotImplementedError
