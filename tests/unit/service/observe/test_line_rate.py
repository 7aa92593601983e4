"""Balances of lines: of each sender and of all, and how long one who overdrew has to wait."""

from __future__ import annotations

from service.observe.line_rate import MAX_SENDERS, LineRate, RateLimits


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def rate(of_all: int = 600, of_sender: int = 300) -> tuple[LineRate, Clock]:
    clock = Clock()
    return LineRate(RateLimits(of_all=of_all, of_sender=of_sender), clock), clock


def test_a_sender_waits_until_its_balance_is_positive_and_is_then_admitted() -> None:
    made, clock = rate()
    assert made.admit("a", 350) == 0, "what is larger than the limit comes through, once"
    wait = made.admit("a", 1)
    assert wait == 11, "50 lines too many, and one to be positive, at 5 a second"
    clock.seconds = wait - 1
    assert made.admit("a", 1) > 0
    clock.seconds = wait
    assert made.admit("a", 1) == 0


def test_one_sender_leaves_room_for_others_until_all_together_sent_too_much() -> None:
    made, _ = rate()
    assert made.admit("a", 300) == 0
    assert made.admit("a", 1) > 0
    assert made.admit("b", 300) == 0
    assert made.admit("c", 1) > 0, "of all: 600"


def test_what_was_not_admitted_takes_nothing_and_a_balance_never_exceeds_a_minute() -> None:
    made, clock = rate()
    made.admit("a", 300)
    for _ in range(100):
        made.admit("a", 300)
    clock.seconds = 3600
    assert made.admit("a", 300) == 0
    assert made.admit("a", 1) > 0


def test_senders_without_end_cost_no_memory_without_end() -> None:
    made, _ = rate(of_all=10**9)
    for number in range(3 * MAX_SENDERS):
        assert made.admit(str(number), 1) == 0
    assert len(made._senders) == MAX_SENDERS  # noqa: SLF001 - what is tested
