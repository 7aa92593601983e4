"""What producers' own metrics add to a suspicion, and the suspicions that begin with them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.scraped import client_reading, counted, rise
from tests.unit.rules.suspicion.counted import (
    CHANGED,
    ELSEWHERE,
    LATE,
    QUIET,
    ROSE,
    errors,
    only,
    play,
    seen,
)


def client(errors: int, retries: int, topic: str | None = "orders") -> Any:
    return client_reading(
        topic=topic, errors=counted(rise(0, 14, errors)), retries=counted(rise(0, 14, retries))
    )


CLIENTS: Final[dict[str, tuple[list[dict[str, Any]], tuple[str, int, str] | None]]] = {
    "retries-alone": ([seen(clients=[client(0, 5)]), seen(clients=[client(0, 5)])], None),
    "retries-over-a-clean-change": (
        [seen(), seen(clients=[client(0, 5)], epochs=[1], ends=((0, 0, 100),))],
        None,
    ),
    "retries-over-a-change-of-unknown-kind": (
        [
            seen(isr=(1,), allowed=True),
            seen(clients=[client(0, 5)], ends=((0, 0, 100),), end=103, **CHANGED),
        ],
        None,
    ),
    "errors-over-a-change-of-unknown-kind": (
        [
            seen(isr=(1,), allowed=True),
            seen(clients=[client(2, 5)], ends=((0, 0, 100),), end=103, **CHANGED),
        ],
        ("record-error", 2, "leader_changed"),
    ),
    "retries-over-a-loss": (
        [
            seen(isr=(1,), allowed=True),
            seen(clients=[client(0, 5)], ends=((0, 0, 73),), **CHANGED),
        ],
        ("record-retry", 5, "loss_reported"),
    ),
    "another-topic": (
        [
            seen(isr=(1,), allowed=True),
            seen(clients=[client(2, 5, "stock")], ends=((0, 0, 73),), **CHANGED),
        ],
        None,
    ),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_clients_counters_count_where_a_change_was_not_clean(name: str) -> None:
    rounds, expected = CLIENTS[name]
    views = play(*({**one, "brokers": ELSEWHERE} for one in (*rounds, rounds[-1])))
    found_ones = [
        (one.error, one.count, str(one.outcome)) for one in views[-1].memory.suspicions.open
    ]
    assert found_ones == ([] if expected is None else [expected])


def test_clients_and_other_errors_of_that_time_stand_beside_it() -> None:
    fenced = errors((0, 14, 3), error="INVALID_PRODUCER_EPOCH")
    suspicion = only(
        play(seen(QUIET, **LATE), seen(ROSE, fenced, clients=[client(0, 5)], **LATE))[-1]
    )
    assert suspicion.hints == {"INVALID_PRODUCER_EPOCH": 3}
    [rising] = suspicion.clients
    assert (rising.client_id, rising.topic, rising.errors, rising.retries) == (
        "payments",
        "orders",
        0,
        5,
    )
