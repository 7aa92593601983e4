"""Values of options that click would let through, or does not know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from service.terminal.parameters import Duration, Timestamp, TimeZone

SUMMER = datetime(2026, 7, 1)  # noqa: DTZ001 - the zone is what is tested


@pytest.mark.parametrize(
    ("text", "hours"), [("UTC", 0), ("Europe/Berlin", 2), ("+05:30", 5.5), ("-03:00", -3)]
)
def test_a_zone_has_a_name_or_an_offset(text: str, hours: float) -> None:
    zone = TimeZone().convert(text, None, None)
    assert SUMMER.replace(tzinfo=zone).utcoffset() == timedelta(hours=hours)
    assert TimeZone().convert(zone, None, None) is zone


@pytest.mark.parametrize(
    "text",
    ["", "Europe", "Nowhere/City", "../../etc/passwd", "/etc/passwd", "+25:00", "+2", "a\0b", "-"],
)
def test_what_is_no_zone_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no time zone like Europe/Berlin"):
        TimeZone().convert(text, None, None)


def test_utc_needs_no_data_of_the_system() -> None:
    assert TimeZone().convert("UTC", None, None) is UTC


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2h", timedelta(hours=2)),
        ("90m", timedelta(minutes=90)),
        ("1d12h", timedelta(hours=36)),
        ("1w", timedelta(days=7)),
        ("45s", timedelta(seconds=45)),
    ],
)
def test_a_duration_is_written_as_amtool_takes_it(text: str, found: timedelta) -> None:
    assert Duration().convert(text, None, None) == found


def test_a_timestamp_keeps_its_zone() -> None:
    found = Timestamp().convert("2026-07-01T03:00:00+02:00", None, None)
    assert found == datetime(2026, 7, 1, 1, tzinfo=UTC)
