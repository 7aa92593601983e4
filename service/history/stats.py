"""How writing history goes: counts since the start of the process, and the latest state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStats:
    """Stats of history; times are aware, UTC."""

    is_written: bool = True  # the latest round that was tried is in the write-ahead
    is_stored: bool = True  # the folder took the latest hour that was tried
    series: int = 0  # of the latest round
    rounds: int = 0  # written
    lost_rounds: int = 0  # never written, or their hour could not be kept
    went_back: int = 0  # offsets that were lower than before, and gave no rate
    left_out: int = 0  # series of the latest round whose id another one has
    waiting_hours: int = 0  # segments that are not in the folder yet
    waiting_bytes: int = 0
    damaged: int = 0  # files that were set aside, or in which something was torn
    written_at: datetime | None = None  # the latest round that was written
    took_seconds: float | None = None  # to write it
