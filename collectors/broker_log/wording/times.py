"""When a line was written, by the clock and in the zone of the broker that wrote it.

Brokers write `[2026-11-21 11:56:40,159]` in their machine's own zone unless their log4j pattern says
otherwise; a runtime of containers may put a time of its own before that, which is second best.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from collectors.broker_log.wording.fields import compile_pattern

_PATTERN: Final = (
    r"(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d{1,9}))?"
    r"(?: ?(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w:-]))?"
)
_BRACKETED: Final = compile_pattern(rf"\[{_PATTERN}\]")
# Not in a zone of a name that we do not know, as in `[2026-11-21 11:56:40,159 CET]`.
_BARE: Final = compile_pattern(rf"(?<![\w.:-]){_PATTERN}(?![\w:]|[.,]\d| [A-Z]{{1,5}}\])")
HEAD: Final = 160  # characters of a line in which its time is, after what a shipper put first


def time_of(line: str, zone: tzinfo) -> datetime | None:
    """Return the time at the head of a line in UTC; None: there is none, or it is impossible.

    A time that names no zone is taken for one in `zone`; of the hour that summer time repeats, for
    the first.
    """
    head = line[:HEAD]
    match = _BRACKETED.search(head) or _BARE.search(head)
    return None if match is None else _instant(match, zone)


def _instant(match: re.Match[str], zone: tzinfo) -> datetime | None:
    fraction = (match["fraction"] or "0")[:6].ljust(6, "0")
    try:
        naive = datetime.fromisoformat(f"{match['date']}T{match['time']}.{fraction}")
        return naive.replace(tzinfo=_zone(match["offset"], zone)).astimezone(UTC)
    except (ValueError, OverflowError):  # the 31st of a short month; the year 1, farther east
        return None


def _zone(offset: str | None, declared: tzinfo) -> tzinfo:
    if offset is None:
        return declared
    if offset[0] not in "+-":
        return UTC
    sign = -1 if offset[0] == "-" else 1
    return timezone(sign * timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:])))


def zone_of(text: str) -> tzinfo:
    """Return a zone by its name (Europe/Berlin), or a fixed offset (+02:00); UTC needs no data.

    Raises:
        ValueError: this machine knows no such zone.
    """
    try:
        return _offset(text) or (UTC if text == "UTC" else ZoneInfo(text))
    except (ValueError, OSError, KeyError) as exc:  # also a folder of zones, or a path out of it
        raise ValueError("no time zone like Europe/Berlin or +02:00") from exc


def _offset(text: str) -> tzinfo | None:
    """Return a fixed offset, None if the text does not begin like one."""
    is_offset = text[:1] in ("+", "-")
    return datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo if is_offset else None
