"""An excerpt of what brokers and a controller of Kafka 4.1.1 wrote while faults were made.

Only the names of topics and of the data directory were changed. `orders` lost 24 records to an unclean
election; `payments` lost none, and had its old records deleted while a replica was down; `clicks` had
a clean failover; `single-1` is alone on a broker that came and went; on `orders-7.at-…` batches were
rejected.
"""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from collectors.broker_log.parser import LineParser
from rules.facts.broker_log import (
    EpochRejected,
    FollowerStarted,
    IsrUpdated,
    LogEvent,
    LogLoaded,
    LogTruncated,
    SequenceRejected,
    UncleanChange,
    WatermarkWentBack,
)

EXCERPT = Path(__file__).parent.parent / "data/broker-4.1.1"


def test_the_log_of_a_broker_tells_of_one_loss_and_of_five_rejections() -> None:
    events = read("server.log")
    assert [type(event) for event in events] == [
        LogLoaded,
        LogTruncated,
        WatermarkWentBack,
        LogLoaded,
        *[SequenceRejected] * 3,
        EpochRejected,
        SequenceRejected,
    ]
    loaded, cut, back, whole, *rejected = events
    assert {event.topic for event in (loaded, cut, back)} == {"orders"}
    assert (whole.topic, {event.topic for event in rejected}) == (
        "payments",
        {"orders-7.at-offset-3_in-partition-1"},
    )
    assert isinstance(loaded, LogLoaded)
    assert isinstance(cut, LogTruncated)
    assert isinstance(back, WatermarkWentBack)
    assert (cut.epoch, cut.epoch_end) == (0, 10)
    assert loaded.log_end_offset - cut.offset == back.offset_before - back.offset == 24
    assert [_numbers(event) for event in rejected] == [
        (27, 2),
        (4, 5),
        (5, None),
        (0, 1),
        (7, None),
    ]


def test_the_log_of_state_changes_tells_where_the_old_leader_began_to_follow() -> None:
    events = read("state-change.log")
    (started,) = (event for event in events if isinstance(event, FollowerStarted))
    assert (started.topic, started.log_end_offset, started.leader) == ("orders", 34, 3)
    updated = [event for event in events if isinstance(event, IsrUpdated)]
    assert [event.isr for event in updated] == [(1, 3), (1,), (3, 1)], "whom the controller left in"
    assert len(events) == 1 + len(updated)


def test_the_log_of_a_controller_tells_each_unclean_election_by_topic_id_and_leader_epoch() -> None:
    events = [event for event in read("controller.log") if isinstance(event, UncleanChange)]
    elections = {(event.topic_id, event.leader_epoch): event.leader for event in events}
    (of_orders,) = (event for event in events if event.topic == "orders")
    assert (of_orders.leader_before, of_orders.leader, of_orders.leader_epoch) == (1, 3, 1)
    assert len(elections) == 7
    assert len(events) == 10  # two were decided and taken over, and one was told again at a start


def read(name: str) -> list[LogEvent]:
    """Return what a file of the excerpt tells, all of which can be read."""
    made = LineParser(name, None, UTC)
    events = made.feed((EXCERPT / name).read_bytes().split(b"\n"))
    assert made.unreadable == ()
    return events


def _numbers(event: LogEvent) -> tuple[int, int | None]:
    if isinstance(event, EpochRejected):
        return event.producer_epoch, event.current_epoch
    assert isinstance(event, SequenceRejected)
    return event.incoming_sequence, event.current_sequence
