"""When the last act is satisfied: all that was sent arrived, once, in order, and holds now."""

from __future__ import annotations

from typing import Any

import pytest

from service.sandbox.demo.pager_act import PagerRecord, describe_arrivals
from tests.unit.service.cli.api_rows import alert, delivery

A, B = "a" * 16, "b" * 16


def request(
    number: int, webhook_id: str, *alerts: tuple[str, str], **overrides: Any
) -> dict[str, Any]:
    row = {
        "number": number,
        "at": "2025-06-02T12:00:01.5+00:00",
        "webhook_id": webhook_id,
        "attempt": 1,
        "signature": "verified",
        "answered": 200,
        "title": "[FIRING:1] x",
        "reason": "first notification",
        "group_key": "g",
        "body": {
            "alerts": [
                {
                    "fingerprint": name,
                    "status": status,
                    "labels": {"topic": "orders", "partition": "0"},
                }
                for name, status in alerts
            ]
        },
    }
    return {**row, **overrides}


def sent(number: int, webhook_id: str, state: str = "delivered") -> dict[str, Any]:
    return delivery(id=number, webhook_id=webhook_id, state=state, group_key="g")


GOT = (
    request(1, "x", (A, "firing"), answered=500),
    request(2, "x", (A, "firing"), attempt=2),
    request(3, "y", (A, "resolved"), (B, "firing")),
)
DELIVERIES = (sent(1, "x"), sent(2, "y"))
ALERTS = (alert(fingerprint=A, state="resolved"), alert(fingerprint=B))


def pager(**overrides: Any) -> PagerRecord:
    fields: dict[str, Any] = {"got": GOT, "deliveries": DELIVERIES, "alerts": ALERTS}
    return PagerRecord(**{**fields, **overrides})


def test_all_that_was_sent_is_told_in_order() -> None:
    assert list(pager().errors()) == []
    lines = describe_arrivals(pager()).splitlines()
    assert lines[0] == (
        "2 notifications of 1 group, each taken once, in order, all signed; "
        "1 request rejected on purpose, and sent again"
    )
    assert [line.split()[:4] for line in lines[1:]] == [
        [number, "12:00:01", "UTC", webhook_id] for number, webhook_id in ("1x", "2x", "3y")
    ]
    assert lines[1].endswith("answered 500)")
    assert lines[2].endswith("[FIRING:1] x on orders-0 (first notification, attempt 2)")


@pytest.mark.parametrize(
    ("overrides", "error"),
    [
        ({"deliveries": [*DELIVERIES, sent(3, "z", "waiting")]}, "1 notification not done yet"),
        ({"deliveries": [*DELIVERIES, sent(3, "z")]}, "not what was sent"),
        ({"got": GOT[:2]}, "not what was sent"),
        ({"got": [GOT[2], GOT[1]]}, "in its order"),
        ({"got": [*GOT, GOT[2]]}, "taken twice"),
        ({"got": [*GOT[:2], {**GOT[2], "signature": "wrong"}]}, "not signed"),
        ({"alerts": ALERTS[:1]}, "what the pager was notified of is not what fires now"),
        ({"alerts": [alert(fingerprint=A), ALERTS[1]]}, "not what fires now"),
    ],
)
def test_what_is_missing_keeps_the_act_open(overrides: dict[str, Any], error: str) -> None:
    assert any(error in message for message in pager(**overrides).errors())


def test_what_is_muted_or_superseded_needs_not_arrive() -> None:
    muted = alert(fingerprint="c" * 16, inhibited_by=B)
    newer = sent(3, "z", "superseded")
    record = pager(alerts=[*ALERTS, muted], deliveries=[*DELIVERIES, newer])
    assert list(record.errors()) == []


def test_what_was_rejected_may_be_overtaken_by_its_end() -> None:
    got = (GOT[0], request(2, "y", (A, "resolved"), (B, "firing")))
    record = pager(got=got, deliveries=[sent(1, "x", "superseded"), sent(2, "y")])
    assert list(record.errors()) == []
    assert "1 request rejected on purpose, and overtaken by what was newer" in describe_arrivals(
        record
    )


def test_an_end_is_told_by_the_last_word_about_an_alert() -> None:
    assert pager().ends(A) == GOT[2]
    assert pager().ends(B) is None
    assert pager().ends("c" * 16) is None
