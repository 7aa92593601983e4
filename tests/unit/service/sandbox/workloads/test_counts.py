"""Counts add up, and keep the last error of each kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from service.sandbox.workloads.counts import Counts, Tally


def test_every_total_is_summed() -> None:
    counts = Counts(
        sent=1,
        acknowledged=2,
        failed=3,
        consumed=4,
        transactions_committed=5,
        transactions_aborted=6,
        restarts=7,
    )
    assert counts + counts == Counts(
        sent=2,
        acknowledged=4,
        failed=6,
        consumed=8,
        transactions_committed=10,
        transactions_aborted=12,
        restarts=14,
    )


def test_a_later_error_replaces_an_earlier_one_and_silence_replaces_none() -> None:
    counts = Counts(last_error="first") + Counts(last_error="second") + Counts(sent=1)
    assert counts.last_error == "second"


def test_a_lost_connection_does_not_hide_an_error() -> None:
    counts = Counts(last_error="records lost") + Counts(last_connection_error="rejected")
    assert (counts.last_error, counts.last_connection_error) == ("records lost", "rejected")


def test_unreported_records_are_those_without_a_fate() -> None:
    assert Counts(sent=10, acknowledged=6, failed=1).unreported == 3


def test_a_tally_loses_nothing_between_threads() -> None:
    tally = Tally()
    with ThreadPoolExecutor(4) as threads:
        for _ in range(2000):
            threads.submit(tally.add, Counts(sent=1))
    assert tally.read().sent == 2000
