"""Log lines by HTTP: parsed and stored when they come, read once by rounds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final, TypeVar

import pytest

from rules.errors import StoreError
from rules.facts.broker_log import LogSource, SequenceRejected
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import BrokerId
from service.observe.feeds import unread_feeds
from service.observe.log_inbox import LogInbox
from service.observe.log_submissions import Delivery, Rejection, Stream
from service.runtime.threads import without_limit
from service.storage.rounds.inbox import Counts
from tests.factories import NOON
from tests.fakes import MemoryInbox

AWAY: Final = StoreError("database x cannot be reached: rejected", retryable=True)
ONE: Final = Stream("broker-1", BrokerId(1))
ORDINARY: Final = (
    b"[2026-11-21 11:56:39,000] INFO [Partition a-0 broker=1] ordinary (kafka.cluster)"
)

T = TypeVar("T")


def first(second: int = 40, topic: str = "orders") -> bytes:
    told = (
        f"[2026-11-21 11:56:{second},159] ERROR [ReplicaManager broker=1] Error processing append"
    )
    return f"{told} operation on partition {topic}-0 (kafka.server.ReplicaManager)".encode()


def second(incoming: int = 6, topic: str = "orders") -> bytes:
    told = (
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number"
    )
    numbers = f"{incoming} (incoming seq. number), 2 (current end sequence number)"
    return f"{told} for producer 2001 at offset 3 in partition {topic}-0: {numbers}".encode()


def at_second(number: int) -> datetime:
    return datetime(2026, 11, 21, 11, 56, number, 159_000, tzinfo=UTC)


def record(incoming: int = 6, at_second: int = 40) -> list[bytes]:
    return [first(at_second), second(incoming)]


def delivery(
    lines: list[bytes],
    stream: Stream = ONE,
    *,
    digest: str | None = None,
    key: str | None = None,
    zone: tzinfo = UTC,
) -> Delivery:
    made = repr((lines, stream)) if digest is None else digest
    return Delivery(lines={stream: lines}, zone=zone, digest=made, key=key)


def inbox(store: MemoryInbox, **given: Any) -> LogInbox:
    base = {"max_waiting": 1000, "utc_now": lambda: NOON, "in_time": without_limit}
    return LogInbox(store, **{**base, **given})


def accepted(made: LogInbox, *deliveries: Delivery) -> list[Counts | Rejection]:
    return [made.accept(one) for one in deliveries]


def sequences(made: LogInbox, position: str | None = None) -> list[int]:
    events = made.read(position).events
    return [one.incoming_sequence for one in events if isinstance(one, SequenceRejected)]


def test_what_lines_tell_is_stored_and_counted() -> None:
    store = MemoryInbox()
    lines = [ORDINARY, *record(), b"", ORDINARY, *record(7, 41)]
    assert inbox(store).accept(delivery(lines)) == Counts(lines=7, events=2, unparsed=0)
    (event, _) = inbox(store).read(None).events
    assert isinstance(event, SequenceRejected)
    assert (event.topic, event.partition, event.producer_id) == ("orders", 0, 2001)
    assert (event.incoming_sequence, event.current_sequence) == (6, 2)
    assert (event.origin.source, event.origin.broker_id) == ("broker-1", 1)
    assert event.origin.at is not None
    assert event.origin.at.isoformat() == "2026-11-21T11:56:40.159000+00:00"


def test_a_line_that_cannot_be_read_is_counted() -> None:
    counts = inbox(MemoryInbox()).accept(delivery([first(), second()[:-40]]))
    assert counts == Counts(lines=2, events=0, unparsed=1)


def test_the_latest_lines_that_cannot_be_read_are_shown() -> None:
    made = inbox(MemoryInbox())
    accepted(made, *(delivery([second(number)[:-40]]) for number in range(9)))
    (source,) = made.read(None).sources
    assert source.unparsed == 9
    shown = [line.partition("-0: ")[2][:2] for line in source.unreadable]
    assert shown == ["4 ", "5 ", "6 ", "7 ", "8 "]


def test_times_are_in_the_declared_zone() -> None:
    made = inbox(MemoryInbox())
    made.accept(delivery(record(), zone=timezone(timedelta(hours=2))))
    (event,) = made.read(None).events
    assert event.origin.at is not None
    assert event.origin.at.isoformat() == "2026-11-21T09:56:40.159000+00:00"


def test_the_two_lines_of_a_record_may_come_in_two_requests() -> None:
    store = MemoryInbox()
    assert accepted(inbox(store), delivery([ORDINARY, first()])) == [
        Counts(lines=2, events=0, unparsed=0)
    ]
    # Another process goes on.
    assert accepted(inbox(store), delivery([second(), ORDINARY])) == [
        Counts(lines=2, events=1, unparsed=0)
    ]
    (event,) = inbox(store).read(None).events
    assert event.origin.at is not None, "the time is in the first line"


def test_lines_of_another_broker_or_file_come_between_and_part_nothing() -> None:
    made = inbox(MemoryInbox())
    others = [Stream("broker-1", BrokerId(2)), Stream("broker-1", BrokerId(1), "controller.log")]
    made.accept(delivery([first()]))
    accepted(made, *(delivery([ORDINARY], other) for other in others))
    made.accept(delivery([second()]))
    (event,) = made.read(None).events
    assert event.origin.at is not None


def test_lines_of_several_streams_are_one_delivery() -> None:
    made, two = inbox(MemoryInbox()), Stream("broker-2", BrokerId(2))
    lines = {ONE: [*record(), ORDINARY], two: [*record(9), first()[:-40]]}
    counts = made.accept(Delivery(lines=lines, zone=UTC, digest="d"))
    assert counts == Counts(lines=6, events=2, unparsed=0)
    fed = made.read(None)
    assert [(one.name, one.lines) for one in fed.sources] == [("broker-1", 3), ("broker-2", 3)]
    assert [one.origin.source for one in fed.events] == ["broker-1", "broker-2"]


def test_when_the_database_is_away_nothing_is_taken() -> None:
    store = MemoryInbox(fails=AWAY)
    with pytest.raises(StoreError, match="cannot be reached"):
        inbox(store).accept(delivery(record()))
    store.fails = None
    assert inbox(store).read(None).events == ()


def test_a_key_that_comes_again_is_answered_as_before_and_stored_once() -> None:
    made = inbox(MemoryInbox())
    answers = accepted(made, *[delivery(record(), key="k")] * 3)
    assert answers == [Counts(lines=2, events=1, unparsed=0)] * 3
    assert sequences(made) == [6]


def test_a_key_that_comes_with_other_lines_is_rejected() -> None:
    made = inbox(MemoryInbox())
    answers = accepted(made, delivery(record(), key="k"), delivery(record(7), key="k"))
    assert answers[1] is Rejection.KEY_REUSED
    assert sequences(made) == [6]


def test_without_a_key_the_same_request_is_known_by_what_it_holds() -> None:
    made = inbox(MemoryInbox())
    answers = accepted(made, delivery(record()), delivery(record()), delivery(record(7)))
    assert answers == [Counts(lines=2, events=1, unparsed=0)] * 3
    assert made.read("0").position == "2", "the second was not stored"
    assert sequences(made) == [6, 7]


def test_with_other_keys_the_same_lines_are_stored_twice_and_given_once() -> None:
    made = inbox(MemoryInbox())
    accepted(made, delivery(record(), key="a"), delivery(record(), key="b"))
    assert made.read(None).position == "2"
    assert sequences(made) == [6]


def test_a_second_line_alone_may_come_again_after_another_first_line() -> None:
    made = inbox(MemoryInbox())
    accepted(made, delivery([first(40)]), delivery([second()]))
    accepted(made, delivery([first(41)]), delivery([second()]))
    assert [one.origin.at for one in made.read(None).events] == [
        at_second(40),
        at_second(41),
    ], "two rejections of one batch"


def test_lines_without_a_time_are_never_taken_for_a_repetition() -> None:
    made = inbox(MemoryInbox())
    accepted(made, delivery([second()]), delivery([second()]), delivery([second(), second()]))
    assert sequences(made) == [6, 6, 6, 6]


def test_what_two_sources_tell_of_one_timestamp_is_given_once() -> None:
    made = inbox(MemoryInbox())
    accepted(made, delivery(record()), delivery(record(), Stream("a copy", BrokerId(1))))
    (event,) = made.read(None).events
    assert event.origin.source == "broker-1", "the one that came first"


def test_when_too_much_waits_no_more_is_taken_until_a_round_has_read() -> None:
    made = inbox(MemoryInbox(), max_waiting=5)
    full = [delivery(record(n)) for n in range(4)]
    assert accepted(made, *full)[2:] == [Counts(lines=2, events=1, unparsed=0), Rejection.FULL]
    fed = made.read(None)
    assert accepted(made, full[3]) == [Rejection.FULL], (
        "a round that is not stored reads them again"
    )
    made.read(fed.position)
    assert accepted(made, full[3]) == [Counts(lines=2, events=1, unparsed=0)]


def test_a_repetition_is_answered_although_too_much_waits() -> None:
    made = inbox(MemoryInbox(), max_waiting=1)
    assert len(set(accepted(made, delivery(record()), delivery(record())))) == 1


def test_names_that_change_with_every_request_do_not_fill_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.observe.log_inbox.MAX_STREAMS", 3)
    made = inbox(MemoryInbox())
    streams = [Stream(f"pod-{number}") for number in range(4)]
    answers = accepted(made, *(delivery([ORDINARY], stream) for stream in streams))
    assert answers[-2:] == [Counts(lines=1, events=0, unparsed=0), Rejection.TOO_MANY_STREAMS]
    assert accepted(made, delivery([ORDINARY], streams[0]))[0] == answers[0], "known ones go on"


def test_where_nobody_sends_anything_nothing_is_known_and_nothing_missing() -> None:
    store = MemoryInbox()
    made = inbox(store)
    assert (made.name, made.is_used, made.may_be_used) == ("http", False, True)
    fed = made.read(None)
    assert not made.may_be_used
    assert (fed.events, fed.sources, fed.position, fed.gaps) == ((), (), None, ())
    store.fails = AWAY
    assert made.read(None) == fed


def test_before_the_database_is_read_clients_may_have_sent_lines() -> None:
    log, [gap] = unread_feeds([inbox(MemoryInbox())])
    assert not log.is_read
    assert (gap.what, gap.scope) == ("log lines of brokers (http)", GapScope.BROKER_LOG)


def test_a_round_goes_on_where_the_last_stored_one_ended() -> None:
    made = inbox(MemoryInbox())
    accepted(made, delivery(record(1)), delivery(record(2, 41)))
    fed = made.read(None)
    assert sequences(made, fed.position) == []
    made.accept(delivery(record(3, 42)))
    assert sequences(made, fed.position) == [3]
    assert sequences(made, None) == [1, 2, 3], "a round that was not stored is made again"


def test_a_position_that_is_none_of_ours_reads_all_again() -> None:
    made = inbox(MemoryInbox())
    made.accept(delivery(record(1)))
    for position in ("", "x", "-1", "1.0", "²", "{}"):
        assert sequences(made, position) == [1]


def test_sources_are_told_also_when_they_are_silent() -> None:
    made = inbox(MemoryInbox())
    made.accept(delivery([*record(), first()[:60]]))
    fed = made.read(None)
    told = LogSource(name="broker-1", lines=3, unparsed=0, last_line_at=at_second(40))
    assert fed.sources == (told,)
    assert made.is_used
    assert made.read(fed.position).sources == (
        LogSource(name="broker-1", last_line_at=at_second(40)),
    )


@pytest.mark.parametrize("limit", ["MAX_DELIVERIES", "MAX_EVENTS"])
def test_more_than_a_round_reads_waits_for_the_next(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(f"service.observe.log_inbox.{limit}", 3)
    made = inbox(MemoryInbox())
    accepted(made, *(delivery(record(number)) for number in range(4)))
    fed = made.read(None)
    assert (fed.position, fed.is_behind) == ("3", True)
    assert sum(source.lines for source in fed.sources) == 6
    rest = made.read(fed.position)
    assert (rest.position, rest.is_behind) == ("4", False)


def hangs(_function: Callable[[], T], seconds: float, /) -> T:
    raise TimeoutError(f"no answer within {seconds:.0f} s")


@pytest.mark.parametrize("fault", ["away", "hangs"])
def test_a_database_that_gives_no_answer_is_a_gap_and_the_position_stays(fault: str) -> None:
    def in_time(function: Callable[[], T], seconds: float, /) -> T:
        return hangs(function, seconds) if fault == "hangs" and broken else function()

    store, broken = MemoryInbox(), False
    made = inbox(store, in_time=in_time)
    made.accept(delivery(record(1)))
    position = made.read(None).position
    made.accept(delivery(record(2)))
    broken, store.fails = True, AWAY if fault == "away" else None
    fed = made.read(position)
    why = str(AWAY) if fault == "away" else "no answer within 5 s"
    assert (fed.events, fed.position, fed.is_behind) == ((), None, False)
    cause = GapCause.UNREACHABLE if fault == "away" else GapCause.TIMEOUT
    assert [(one.scope, one.why, one.cause) for one in fed.gaps] == [
        (GapScope.BROKER_LOG, why, cause)
    ]
    assert [(source.name, source.error) for source in fed.sources] == [("broker-1", why)]
    broken, store.fails = False, None
    assert sequences(made, position) == [2]


def test_a_process_that_could_not_read_yet_tells_a_gap_where_an_earlier_one_read_something() -> (
    None
):
    damaged = StoreError("stored log lines have the unknown format 9", retryable=False)
    made = inbox(MemoryInbox(fails=damaged))
    assert made.read(None).gaps == ()
    (gap,) = made.read("7").gaps
    assert (gap.cause, gap.why) == (GapCause.UNREADABLE, str(damaged))


def test_where_everybody_has_stopped_sending_nothing_is_missing() -> None:
    store = MemoryInbox()
    made = inbox(store)
    assert made.read("7").gaps == ()
    store.fails = AWAY
    assert made.read("7").gaps == ()
