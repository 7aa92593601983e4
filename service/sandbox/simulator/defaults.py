"""The defaults of a simulation; imports nothing heavy, because the help needs it."""

from __future__ import annotations

from typing import Final

# The first is where most live. Its clocks and those of the second are changed on different days.
ZONES: Final = ("Europe/Berlin", "America/New_York", "Asia/Tokyo")
STEPS: Final = tuple(step for step in range(5, 301) if 300 % step == 0)  # seconds
CLUSTER: Final = "simulated"
SERIES: Final = 300
WEEKS: Final = 8
