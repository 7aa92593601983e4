"""The record of a night's run."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from rules.baseline.baseline_run import FORMER_FORMAT, BaselineRun, BucketRun


def run() -> BaselineRun:
    one = BucketRun(bucket=0, rows=3, digest="a", state_digest="b", outcomes={"banded": 3})
    return BaselineRun(id="x", day=date(2026, 1, 1), zone="UTC", previous=None, buckets=(one,))


def test_a_record_is_read_as_it_was_written() -> None:
    assert BaselineRun.from_json(run().to_json()) == run()


def test_a_record_of_the_format_before_is_read_and_stays_what_it_is() -> None:
    former = replace(run(), format=FORMER_FORMAT)
    assert BaselineRun.from_json(former.to_json()) == former
    with pytest.raises(ValueError, match="1 and 2 are supported"):
        BaselineRun.from_json(replace(run(), format=3).to_json())


@pytest.mark.parametrize(
    "text",
    ["", "{}", run().to_json()[:-30], run().to_json().replace('"rows": 3', '"rows": 4')],
    ids=["empty", "nothing in it", "torn", "sums that do not fit"],
)
def test_a_record_that_is_not_whole_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        BaselineRun.from_json(text)
