"""The record of a night's run."""

from __future__ import annotations

from datetime import date

import pytest

from rules.baseline.baseline_run import BaselineRun, BucketRun


def run() -> BaselineRun:
    one = BucketRun(bucket=0, rows=3, digest="a", state_digest="b", outcomes={"banded": 3})
    return BaselineRun(id="x", day=date(2026, 1, 1), zone="UTC", previous=None, buckets=(one,))


def test_a_record_is_read_as_it_was_written() -> None:
    assert BaselineRun.from_json(run().to_json()) == run()


@pytest.mark.parametrize(
    "text",
    ["", "{}", run().to_json()[:-30], run().to_json().replace('"rows": 3', '"rows": 4')],
    ids=["empty", "nothing in it", "torn", "sums that do not fit"],
)
def test_a_record_that_is_not_whole_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        BaselineRun.from_json(text)
