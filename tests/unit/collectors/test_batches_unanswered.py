"""Batch headers that leaders refuse or do not tell."""

from __future__ import annotations

from datetime import timedelta

import pytest

from collectors.wire.failure import Failure
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TopicPartition
from rules.question import BatchRequest
from tests.factories import NOON, offsets
from tests.unit.collectors.batch_logs import (
    NOT_LEADER,
    OUT_OF_RANGE,
    READ_DENIED,
    Logs,
    data,
    wanted,
)


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (READ_DENIED, GapCause.NOT_AUTHORIZED),
        (NOT_LEADER, GapCause.LEADER_CHANGING),
        (OUT_OF_RANGE, GapCause.GONE),
    ],
)
def test_what_a_leader_refuses_is_a_gap_and_costs_nothing_of_the_others(
    code: int, cause: GapCause
) -> None:
    logs = Logs({0: [data(0)], 1: [data(0)]}, errors={0: code})
    [found] = logs.observe(wanted(at=1, last=None), wanted(partition=1, at=1, last=None))
    assert found.name.partition == 1
    [gap] = logs.gaps
    assert (gap.scope, gap.cause, "orders-0" in gap.what) == (GapScope.BATCHES, cause, True)
    assert (gap.topic, gap.partition) == ("orders", 0)
    assert ("READ on Topic orders" in gap.why) is (code == READ_DENIED)


def test_a_silent_leader_is_a_gap() -> None:
    logs = Logs({0: [data(0)]})
    late = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")
    logs.respond = lambda *_: late  # type: ignore[method-assign]
    assert logs.observe(wanted(at=1, last=None)) == ()
    assert [gap.cause for gap in logs.gaps] == [GapCause.TIMEOUT]


@pytest.mark.parametrize("missing", ["leader_epoch", "high_watermark"])
def test_a_partition_that_gave_no_offsets_is_not_asked(missing: str) -> None:
    logs = Logs({0: [data(0)]})
    asked = wanted(at=1, last=None)
    assert logs.observe(asked, ends=offsets(3, **{missing: [None, 1, 1]})) == ()
    assert (logs.requests, logs.gaps) == ({}, [])


def test_a_topic_that_is_gone_is_not_asked_about() -> None:
    logs = Logs({0: [data(0)]})
    gone = BatchRequest(
        name=TopicPartition("gone", 0),
        producer_id=7,
        offset=None,
        sequence=None,
        last_record_at=NOON - timedelta(1),
    )
    assert (logs.observe(gone), logs.requests) == ((), {})
