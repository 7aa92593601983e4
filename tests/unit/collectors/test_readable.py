"""`nothing_to_read` from prepared Fetch answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from kio.schema.errors import ErrorCode

from collectors.readable import (
    MAX_QUERIED,
    MAX_SMALL,
    ReadableReader,
    ReadableRequest,
    readable_request,
)
from collectors.session import Session
from collectors.wire.api import FETCH
from collectors.wire.pool import Answer, Call
from rules.facts.commit_keys import CommitKeys
from rules.facts.commit_memory import CommitMemory, advance_commits
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits, GroupType
from rules.facts.offsets import Offsets
from rules.question import ReadableQuestion
from tests.factories import broker, commits, group, ints, offsets, partitions, snapshot
from tests.unit.collectors.fake_pool import FakePool, session_of
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, part
from tests.unit.collectors.wire.records import CONTROL, Batch

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


def scan(session: Session, *placed: tuple[int, int], **more: Any) -> list[int | None]:
    """Judge commits given as (partition, committed offset); every LSO is 100."""
    return scanned(session, *placed, **more).nothing_to_read.to_list()


def scanned(
    session: Session,
    *placed: tuple[int, int],
    reader: ReadableReader | None = None,
    asked: bool = False,
    ends: Offsets | None = None,
    remembered: CommitMemory | None = None,
) -> Commits:
    """Return the commits with what was found out about them."""
    every = np.ones(len(placed), np.bool_)
    names = tuple(f"group-{place}" for place in range(len(placed)))
    return (reader or ReadableReader()).collect(
        session,
        partitions({"orders": 3} if ends is None else {"orders": len(ends.high_watermark)}),
        ends or offsets(),
        commits(*((place, row, committed) for place, (row, committed) in enumerate(placed))),
        ReadableRequest(names, every, every & asked, remembered),
    )


def markers(*base_offsets: int) -> bytes:
    """Return control batches of one offset each: nothing that a reader would get."""
    return b"".join(
        Batch(base_offset=offset, attributes=CONTROL).encode() for offset in base_offsets
    )


def session_with(body: Any) -> Session:
    return session_of(ME, answers={(ME, FETCH): body})


def test_zero_lag_is_true_without_asking() -> None:
    session = session_of(ME)
    assert scan(session, (0, 100)) == [1]
    assert session.requests == {}


def test_data_behind_the_commit_is_something_to_read() -> None:
    session = session_with(fetched({0: batch(98, 2)}))
    assert scan(session, (0, 98)) == [0]
    assert session.gaps == []


def test_ranges_that_come_back_empty_are_asked_alone_and_never_silently_unknown() -> None:
    session = session_with(fetched({0: batch(98, 2), 1: b""}))
    assert scan(session, (0, 98), (1, 98)) == [0, None]
    [gap] = session.gaps
    assert (gap.cause, "orders-1" in gap.what) == (GapCause.LIMIT, True)
    assert gap.scope is GapScope.READABLE
    assert session.requests["Fetch"] > 1


def test_batches_larger_than_a_scan_are_fetched_some_together() -> None:
    """Ten of a leader in a scan, each alone: with batches of 16 KiB, 10,000 partitions took half an hour."""
    rows = 200
    bodies = [fetched(dict.fromkeys(range(rows), held)) for held in (b"", batch(98, 2))]

    class Empty(FakePool):
        def exchange(self, calls: Sequence[Call], **limits: Any) -> list[Answer]:
            body = bodies[bool(self.queries)]
            self.answers = {(ME.port, FETCH.name): body}
            return super().exchange(calls, **limits)

    session = session_of(ME)
    session.pool = Empty({})
    answers = scan(session, *((row, 98) for row in range(rows)), ends=offsets(rows))
    assert answers == [0] * rows
    assert session.requests["Fetch"] < 10


def test_missing_permission_is_unknown_with_a_gap_that_names_it() -> None:
    session = session_with(fetched({0: b""}, error=READ_DENIED))
    assert scan(session, (0, 98)) == [None]
    assert "needs READ on Topic orders" in session.gaps[0].why


def test_partition_that_was_not_asked_is_ignored() -> None:
    session = session_with(fetched({2: batch(98, 2)}))
    assert scan(session, (0, 98)) == [None]


def test_answer_is_kept_while_commit_and_end_stay_the_same() -> None:
    reader = ReadableReader()
    assert scan(session_with(fetched({0: batch(98, 2)})), (0, 98), reader=reader) == [0]
    silent = session_of(ME)
    assert scan(silent, (0, 98), reader=reader) == [0]
    assert isinstance(silent.pool, FakePool)
    assert silent.pool.queries == {}


def test_later_rounds_ask_only_for_lags_that_have_not_moved() -> None:
    reader, body = ReadableReader(), fetched({0: batch(95, 5)})
    scan(session_with(body), (0, 95), reader=reader)
    moved = session_with(body)
    assert scan(moved, (0, 97), reader=reader) == [None]
    assert moved.requests == {}
    assert scan(session_with(body), (0, 97), reader=reader) == [0]


def test_a_larger_lag_is_scanned_into_only_where_a_rule_asks() -> None:
    body = fetched({0: batch(50, 50)})
    unasked = session_with(body)
    assert scan(unasked, (0, 50)) == [None]
    assert unasked.requests == {}
    assert scan(session_with(body), (0, 50), asked=True) == [0]


def test_a_larger_lag_of_markers_is_nothing_to_read() -> None:
    session = session_with(fetched({0: markers(*range(50, 100))}))
    assert scan(session, (0, 50), asked=True) == [1]
    assert session.gaps == []


def test_a_long_stretch_is_scanned_through_over_some_rounds() -> None:
    reader = ReadableReader()
    first = session_with(fetched({0: markers(*range(50, 60))}))
    assert scan(first, (0, 50), reader=reader, asked=True) == [None]
    assert first.gaps == []  # a larger lag without an answer hides nothing
    # What was scanned is not scanned again: a record there would now be seen.
    rest = fetched({0: batch(50, 10) + markers(*range(60, 100))})
    assert scan(session_with(rest), (0, 50), reader=reader, asked=True) == [1]


def test_looking_goes_on_where_it_was_when_the_end_has_moved() -> None:
    reader, moved = ReadableReader(), offsets(last_stable_offset=[110] * 3)
    scan(session_with(fetched({0: markers(*range(50, 100))})), (0, 50), reader=reader, asked=True)
    rest = session_with(fetched({0: batch(50, 10) + markers(*range(100, 110))}))
    assert scan(rest, (0, 50), reader=reader, asked=True, ends=moved) == [1]


def test_in_a_new_leader_epoch_looking_begins_again() -> None:
    reader, elected = ReadableReader(), offsets(leader_epoch=[6] * 3)
    scan(session_with(fetched({0: markers(*range(50, 60))})), (0, 50), reader=reader, asked=True)
    rest = session_with(fetched({0: batch(50, 10) + markers(*range(60, 100))}))
    assert scan(rest, (0, 50), reader=reader, asked=True, ends=elected) == [0]


@pytest.mark.parametrize("committed", [50, 98], ids=["large", "small"])
def test_an_answer_ends_with_the_leader_epoch(committed: int) -> None:
    reader, elected = ReadableReader(), offsets(leader_epoch=[6] * 3)
    before = session_with(fetched({0: markers(*range(committed, 100))}))
    assert scan(before, (0, committed), reader=reader, asked=True) == [1]
    # An unclean election cut the log, and it has grown to the same end with records.
    after = session_with(fetched({0: batch(committed, 100 - committed)}))
    assert scan(after, (0, committed), reader=reader, asked=True, ends=elected) == [0]


def test_what_waits_behind_the_highest_commit_waits_behind_the_lower_ones() -> None:
    session = session_with(fetched({0: batch(80, 20)}))
    assert scan(session, (0, 20), (0, 80), (0, 50), asked=True) == [0, 0, 0]
    assert session.requests["Fetch"] == 1


def test_nothing_behind_the_highest_commit_says_nothing_about_the_lower_ones() -> None:
    reader = ReadableReader()
    end = markers(*range(80, 100))
    first = session_with(fetched({0: end}))
    assert scan(first, (0, 50), (0, 80), reader=reader, asked=True) == [None, 1]
    second = session_with(fetched({0: batch(50, 30) + end}))
    assert scan(second, (0, 50), (0, 80), reader=reader, asked=True) == [0, 1]


def test_a_small_lag_does_not_wait_for_a_larger_one_of_its_partition() -> None:
    reader, body = ReadableReader(), fetched({0: batch(98, 2)})
    assert scan(session_with(body), (0, 20), (0, 98), reader=reader, asked=True) == [None, 0]
    assert scan(session_with(body), (0, 20), (0, 98), reader=reader, asked=True) == [0, 0]


def test_more_partitions_than_a_round_may_scan_into_have_their_turn_later() -> None:
    rows, reader, ends = MAX_QUERIED + 100, ReadableReader(), offsets(MAX_QUERIED + 100)
    placed = [(row, 50) for row in range(rows)]
    silent = session_with(fetched(dict.fromkeys(range(rows), b"")))
    assert set(scan(silent, *placed, reader=reader, asked=True, ends=ends)) == {None}
    body = fetched({row: batch(50, 50) for row in range(rows)})
    seen = scan(session_with(body), *placed, reader=reader, asked=True, ends=ends)
    assert seen.count(0) == MAX_QUERIED
    assert seen[MAX_QUERIED:] == [0] * 100  # those first that had no turn
    again = session_with(body)
    assert scan(again, *placed, reader=reader, asked=True, ends=ends) == [0] * rows
    assert again.gaps == []


def test_missing_permission_for_what_a_rule_asks_is_a_gap_that_names_it() -> None:
    session = session_with(fetched({0: b""}, error=READ_DENIED))
    assert scan(session, (0, 50), asked=True) == [None]
    assert "needs READ on Topic orders" in session.gaps[0].why


def test_a_scan_that_was_rejected_is_told_at_every_commit_until_one_succeeds() -> None:
    reader, placed = ReadableReader(), ((0, 50), (0, 20), (1, 100))
    denied = session_with(fetched({0: b""}, error=READ_DENIED))
    found = scanned(denied, *placed, reader=reader, asked=True)
    assert found.scan_failed.tolist() == [True, True, False]
    may_read = session_with(fetched({0: batch(50, 50)}))
    found = scanned(may_read, *placed, reader=reader, asked=True)
    assert found.scan_failed.tolist() == [False, False, False]


def test_a_rejection_is_remembered_while_others_have_their_turn() -> None:
    rows, reader, ends = MAX_QUERIED + 1, ReadableReader(), offsets(MAX_QUERIED + 1)
    placed = [(row, 50) for row in range(rows)]
    denied = session_with(fetched(dict.fromkeys(range(rows), b""), error=READ_DENIED))
    for failed in (MAX_QUERIED, rows):
        found = scanned(denied, *placed, reader=reader, asked=True, ends=ends)
        assert np.count_nonzero(found.scan_failed) == failed


def test_a_scan_that_is_not_over_has_not_failed() -> None:
    found = scanned(session_with(fetched({0: markers(*range(50, 60))})), (0, 50), asked=True)
    assert found.scan_failed.tolist() == [False]


def test_what_nobody_asks_for_any_more_is_forgotten() -> None:
    reader = ReadableReader()
    scan(session_with(fetched({0: batch(50, 50)})), (0, 50), reader=reader, asked=True)
    assert scan(session_of(ME), (0, 50), reader=reader) == [None]
    assert scan(session_of(ME), (0, 50), reader=reader) == [None]
    asked_again = session_with(fetched({0: batch(50, 50)}))
    assert scan(asked_again, (0, 50), reader=reader, asked=True) == [0]
    assert asked_again.requests["Fetch"] == 1


def test_a_commit_that_one_round_did_not_see_keeps_its_answer() -> None:
    reader = ReadableReader()
    scan(session_with(fetched({0: batch(50, 50)})), (0, 50), reader=reader, asked=True)
    assert scan(session_of(ME), reader=reader, asked=True) == []
    silent = session_of(ME)
    assert scan(silent, (0, 50), reader=reader, asked=True) == [0]
    assert silent.requests == {}


def test_a_share_group_is_never_scanned_into() -> None:
    placed, groups = partitions(), (group("billing"), group("shared", group_type=GroupType.SHARE))
    keys = CommitKeys(
        partitions=placed, group_ids=("billing", "shared"), group=ints(0, 1), row=ints(1, 1)
    )
    found = commits((0, 0, 50), (0, 1, 50), (1, 1, 50))
    wanted = readable_request(placed, groups, found, [ReadableQuestion(keys)])
    assert wanted.small.tolist() == [True, True, False]
    assert wanted.queried.tolist() == [False, True, False]


def test_a_commit_that_retention_overtook_is_not_scanned_into() -> None:
    """The broker would answer OFFSET_OUT_OF_RANGE in every round, and no round would be complete."""
    session = session_of(ME)
    ends = offsets(log_start_offset=[98, 0, 0])
    assert scan(session, (0, 95), ends=ends) == [None]
    assert session.requests == {}
    assert session.gaps == []


def test_small_lags_beyond_the_limit_of_a_round_are_a_gap_until_their_turn() -> None:
    """30,000 of them in one round took a second, and ten times as many would have ended it."""
    rows, reader, ends = MAX_SMALL + 100, ReadableReader(), offsets(MAX_SMALL + 100)
    placed = [(row, 98) for row in range(rows)]
    body = fetched({row: batch(98, 2) for row in range(rows)})
    first = session_with(body)
    assert scan(first, *placed, reader=reader, ends=ends).count(0) == MAX_SMALL
    [gap] = first.gaps
    assert (gap.cause, gap.scope) == (GapCause.LIMIT, GapScope.READABLE)
    assert "100 partitions" in gap.what
    second = session_with(body)
    assert scan(second, *placed, reader=reader, ends=ends) == [0] * rows
    assert (second.requests["Fetch"], second.gaps) == (1, [])
    third = session_with(body)
    assert scan(third, *placed, reader=reader, ends=ends) == [0] * rows
    assert third.requests == {}


def test_small_lags_are_scanned_more_slowly_where_that_takes_long() -> None:
    """Brokers that are busy already took seconds for them, in every round for minutes."""
    rows = 2 * MAX_SMALL
    reader, ends = ReadableReader(), offsets(rows)
    placed = [(row, 98) for row in range(rows)]
    body = fetched({row: batch(98, 2) for row in range(rows)})

    class Slow(FakePool):
        def exchange(self, calls: Sequence[Call], **limits: Any) -> list[Answer]:
            session.began -= 1.0  # it took a second
            return super().exchange(calls, **limits)

    answered = []
    for _ in range(4):
        session = session_with(body)
        session.pool = Slow({(ME.port, FETCH.name): body})
        answered.append(scan(session, *placed, reader=reader, ends=ends).count(0))
    steps = [MAX_SMALL, MAX_SMALL // 2, MAX_SMALL // 4, MAX_SMALL // 8]
    assert answered == [sum(steps[: number + 1]) for number in range(4)]


@pytest.mark.parametrize(("committed", "asked"), [(98, False), (50, True)], ids=["small", "large"])
def test_a_restart_takes_over_the_answers_while_epoch_and_end_are_the_same(
    committed: int, *, asked: bool
) -> None:
    ends = offsets()
    body = fetched({0: markers(*range(committed, 100))})
    known = scanned(session_with(body), (0, committed), asked=asked, ends=ends)
    seen = snapshot(groups=(group("group-0"),), commits=known, offsets=ends)
    memory = advance_commits(seen, seen.partitions, 1, None)
    silent, reader = session_of(ME), ReadableReader()
    # A rule asks for a larger lag from the second round on.
    scan(silent, (0, committed), reader=reader, remembered=memory)
    assert scan(silent, (0, committed), reader=reader, asked=asked) == [1]
    assert silent.requests == {}
    after = session_with(fetched({0: batch(committed, 100 - committed)}))
    elected = offsets(leader_epoch=[6] * 3)
    begun = ReadableReader()
    assert scan(
        after, (0, committed), reader=begun, ends=elected, asked=asked, remembered=memory
    ) == [0]
