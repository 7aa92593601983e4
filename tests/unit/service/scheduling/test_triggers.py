"""When jobs are due, through changes of the clock on the wall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from service.scheduling.triggers import MOST_COUNTED, Cron, Every, Passed, Trigger, latest, passed

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTLY = Cron(hour="2", minute="30", zone=BERLIN)
HOURLY = Cron(zone=BERLIN)
WEEKLY = Cron(hour="4", weekday="sun", zone=BERLIN)
TEN_MINUTES = Every(interval=timedelta(minutes=10))
SECOND = timedelta(seconds=1)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def dues(trigger: Trigger, after: str, count: int) -> list[str]:
    found, timestamp = [], utc(after)
    for _ in range(count):
        timestamp = trigger.after(timestamp)
        found.append(timestamp.strftime("%d %H:%M"))
    return found


@pytest.mark.parametrize(
    ("trigger", "after", "expected"),
    [
        (TEN_MINUTES, "2026-01-01 00:00", ["01 00:10", "01 00:20"]),
        (TEN_MINUTES, "2026-01-01 00:09:59.999999", ["01 00:10", "01 00:20"]),
        (NIGHTLY, "2026-01-01 01:30", ["02 01:30", "03 01:30"]),
        (NIGHTLY, "2026-03-27 12:00", ["28 01:30", "29 01:30", "30 00:30"]),  # 02:30 is left out
        (NIGHTLY, "2026-10-23 12:00", ["24 00:30", "25 00:30", "26 01:30"]),  # 02:30 comes twice
        (HOURLY, "2026-10-24 23:30", ["25 00:00", "25 01:00", "25 02:00"]),
        (HOURLY, "2026-03-29 00:00", ["29 01:00", "29 02:00"]),
        (WEEKLY, "2026-01-01 00:00", ["04 03:00", "11 03:00"]),
    ],
    ids=[
        "interval",
        "just before",
        "winter",
        "to summer",
        "to winter",
        "hours to winter",
        "hours to summer",
        "weekday",
    ],
)
def test_due_times_follow_the_clock_on_the_wall(
    trigger: Trigger, after: str, expected: list[str]
) -> None:
    assert dues(trigger, after, len(expected)) == expected


@pytest.mark.parametrize("trigger", [TEN_MINUTES, NIGHTLY, HOURLY, WEEKLY], ids=str)
def test_the_latest_due_time_is_the_one_before_the_next(trigger: Trigger) -> None:
    timestamp = utc("2026-03-27 00:00")
    for _ in range(20):
        following = trigger.after(timestamp)
        last = latest(trigger, following)
        assert last == following, "inclusive"
        assert latest(trigger, trigger.after(following) - SECOND) == following
        timestamp = following + SECOND


def test_what_passed_is_counted_without_its_beginning_and_with_its_end() -> None:
    noon = utc("2026-01-01 12:00")
    assert passed(TEN_MINUTES, noon, noon + timedelta(minutes=9)) is None
    hour = passed(TEN_MINUTES, noon, noon + timedelta(hours=1))
    assert hour == Passed(last=noon + timedelta(hours=1), times=6)
    assert passed(TEN_MINUTES, noon, noon) is None
    assert passed(TEN_MINUTES, noon, noon - timedelta(days=1)) is None, "the clock was set back"


def test_what_passed_in_years_is_not_counted_to_its_end() -> None:
    begin, end = utc("2006-01-01 12:00"), utc("2026-01-01 12:00")
    assert passed(TEN_MINUTES, begin, end) == Passed(last=end, times=MOST_COUNTED)
    found = passed(NIGHTLY, begin, end)
    assert found == Passed(last=utc("2026-01-01 01:30"), times=MOST_COUNTED)


@pytest.mark.parametrize("field", [{"hour": "25"}, {"weekday": "someday"}, {"minute": "x"}])
def test_a_field_that_cannot_be_read_is_rejected(field: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Cron(zone=BERLIN, **field)


def test_an_interval_of_nothing_is_rejected() -> None:
    with pytest.raises(ValueError, match="longer than zero"):
        Every(interval=timedelta(0))


def test_triggers_are_told_to_people() -> None:
    seconds = (3600, 600, 86_400, 5400, 7 * 86_400, 0.5)
    told = [str(Every(interval=timedelta(seconds=one))) for one in seconds]
    assert [*told, str(NIGHTLY), str(WEEKLY)] == [
        "every hour",
        "every 10 minutes",
        "every day",
        "every 90 minutes",
        "every week",
        "every 0.5 seconds",
        "at 02:30 (Europe/Berlin)",
        "cron 0 4 * * sun (Europe/Berlin)",
    ]
