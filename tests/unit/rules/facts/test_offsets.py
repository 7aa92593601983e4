"""Spans between the offsets of a partition."""

from __future__ import annotations

from tests.factories import offsets, unknown_offsets


def test_the_open_span_is_what_transactions_hold_back() -> None:
    held = offsets(2, last_stable_offset=[40, 100], high_watermark=[100, 100])
    assert held.open_span.to_list() == [60, 0]


def test_the_unreplicated_span_is_what_only_the_leader_has() -> None:
    alone = offsets(2, high_watermark=[100, 100], log_end_offset=[130, 100])
    assert alone.unreplicated_span.to_list() == [30, 0]


def test_a_span_with_an_unseen_end_is_unknown_not_zero() -> None:
    partly = offsets(
        3,
        last_stable_offset=[None, 100, 100],
        high_watermark=[100, None, 100],
        log_end_offset=[100, 100, None],
    )
    assert partly.open_span.to_list() == [None, None, 0]
    assert partly.unreplicated_span.to_list() == [0, None, None]


def test_absent_offsets_have_a_row_per_partition_and_per_replica() -> None:
    nothing = unknown_offsets(2, 6)
    assert nothing.high_watermark.to_list() == [None, None]
    assert nothing.log_start_offset.to_list() == [None, None]
    assert len(nothing.replica_log_end_offsets) == 6
