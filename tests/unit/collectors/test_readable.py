"""`nothing_to_read` from prepared Fetch answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from kio.schema.errors import ErrorCode

from collectors.readable import ReadableReader
from collectors.session import Session
from collectors.wire.api import FETCH
from rules.facts.gap import GapCause
from tests.factories import broker, commits, offsets, partitions
from tests.unit.collectors.fake_pool import FakePool, session_of
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part
from tests.unit.collectors.wire.records import Batch

ME = broker(1)
READ_DENIED = 29


def fetched(records: dict[int, bytes], *, error: int = 0) -> bytes:
    """Return a Fetch answer: partition of `orders` -> record batches."""
    data = part(FETCH, 12, "PartitionData")
    topic = part(FETCH, 12, "FetchableTopicResponse")
    entries = tuple(
        data(
            partition_index=number,
            error_code=ErrorCode(error),
            high_watermark=100,
            aborted_transactions=(),
            records=held,
        )
        for number, held in records.items()
    )
    return answer(
        FETCH,
        12,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(0),
        responses=(topic(topic="orders", partitions=entries),),
    )


def batch(base_offset: int, count: int) -> bytes:
    return Batch(base_offset=base_offset, last_delta=count - 1).encode()


def look(
    session: Session, *placed: tuple[int, int], reader: ReadableReader | None = None
) -> list[int | None]:
    """Judge commits given as (partition, committed offset); every LSO is 100."""
    found = (reader or ReadableReader()).collect(
        session,
        partitions(),
        offsets(),
        commits(*((0, row, committed) for row, committed in placed)),
        np.ones(len(placed), np.bool_),
    )
    return found.nothing_to_read.to_list()


def session_with(body: Any) -> Session:
    return session_of(ME, answers={(ME, FETCH): body})


def test_zero_lag_is_true_without_asking() -> None:
    session = session_of(ME)
    assert look(session, (0, 100)) == [1]
    assert session.requests == {}


def test_data_behind_the_commit_is_something_to_read() -> None:
    session = session_with(fetched({0: batch(98, 2)}))
    assert look(session, (0, 98)) == [0]
    assert session.gaps == []


def test_ranges_that_come_back_empty_are_asked_alone_and_never_silently_unknown() -> None:
    session = session_with(fetched({0: batch(98, 2), 1: b""}))
    assert look(session, (0, 98), (1, 98)) == [0, None]
    [gap] = session.gaps
    assert (gap.cause, "orders-1" in gap.what) == (GapCause.LIMIT, True)
    assert session.requests["Fetch"] > 1


def test_missing_permission_is_unknown_with_a_gap_that_names_it() -> None:
    session = session_with(fetched({0: b""}, error=READ_DENIED))
    assert look(session, (0, 98)) == [None]
    assert "needs READ on Topic orders" in session.gaps[0].why


def test_partition_that_was_not_asked_is_ignored() -> None:
    session = session_with(fetched({2: batch(98, 2)}))
    assert look(session, (0, 98)) == [None]


def test_answer_is_kept_while_commit_and_end_stay_the_same() -> None:
    reader = ReadableReader()
    assert look(session_with(fetched({0: batch(98, 2)})), (0, 98), reader=reader) == [0]
    silent = session_of(ME)
    assert look(silent, (0, 98), reader=reader) == [0]
    assert isinstance(silent.pool, FakePool)
    assert silent.pool.asked == {}


def test_later_rounds_ask_only_for_lags_that_have_not_moved() -> None:
    reader, body = ReadableReader(), fetched({0: batch(95, 5)})
    look(session_with(body), (0, 95), reader=reader)
    moved = session_with(body)
    assert look(moved, (0, 97), reader=reader) == [None]
    assert moved.requests == {}
    assert look(session_with(body), (0, 97), reader=reader) == [0]
