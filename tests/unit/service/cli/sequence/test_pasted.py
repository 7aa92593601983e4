"""Which rejections belong together, and that what is kept is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from rules.facts.broker_log import EpochRejected, Origin, SequenceForm, UncleanChange
from rules.facts.identity import BrokerId, TopicId
from service.cli.sequence import pasted
from service.cli.sequence.pasted import Pasted
from tests.factories import at
from tests.unit.service.cli.sequence.given import event


def at_second(second: float | None) -> dict[str, Any]:
    timestamp = None if second is None else at(second)
    return {"origin": Origin(source="server.log", broker_id=BrokerId(1), at=timestamp)}


def sizes(*events: Any) -> list[int]:
    found = Pasted()
    found.add(events)
    return [len(one.rejections) for one in found.events]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({}, [2]),
        ({"incoming_sequence": 30}, [2]),
        ({"producer_id": 2002}, [1, 1]),
        ({"partition": 1}, [1, 1]),
        ({"topic": "refunds"}, [1, 1]),
        ({"producer_id": None}, [1, 1]),
        (at_second(120) | {"incoming_sequence": 30}, [2]),
        (at_second(-120) | {"incoming_sequence": 30}, [2]),
        (at_second(121) | {"incoming_sequence": 30}, [1, 1]),
        (at_second(-121) | {"incoming_sequence": 30}, [1, 1]),
        (at_second(3600), [2]),
        (at_second(3600) | {"producer_epoch": 1}, [1, 1]),
        (at_second(3600) | {"form": SequenceForm.EARLIEST_SEEN}, [1, 1]),
        (at_second(None) | {"incoming_sequence": 30}, [2]),
    ],
)
def test_one_event_is_of_one_producer_partition_and_time(
    other: dict[str, Any], expected: list[int]
) -> None:
    assert sizes(event(), event(**other)) == expected


def test_an_event_lasts_as_long_as_it_goes_on() -> None:
    steps = [event(**at_second(100 * n), incoming_sequence=30 + n) for n in range(4)]
    assert sizes(*steps) == [4]


def test_a_late_line_belongs_to_the_event_of_its_time() -> None:
    found = Pasted()
    found.add([
        event(),
        event(**at_second(1000), incoming_sequence=80, current_sequence=50),
        event(**at_second(1), incoming_sequence=30),
    ])  # fmt: skip
    assert [len(one.rejections) for one in found.events] == [2, 1]
    first = found.events[0]
    assert (first.first_at, first.last_at, first.brokers) == (at(0), at(1), [1])


def test_what_finds_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "EVENTS", 2)
    monkeypatch.setattr(pasted, "REJECTIONS", 3)
    found = Pasted()
    found.add(event(producer_id=producer) for producer in (1, 2, 3) for _ in range(5))
    assert [(len(one.rejections), one.not_kept) for one in found.events] == [(3, 2), (3, 2)]
    assert found.not_kept == 5


def unclean(**overrides: Any) -> UncleanChange:
    base: dict[str, Any] = {
        "origin": Origin(source="controller.log"),
        "topic": "orders",
        "partition": 0,
        "topic_id": TopicId("10MutW2kQReRXczn4GtumQ"),
        "leader": BrokerId(2),
    }
    return UncleanChange(**base | overrides)


def test_other_lines_of_the_partition_stand_beside_an_event() -> None:
    found, by_id = Pasted(), unclean(topic=None)
    found.add([
        unclean(),
        unclean(topic="refunds"),
        by_id,
        event(topic_id=TopicId("10MutW2kQReRXczn4GtumQ")),
        event(topic="refunds", topic_id=None),
        event(topic=None, partition=None),
    ])  # fmt: skip
    assert [found.beside(one) for one in found.events] == [
        [unclean(), by_id],
        [unclean(topic="refunds")],
        [],
    ]


def test_of_many_other_lines_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted, "PARTITIONS", 1)
    found = Pasted()
    found.add([unclean(leader_epoch=number) for number in range(30)])
    found.add([unclean(topic="refunds"), event(), event(topic="refunds")])
    orders, refunds = (found.beside(one) for one in found.events)
    assert orders == [unclean(leader_epoch=number) for number in range(10, 30)]
    assert refunds == []


def test_an_older_epoch_is_no_event() -> None:
    found = Pasted()
    found.add([
        EpochRejected(
            origin=Origin(source="server.log"),
            producer_id=1,
            topic="orders",
            partition=0,
            offset=3,
            producer_epoch=0,
            current_epoch=1,
        )
    ])  # fmt: skip
    assert (found.events, found.old_epochs) == ([], 1)
