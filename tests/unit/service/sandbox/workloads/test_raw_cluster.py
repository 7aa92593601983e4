"""Rejections that pass and rejections that do not."""

from __future__ import annotations

import pytest

from service.sandbox.workloads.raw_cluster import RejectedError, patiently, require

NOT_COORDINATOR = 16
FENCED = 90


def test_a_rejection_has_kafkas_name() -> None:
    require("it", 0)
    with pytest.raises(RejectedError, match="it: PRODUCER_FENCED") as rejected:
        require("it", FENCED)
    assert rejected.value.error == "PRODUCER_FENCED"


def test_what_passes_is_tried_again() -> None:
    codes = [NOT_COORDINATOR, 0]

    def act() -> str:
        require("it", codes.pop(0))
        return "done"

    assert patiently(act, seconds=5) == "done"
    assert codes == []


def test_a_permanent_rejection_is_raised_at_once() -> None:
    codes = [FENCED, 0]
    with pytest.raises(RejectedError, match="PRODUCER_FENCED"):
        patiently(lambda: require("it", codes.pop(0)))
    assert codes == [0]


def test_the_last_rejection_is_raised_after_the_timeout() -> None:
    with pytest.raises(RejectedError, match="NOT_COORDINATOR"):
        patiently(lambda: require("it", NOT_COORDINATOR), seconds=0)
