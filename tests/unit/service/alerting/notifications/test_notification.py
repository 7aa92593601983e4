"""What is told, as a value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from service.alerting.notifications.notification import Status, common, json_bytes, timestamp
from tests.factories import at
from tests.unit.service.alerting.notifications.given import alert, notification


def test_a_group_fires_as_long_as_one_alert_does() -> None:
    assert notification(alert(0, ended=5), alert(1)).status is Status.FIRING
    assert notification(alert(0, ended=5)).status is Status.RESOLVED


def test_what_goes_on_comes_before_what_is_over() -> None:
    first, second, third = alert(0, ended=5), alert(1), alert(2)
    assert notification(first, second, third).most_urgent_first == (second, third, first)


def test_only_what_all_alerts_share_is_common() -> None:
    told = notification()
    assert "partition" not in told.common_labels
    assert told.common_labels["topic"] == "orders"
    assert set(told.common_annotations) == {"summary", "reason", "open_span"}
    assert common([]) == {}


def test_a_notification_without_alerts_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one alert"):
        notification(alerts=())


def test_times_without_a_zone_are_rejected() -> None:
    naive = at(0).replace(tzinfo=None)
    with pytest.raises(ValueError, match="time zone"):
        alert(starts_at=naive)
    with pytest.raises(ValueError, match="time zone"):
        alert(ends_at=naive)


@pytest.mark.parametrize(
    ("at_", "text"),
    [
        (at(0), "2025-06-02T12:00:00Z"),
        (at(0.25), "2025-06-02T12:00:00.25Z"),
        (at(0.000001), "2025-06-02T12:00:00.000001Z"),
        (
            datetime(2025, 6, 2, 14, 0, tzinfo=timezone(timedelta(hours=2))),
            "2025-06-02T12:00:00Z",
        ),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_printed_as_go_prints_them(at_: datetime, text: str) -> None:
    assert timestamp(at_) == text


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert json_bytes({"a": "x\ud800y"}) == b'{"a":"x?y"}'
