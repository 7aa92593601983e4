"""When a receiver may be called again: the header `Retry-After`, in seconds or as a date.

Source: RFC 9110, 10.2.3.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

# A receiver that says "at once" while it fails would be called without a pause.
SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(hours=24)
_SECONDS: Final = re.compile("[0-9]{1,9}")


def not_before(header: str | None, now: datetime) -> datetime | None:
    """Return when to call again, between a second and a day from now; None without a header.

    A header that cannot be read counts as none.
    """
    if header is None:
        return None
    text = header.strip()
    wait = timedelta(seconds=int(text)) if _SECONDS.fullmatch(text) else _until(text, now)
    return None if wait is None else now + min(max(wait, SHORTEST), LONGEST)


def _until(text: str, now: datetime) -> timedelta | None:
    try:
        timestamp = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    aware = timestamp if timestamp.tzinfo is not None else timestamp.replace(tzinfo=UTC)
    return aware - now
