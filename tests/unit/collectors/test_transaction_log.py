"""Following `__transaction_state`: where to begin, what came, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from collectors import transaction_log
from collectors.session import Session
from collectors.state_topic import StateTopic
from collectors.transaction_endings import MAX_REMEMBERED
from collectors.transaction_log import TransactionLogReader
from collectors.transaction_record import TransactionRecord
from collectors.wire.api import FETCH, LIST_OFFSETS
from collectors.wire.failure import Failure
from collectors.wire.records import Record
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import TRANSACTION_STATE, BrokerId, TopicId
from rules.facts.transaction_log import Cut, TransactionLog
from rules.facts.transactions import TransactionState
from tests.factories import broker
from tests.unit.collectors.fake_pool import FakePool, Prepared, session_of
from tests.unit.collectors.transaction_records import NOON_MS, render_batch, render_log, value
from tests.unit.collectors.wire.messages import NO_THROTTLE, answer, list_offsets_answer, part

LATE = Failure(GapCause.TIMEOUT, "no answer within 5.0 s")
GONE, LIMIT, MOVED = GapCause.GONE, GapCause.LIMIT, GapCause.LEADER_CHANGING


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a Fetch answers for one partition."""

    records: bytes = b""
    high_watermark: int = 0
    error: int = 0
    diverging: int = -1


def fetched(parts: Mapping[int, Part], error: int = 0) -> bytes:
    entry = part(FETCH, 12, "PartitionData")
    topic = part(FETCH, 12, "FetchableTopicResponse")
    diverging = part(FETCH, 12, "EpochEndOffset")
    told = tuple(
        entry(
            partition_index=number,
            error_code=ErrorCode(one.error),
            high_watermark=one.high_watermark,
            diverging_epoch=diverging(epoch=one.diverging, end_offset=one.diverging),
            aborted_transactions=None,
            records=one.records,
        )
        for number, one in parts.items()
    )
    topics = (topic(topic=TRANSACTION_STATE, partitions=told),)
    return answer(
        FETCH,
        12,
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode(error),
        session_id=0,
        responses=topics,
    )


def ends(offsets: Mapping[int, int], error: int = 0) -> bytes:
    entries = [(number, error, offset, 5) for number, offset in offsets.items()]
    return list_offsets_answer({TRANSACTION_STATE: entries})


def state(*leaders: int | None, topic_id: str | None = "A") -> StateTopic:
    return StateTopic(
        leaders=tuple(None if leader is None else BrokerId(leader) for leader in leaders),
        leader_epochs=tuple(None if leader is None else 5 for leader in leaders),
        topic_id=None if topic_id is None else TopicId(topic_id),
    )


def one_round(
    reader: TransactionLogReader,
    topic: StateTopic | Failure | None,
    *,
    fetch: Prepared | None = None,
    end: Prepared | None = None,
    second: Prepared | None = None,
) -> tuple[TransactionLog, Session]:
    """Make a round over brokers 1 and 2; `second` is what broker 2 answers to a Fetch."""
    prepared: dict[Any, Prepared] = {}
    if fetch is not None:
        prepared[broker(1), FETCH] = fetch
    if second is not None:
        prepared[broker(2), FETCH] = second
    if end is not None:
        prepared[broker(1), LIST_OFFSETS] = prepared[broker(2), LIST_OFFSETS] = end
    session = session_of(broker(1), broker(2), answers=prepared)
    return reader.collect(session, topic), session


def begun(topic: StateTopic | None = None, offset: int = 10) -> TransactionLogReader:
    """Return a reader that is at this offset of each partition."""
    reader, placed = TransactionLogReader(), topic or state(1)
    at = dict.fromkeys(range(len(placed.leaders)), offset)
    parts = {number: Part(high_watermark=offset) for number in at}
    log, session = one_round(
        reader, placed, end=ends(at), fetch=fetched(parts), second=fetched(parts)
    )
    assert (log.is_read, log.is_whole, log.ended, session.gaps) == (True, True, (), [])
    return reader


def asked(session: Session) -> dict[str, int]:
    assert isinstance(session.pool, FakePool)
    return dict(session.pool.queries)


def causes(session: Session) -> list[GapCause]:
    assert {gap.scope for gap in session.gaps} <= {GapScope.TRANSACTION_LOG}
    return [gap.cause for gap in session.gaps]


def names(log: TransactionLog) -> list[str]:
    return [one.transactional_id for one in log.ended]


def committed(*ids: str) -> list[TransactionRecord]:
    states = (TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT)
    return [TransactionRecord(name, value(state)) for name in ids for state in states]


def log_of(records: Sequence[TransactionRecord], base: int = 10, behind: int = 0) -> Part:
    """Return what is answered where these records stand, and so many more behind them."""
    end = base + len(records)
    return Part(records=render_log(records, base=base), high_watermark=end + behind)


def test_a_topic_that_does_not_exist_hides_nothing() -> None:
    log, session = one_round(TransactionLogReader(), None)
    assert (log.is_read, log.is_whole, session.gaps, asked(session)) == (True, True, [], {})


def test_the_first_round_finds_the_end_and_the_next_ones_go_on_from_there() -> None:
    reader = begun()
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a", "b"))}))
    assert (names(log), log.is_whole, session.gaps) == (["a", "b"], True, [])
    assert asked(session) == {"Fetch": 1}
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a", "b"))}))
    assert (log.ended, log.is_whole) == ((), True)


def test_a_decision_to_commit_is_read_for_its_time_alone() -> None:
    states = (
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
    )
    records = [
        TransactionRecord("a", value(state), NOON_MS + 250 * place)
        for place, state in enumerate(states)
    ]
    log, _ = one_round(begun(), state(1), fetch=fetched({0: log_of(records)}))
    [one] = log.ended
    assert one.marker_duration == timedelta(milliseconds=250)


def test_a_topic_that_appears_is_read_from_its_first_record() -> None:
    reader = TransactionLogReader()
    one_round(reader, None)
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a"), base=0)}))
    assert (names(log), log.is_whole, asked(session)) == (["a"], True, {"Fetch": 1})


def test_a_topic_that_only_one_round_did_not_see_is_read_on() -> None:
    reader = begun()
    log, session = one_round(reader, None)
    assert (log.is_read, log.is_whole, causes(session)) == (True, False, [GONE])
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a"))}))
    assert (names(log), asked(session)) == (["a"], {"Fetch": 1})


def test_a_topic_that_was_ever_seen_is_not_read_from_its_first_record() -> None:
    reader = TransactionLogReader()
    one_round(reader, state(1), end=ends({0: 10}), fetch=fetched({0: Part(error=29)}))
    one_round(reader, None)
    at_end = fetched({0: Part(high_watermark=10)})
    _, session = one_round(reader, state(1), end=ends({0: 10}), fetch=at_end)
    assert asked(session) == {"ListOffsets": 1, "Fetch": 1}


def test_a_placement_that_failed_is_a_gap_and_reading_goes_on_later() -> None:
    reader = begun()
    log, session = one_round(reader, LATE)
    assert (log.is_read, log.is_whole, causes(session)) == (True, False, [GapCause.TIMEOUT])
    log, _ = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a"))}))
    assert names(log) == ["a"]


def test_without_describe_nothing_is_read() -> None:
    hidden = Failure(GapCause.NOT_AUTHORIZED, "needs DESCRIBE")
    log, session = one_round(begun(), hidden)
    assert (log.is_read, causes(session)) == (False, [GapCause.NOT_AUTHORIZED])


def test_without_read_there_is_one_gap_and_once_granted_the_end_is_where_to_begin() -> None:
    reader, topic = TransactionLogReader(), state(1, 2, None)
    rejected = fetched({0: Part(error=29), 1: Part(error=29)})
    at_end = ends({0: 10, 1: 10})
    log, session = one_round(reader, topic, end=at_end, fetch=rejected, second=rejected)
    assert not log.is_read
    [gap] = session.gaps
    assert (gap.cause, gap.topic) == (GapCause.NOT_AUTHORIZED, TRANSACTION_STATE)
    assert gap.why.endswith("needs READ on Topic __transaction_state")
    assert gap.what == (
        "how transactions ended on 2 partitions (__transaction_state-0, __transaction_state-1)"
    )
    granted = fetched({0: Part(high_watermark=99)})
    log, session = one_round(reader, state(1), end=ends({0: 99}), fetch=granted)
    assert (log.is_read, log.is_whole) == (True, True)
    assert asked(session) == {"ListOffsets": 1, "Fetch": 1}


def test_a_leader_that_is_late_costs_its_own_partitions_and_loses_nothing() -> None:
    topic = state(1, 2)
    reader = begun(topic)
    first = fetched({0: log_of(committed("a"))})
    log, session = one_round(reader, topic, fetch=first)
    assert (names(log), log.is_whole, causes(session)) == (["a"], False, [GapCause.TIMEOUT])
    nothing = fetched({0: Part(high_watermark=12)})
    log, _ = one_round(reader, topic, fetch=nothing, second=fetched({1: log_of(committed("b"))}))
    assert (names(log), log.is_whole) == (["b"], True)


def test_records_are_read_on_where_leadership_moved() -> None:
    reader = begun()
    log, session = one_round(reader, state(1), fetch=fetched({0: Part(error=6)}))
    assert (log.is_whole, causes(session)) == (False, [MOVED])
    log, session = one_round(reader, state(2), second=fetched({0: log_of(committed("a"))}))
    assert (names(log), asked(session)) == (["a"], {"Fetch": 1})


@pytest.mark.parametrize(
    ("leader", "cause"), [(None, GapCause.NO_LEADER), (9, GapCause.UNREACHABLE)]
)
def test_a_partition_without_a_leader_to_ask_is_a_gap(leader: int | None, cause: GapCause) -> None:
    log, session = one_round(begun(), state(leader))
    assert (log.is_read, log.is_whole, causes(session)) == (True, False, [cause])


@pytest.mark.parametrize("cut", [Part(error=1), Part(diverging=7, high_watermark=8)])
def test_a_truncated_log_is_a_gap_and_begun_again_at_its_end(cut: Part) -> None:
    reader = begun()
    log, session = one_round(reader, state(1), fetch=fetched({0: cut}), end=ends({0: 8}))
    assert (log.is_whole, causes(session)) == (False, [GONE])
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a"), base=8)}))
    assert (names(log), session.gaps) == (["a"], [])


@pytest.mark.parametrize("is_cut", [False, True])
def test_who_ended_what_was_open_before_a_cut_is_not_said(*, is_cut: bool) -> None:
    reader = begun()
    open_one = [TransactionRecord("a", value())]
    one_round(reader, state(1), fetch=fetched({0: log_of(open_one)}))
    if is_cut:
        one_round(reader, state(1), fetch=fetched({0: Part(error=1)}), end=ends({0: 11}))
    states = (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
    ending = [TransactionRecord("a", value(one, producer_epoch=4)) for one in states]
    log, _ = one_round(reader, state(1), fetch=fetched({0: log_of(ending, base=11)}))
    assert [one.cut for one in log.ended] == [None if is_cut else Cut.SECOND_INSTANCE]


def test_a_topic_made_anew_is_a_gap_and_begun_again_at_its_end() -> None:
    reader, again = begun(), state(1, topic_id="B")
    log, session = one_round(reader, again, end=ends({0: 2}))
    assert (log.is_whole, causes(session), asked(session)) == (False, [GONE], {"ListOffsets": 1})
    log, session = one_round(reader, again, fetch=fetched({0: log_of(committed("a"), base=2)}))
    assert (names(log), session.gaps) == (["a"], [])


@pytest.mark.parametrize(("before", "after"), [("A", "B"), (None, None), ("A", None)])
def test_a_topic_made_anew_with_fewer_partitions_has_no_more_than_those(
    before: str | None, after: str | None
) -> None:
    reader, again = begun(state(1, 1, 1, topic_id=before)), state(1, topic_id=after)
    deleted = fetched({number: Part(error=3) for number in range(3)})
    one_round(reader, state(1, 1, 1, topic_id=before), fetch=deleted)
    log, session = one_round(reader, again, end=ends({0: 2}))
    assert (log.is_whole, causes(session), asked(session)) == (False, [GONE], {"ListOffsets": 1})
    log, session = one_round(reader, again, fetch=fetched({0: log_of(committed("a"), base=2)}))
    assert (names(log), log.is_whole, session.gaps) == (["a"], True, [])


def test_partitions_of_the_same_topic_that_an_answer_left_out_are_read_on() -> None:
    reader = begun(state(1, 1))
    nothing = fetched({0: Part(high_watermark=10)})
    log, session = one_round(reader, state(1), fetch=nothing)
    assert (log.is_whole, causes(session)) == (False, [GapCause.NO_LEADER])
    both = fetched({0: Part(high_watermark=10), 1: log_of(committed("a"))})
    log, session = one_round(reader, state(1, 1), fetch=both)
    assert (names(log), log.is_whole, session.gaps) == (["a"], True, [])


def test_an_end_that_is_not_known_yet_is_a_gap_and_scanned_for_again() -> None:
    reader = TransactionLogReader()
    log, session = one_round(reader, state(1), end=ends({0: -1}, error=78))
    assert (log.is_whole, causes(session), asked(session)) == (False, [MOVED], {"ListOffsets": 1})
    log, session = one_round(reader, state(1), end=ends({0: -1}))
    assert causes(session) == [GapCause.UNREADABLE]
    _, session = one_round(reader, state(1), end=ends({0: 7}), fetch=fetched({0: Part()}))
    assert session.gaps == []


def test_an_answer_without_a_partition_that_was_asked_for_is_a_gap() -> None:
    log, session = one_round(begun(), state(1), fetch=fetched({}))
    assert (log.is_whole, causes(session)) == (False, [GapCause.UNREADABLE])
    _, session = one_round(TransactionLogReader(), state(1), end=ends({}))
    assert causes(session) == [GapCause.UNREADABLE]
    _, session = one_round(begun(), state(1), fetch=fetched({}, error=-1))
    assert causes(session) == [GapCause.BROKER_ERROR]


def test_what_does_not_fit_is_read_in_the_next_round() -> None:
    reader = begun()
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a"), behind=2)}))
    assert (names(log), log.is_whole, causes(session)) == (["a"], False, [LIMIT])
    assert asked(session) == {"Fetch": transaction_log.MAX_SCANS}
    log, _ = one_round(reader, state(1), fetch=fetched({0: log_of(committed("b"), base=12)}))
    assert (names(log), log.is_whole) == (["b"], True)


def test_what_is_too_much_to_read_is_left_out_with_a_gap() -> None:
    reader = begun()
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("a"), behind=9)}))
    assert (names(log), log.is_whole, causes(session)) == (["a"], False, [LIMIT])
    assert "left out" in session.gaps[0].why
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(committed("b"), base=21)}))
    assert (names(log), session.gaps) == (["b"], [])


def test_what_was_compacted_before_it_was_read_is_a_gap() -> None:
    compacted = log_of(committed("a"), base=13)
    log, session = one_round(begun(), state(1), fetch=fetched({0: compacted}))
    assert (names(log), log.is_whole, causes(session)) == (["a"], False, [GONE])


def test_more_open_transactions_than_are_remembered_are_a_gap_in_that_round() -> None:
    reader = begun()
    many = [TransactionRecord(f"app-{n}", value()) for n in range(MAX_REMEMBERED + 1)]
    log, session = one_round(reader, state(1), fetch=fetched({0: log_of(many)}))
    assert (log.is_whole, causes(session)) == (False, [LIMIT])
    assert session.gaps[0].why.startswith("more than 5,000 transactions were open on one")
    at = 10 + len(many)
    log, session = one_round(reader, state(1), fetch=fetched({0: Part(high_watermark=at)}))
    assert (log.is_whole, session.gaps) == (True, [])


def test_records_before_the_position_are_not_told_again() -> None:
    both = render_batch([Record(0, b"\0\0\0\1a", None), Record(1, b"\0\0\0\1b", None)], base=9)
    log, session = one_round(
        begun(), state(1), fetch=fetched({0: Part(records=both, high_watermark=11)})
    )
    assert (log.is_whole, session.gaps) == (True, [])


@pytest.mark.parametrize(
    "records",
    [
        render_batch([Record(0, b"\0\0\0\1a", b"\0\2")], base=10),
        render_batch([Record(0, b"\0\0\0\1a", None)], base=10, attributes=1),
    ],
)
def test_what_cannot_be_read_is_a_gap_and_costs_nothing_of_the_rest(records: bytes) -> None:
    more = Part(records=records + log_of(committed("b"), base=11).records, high_watermark=13)
    log, session = one_round(begun(), state(1), fetch=fetched({0: more}))
    assert (names(log), log.is_whole, causes(session)) == (["b"], False, [GapCause.UNREADABLE])


def test_a_record_of_another_kind_is_passed_over() -> None:
    other = Part(records=render_batch([Record(0, b"\0\7", b"x")], base=10), high_watermark=11)
    log, session = one_round(begun(), state(1), fetch=fetched({0: other}))
    assert (log.ended, log.is_whole, session.gaps) == ((), True, [])
