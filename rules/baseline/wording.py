"""Values of series and their usual ranges as text for a person."""

from __future__ import annotations

import calendar
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

UNITS: Final = {  # of a metric's values; other metrics have none
    "read_committed_lag": "offsets",
    "read_uncommitted_lag": "offsets",
    "read_committed_lag_seconds": "s",
    "read_uncommitted_lag_seconds": "s",
    "consume_rate": "offsets/s",
    "produce_rate": "offsets/s",
    "open_span": "offsets",
    "unreplicated_span": "offsets",
    "sequence_errors": "batches/s",
    "record_error_rate": "records/s",
    "client_record_error_rate": "records/s",
    "client_record_retry_rate": "records/s",
}
TO: Final = "\N{EN DASH}"
TIMES: Final = "\N{MULTIPLICATION SIGN}"
HALF_HOUR: Final = timedelta(minutes=30)
DAYS_PER_WEEK: Final = 7


def digits(value: float) -> str:
    """Return a number with three significant digits, or with all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def with_unit(number: str, metric: str) -> str:
    """Return a number with the unit of its metric."""
    unit = UNITS.get(metric, "")
    return f"{number} {unit}" if unit else number


def learnt_from(days: int) -> str:
    """Return the length of the data that was used, in weeks if they are whole."""
    if days > DAYS_PER_WEEK and days % DAYS_PER_WEEK == 0:
        return f"{days // DAYS_PER_WEEK} weeks"
    return "1 day" if days == 1 else f"{days} days"


def half_hour(at: datetime, zone: str) -> tuple[str, str, str]:
    """Return the weekday, the beginning and the end of a half hour on a zone's wall clock."""
    local = at.astimezone(ZoneInfo(zone))
    begins = local.replace(minute=local.minute // 30 * 30, second=0, microsecond=0, tzinfo=None)
    end = begins + HALF_HOUR
    last = "24:00" if end.date() > begins.date() else f"{end:%H:%M}"
    return calendar.day_name[local.weekday()], f"{begins:%H:%M}", last
