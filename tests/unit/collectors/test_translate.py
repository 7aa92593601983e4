"""Kafka's codes and sentinels in our words."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from collectors.naming import counted, listed
from collectors.translate import failure_of, present, timestamp_of, topic_id_of
from rules.facts.gap import GapCause
from tests.factories import broker


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (ErrorCode.unknown_topic_or_partition, GapCause.GONE),
        (ErrorCode.leader_not_available, GapCause.NO_LEADER),
        (ErrorCode.not_leader_or_follower, GapCause.LEADER_CHANGING),
        (ErrorCode.fenced_leader_epoch, GapCause.LEADER_CHANGING),
        (ErrorCode.unknown_leader_epoch, GapCause.LEADER_CHANGING),
        (ErrorCode.offset_not_available, GapCause.LEADER_CHANGING),
        (ErrorCode.request_timed_out, GapCause.TIMEOUT),
        (ErrorCode.coordinator_load_in_progress, GapCause.COORDINATOR_MOVING),
        (ErrorCode.coordinator_not_available, GapCause.COORDINATOR_MOVING),
        (ErrorCode.not_coordinator, GapCause.COORDINATOR_MOVING),
        (ErrorCode.topic_authorization_failed, GapCause.NOT_AUTHORIZED),
        (ErrorCode.group_authorization_failed, GapCause.NOT_AUTHORIZED),
        (ErrorCode.cluster_authorization_failed, GapCause.NOT_AUTHORIZED),
        (ErrorCode.transactional_id_authorization_failed, GapCause.NOT_AUTHORIZED),
        (ErrorCode.transactional_id_not_found, GapCause.GONE),
        (ErrorCode.unsupported_version, GapCause.UNSUPPORTED),
        (ErrorCode.group_id_not_found, GapCause.GONE),
        (ErrorCode.unknown_topic_id, GapCause.GONE),
        (ErrorCode.offset_out_of_range, GapCause.GONE),
        (ErrorCode.kafka_storage_error, GapCause.BROKER_ERROR),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else "",
)
def test_an_error_code_becomes_a_cause_and_keeps_its_name(code: ErrorCode, cause: GapCause) -> None:
    failure = failure_of(int(code), broker(2))
    assert failure.cause is cause
    assert failure.why.startswith(f"{code.name.upper()} from broker 2 (127.0.0.1:9092)")


def test_a_hint_says_what_would_help() -> None:
    assert failure_of(29, "OffsetFetch", needs="DESCRIBE on Topic a").why == (
        "TOPIC_AUTHORIZATION_FAILED from OffsetFetch: needs DESCRIBE on Topic a"
    )


def test_a_code_of_a_newer_broker_is_still_told() -> None:
    assert failure_of(31999, "X").why == "error 31999 from X"


def test_a_topic_id_reads_as_kafkas_own_tools_write_it() -> None:
    uuid = UUID(bytes=bytes(range(246, 256)) + bytes(6))
    assert topic_id_of(uuid) == "9vf4-fr7_P3-_wAAAAAAAA"
    assert topic_id_of(UUID(int=0)) is None
    assert topic_id_of(None) is None


@pytest.mark.parametrize(("value", "expected"), [(-1, None), (-2, None), (0, 0), (7, 7)])
def test_a_sentinel_is_absent(value: int, expected: int | None) -> None:
    assert present(value) == expected


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b, c"),
        (["a", "b", "c", "d"], "a, b, c and 1 more"),
    ],
)
def test_many_names_are_cut_and_counted(names: list[str], told: str) -> None:
    assert listed(names) == told


def test_counts_speak_english() -> None:
    counts = [counted(0, "group"), counted(1, "group"), counted(12345, "partition")]
    assert counts == ["0 groups", "1 group", "12,345 partitions"]


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (-1, None),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1_748_865_600_001, datetime(2025, 6, 2, 12, 0, 0, 1000, tzinfo=UTC)),
        (253_402_300_800_000, None),  # the year 10000
        (2**63 - 1, None),
    ],
)
def test_a_time_that_no_calendar_knows_is_absent(
    milliseconds: int, expected: datetime | None
) -> None:
    assert timestamp_of(milliseconds) == expected
