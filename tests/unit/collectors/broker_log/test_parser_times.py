"""When a line was written, in any zone and in any form that log4j writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest

from collectors.broker_log.wording.times import time_of

EAST = timezone(timedelta(hours=1))


def at(hour: int, minute: int = 56, second: int = 40, *, microsecond: int = 159_000) -> datetime:
    return datetime(2026, 11, 21, hour, minute, second, microsecond, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("[2026-11-21 11:56:40,159] INFO", at(10)),
        ("[2026-11-21 11:56:40.159] INFO", at(10)),
        ("[2026-11-21T11:56:40,159] INFO", at(10)),
        ("[2026-11-21T11:56:40.159Z] INFO", at(11)),
        ("[2026-11-21T11:56:40.159+02:00] INFO", at(9)),
        ("[2026-11-21T11:56:40,159+0200] INFO", at(9)),
        ("[2026-11-21 11:56:40,159 -0330] INFO", at(15, 26)),
        ("[2026-11-21 11:56:40,159 UTC] INFO", at(11)),
        ("[2026-11-21 11:56:40,159 GMT] INFO", at(11)),
        ("[2026-11-21 11:56:40] INFO", at(10, microsecond=0)),
        ("[2026-11-21 11:56:40,159123456] INFO", at(10, microsecond=159_123)),
        ("[2026-11-21 11:56:40,5] INFO", at(10, microsecond=500_000)),
        ("2026-11-21 11:56:40,159 INFO", at(10)),
        ("2026-11-21T11:56:40.159Z INFO", at(11)),
        ("2026-11-21T11:56:40.159265430Z [2026-11-21 11:56:40,159] INFO", at(10)),
        ("2026-11-21T11:56:40.159Z 2026-11-21 09:00:00,000 INFO", at(11)),
        ("2026-11-21T11:56:40.159Z org.apache.kafka.common.errors", at(11)),
        ("\t  [2026-11-21 11:56:40,159] INFO", at(10)),
        ("kafka-1  | [2026-11-21 11:56:40,159] INFO", at(10)),
        ("[pod/kafka-1/kafka] 2026-11-21T11:56:40.159Z [x]", at(11)),
        ("2026-11-21 11:56:40,159 - INFO", at(10)),
    ],
)
def test_a_time_is_read_in_the_zone_that_it_names_else_in_the_declared_one(
    line: str, expected: datetime
) -> None:
    assert time_of(line, EAST) == expected
    assert time_of(line, EAST).utcoffset() == timedelta(0)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "INFO nothing",
        "[2026-02-30 11:56:40,159] a day that is none",
        "[2026-11-21 24:00:00,000] an hour that is none",
        "[2026-11-21 11:56:60,000] a second that is none",
        "[2026-13-21 11:56:40,159] a month that is none",
        "[0000-11-21 11:56:40,159] a year that is none",
        "[0001-01-01 00:00:00,000+14:00] before all time",
        "[9999-12-31 23:59:59,999-14:00] after all time",
        "[2026-11-21 11:56:40,159+99:00] a zone that is none",
        "[2026-11-21 11:56:40,159 CET] a zone by a name that says too little",
        "[2026-11-21 11:56] no seconds",
        "[21/Nov/2026:11:56:40 +0000] another program's",
        "12026-11-21 11:56:40,159 longer numbers",
        "x" * 160 + "[2026-11-21 11:56:40,159] too far in the line",
        "".join(chr(0x660 + int(c)) if c.isdigit() else c for c in "[2026-11-21 11:56:40,159]"),
    ],
)
def test_what_is_no_time_or_an_impossible_one_is_none(line: str) -> None:
    assert time_of(line, UTC) is None


@pytest.mark.parametrize(
    ("zone", "written", "expected"),
    [
        (ZoneInfo("Europe/Berlin"), "2026-07-01 12:00:00,000", "2026-07-01T10:00:00+00:00"),
        (ZoneInfo("Europe/Berlin"), "2026-12-01 12:00:00,000", "2026-12-01T11:00:00+00:00"),
        (ZoneInfo("Europe/Berlin"), "2026-10-25 02:30:00,000", "2026-10-25T00:30:00+00:00"),
        (ZoneInfo("Asia/Kolkata"), "2026-07-01 00:00:00,000", "2026-06-30T18:30:00+00:00"),
    ],
)
def test_summer_time_is_that_of_the_declared_zone(
    zone: tzinfo, written: str, expected: str
) -> None:
    told = time_of(f"[{written}] INFO", zone)
    assert told is not None
    assert told.isoformat() == expected
