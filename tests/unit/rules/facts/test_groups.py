"""Lags: what a group has still to read, by either isolation level."""

from __future__ import annotations

import pytest

from rules.facts.groups import Commits
from tests.factories import commits, offsets


@pytest.mark.parametrize(
    ("committed", "stable", "watermark", "read_committed", "read_uncommitted"),
    [
        pytest.param(100, 100, 100, 0, 0, id="read-to-the-end"),
        pytest.param(90, 100, 100, 10, 10, id="behind"),
        pytest.param(90, 95, 100, 5, 10, id="behind-an-open-transaction"),
        pytest.param(97, 95, 100, None, 3, id="reads-uncommitted-records"),
        pytest.param(101, 100, 100, None, None, id="above-the-high-watermark"),
        pytest.param(90, None, 100, None, 10, id="last-stable-offset-unseen"),
        pytest.param(90, 100, None, 10, None, id="high-watermark-unseen"),
    ],
)
def test_a_lag_is_true_or_absent_but_never_clamped(
    committed: int,
    stable: int | None,
    watermark: int | None,
    read_committed: int | None,
    read_uncommitted: int | None,
) -> None:
    ends = offsets(1, last_stable_offset=[stable], high_watermark=[watermark])
    unchanged = commits((0, 0, committed))
    assert unchanged.read_committed_lag(ends).to_list() == [read_committed]
    assert unchanged.read_uncommitted_lag(ends).to_list() == [read_uncommitted]


def test_an_absent_lag_leaves_no_negative_value_behind_its_mask() -> None:
    lag = commits((0, 0, 500)).read_uncommitted_lag(offsets(1))
    assert lag.values.tolist() == [0]


@pytest.mark.parametrize(
    ("reported", "read_committed", "read_uncommitted"),
    [
        pytest.param(4, 1, 4, id="without-what-is-acknowledged"),
        pytest.param(0, None, 0, id="acknowledged-above-the-last-stable-offset"),
        pytest.param(None, None, None, id="not-known-to-the-broker"),
    ],
)
def test_a_reported_lag_counts_and_not_the_start_offset(
    reported: int | None, read_committed: int | None, read_uncommitted: int | None
) -> None:
    ends = offsets(1, last_stable_offset=[97], high_watermark=[100])
    share = commits((0, 0, 90), reported_lag=[reported])
    assert share.read_committed_lag(ends).to_list() == [read_committed]
    assert share.read_uncommitted_lag(ends).to_list() == [read_uncommitted]


def test_every_commit_is_measured_against_its_own_partition() -> None:
    ends = offsets(3, last_stable_offset=[10, 20, 30], high_watermark=[11, 22, 33])
    unchanged = commits((0, 2, 5), (0, 0, 5), (1, 1, 5))
    assert unchanged.read_committed_lag(ends).to_list() == [25, 5, 15]
    assert unchanged.read_uncommitted_lag(ends).to_list() == [28, 6, 17]


def test_commits_above_the_high_watermark_are_named_by_position() -> None:
    ends = offsets(3, high_watermark=[100, 100, None])
    unchanged = commits((0, 0, 100), (0, 1, 101), (1, 0, 150), (1, 2, 999))
    assert unchanged.beyond_high_watermark(ends).tolist() == [1, 2]


def test_a_commit_between_both_ends_is_no_evidence_of_loss() -> None:
    ends = offsets(1, last_stable_offset=[50], high_watermark=[100])
    assert commits((0, 0, 70)).beyond_high_watermark(ends).tolist() == []


def test_no_commits_have_no_lags() -> None:
    nothing = Commits.none()
    assert len(nothing) == 0
    assert nothing.read_committed_lag(offsets()).to_list() == []
    assert nothing.beyond_high_watermark(offsets()).tolist() == []


def test_no_commits_can_be_measured_in_a_cluster_without_topics() -> None:
    assert Commits.none().read_uncommitted_lag(offsets(0)).to_list() == []
