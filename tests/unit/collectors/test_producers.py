"""Producers: who is asked when, how often, and what a leader's silence leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from collectors import producers as producers_collector
from collectors.producers import HELD_SECONDS, MAX_PER_REQUEST, ProducersReader
from collectors.wire.api import DESCRIBE_PRODUCERS, Api
from collectors.wire.failure import Failure
from rules.facts.column import Column
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import Broker
from rules.facts.offsets import Offsets
from rules.facts.partitions import Partitions
from rules.facts.producers import NewestProducers, OpenProducer, Producers, ProducerState
from rules.question import ProducersQuestion
from service.runtime.clock import monotonic
from tests.factories import NOON, broker, ints, offsets, partitions, topic_id
from tests.unit.collectors.scripted_pool import Respond, scripted
from tests.unit.collectors.wire.transaction_messages import ProducerEntry, produced

FIRST, SECOND = broker(1), broker(2)
NOON_MS = int(NOON.timestamp() * 1000)
HOLDER: ProducerEntry = (7, 3, NOON_MS, -1, 90)
NOT_LEADER, READ_DENIED, UNKNOWN = 6, 29, 3
SILENT = Failure(GapCause.TIMEOUT, "127.0.0.1:9091: no answer within 5.0 s")

RoundRequests = list[tuple[int, list[tuple[str, int]]]]  # broker id, partitions


def held_by(*holders: ProducerEntry) -> Respond:
    """Answer for every partition that these producers have a transaction open on it."""

    def respond(_: Broker, __: Api, request: Any) -> bytes:
        return produced(dict.fromkeys(places(request), holders))

    return respond


def places(request: Any) -> list[tuple[str, int]]:
    return [(str(t.name), int(n)) for t in request.topics for n in t.partition_indexes]


def held(row_ends: Mapping[int, int], rows: int = 3, **overrides: Sequence[int | None]) -> Offsets:
    """Return offsets with high watermark 100 whose last stable offset is lower at some rows."""
    stable: list[int | None] = [row_ends.get(row, 100) for row in range(rows)]
    return offsets(rows, **{"last_stable_offset": stable, **overrides})


HELD = held({1: 90})


@dataclass
class Rounds:
    """Rounds of one reader, each at its second."""

    respond: Respond = field(default_factory=lambda: held_by(HOLDER))
    reader: ProducersReader = field(default_factory=ProducersReader)
    start: float = field(default_factory=monotonic)

    def at(
        self,
        second: float,
        ends: Offsets = HELD,
        placed: Partitions | None = None,
        questions: Sequence[ProducersQuestion] = (),
    ) -> RoundRequests:
        """Make a round; return who was asked about what."""
        brokers = (FIRST, SECOND)
        session, pool = scripted(brokers, self.respond, began=self.start + second)
        rows = partitions() if placed is None else placed
        self.found = self.reader.collect(session, rows, ends, questions)
        self.gaps = session.gaps
        assert len(self.found.observed) == len(rows)
        return [(asked.broker_id, places(r)) for asked, r in pool.of(DESCRIBE_PRODUCERS)]

    found: Producers = field(init=False)
    gaps: list[Any] = field(init=False)


ORDERS_1: RoundRequests = [(1, [("orders", 1)])]


def test_a_held_offset_is_asked_about_from_the_second_observation_on() -> None:
    rounds = Rounds()
    assert rounds.at(0) == []
    assert rounds.found.observed.tolist() == [False] * 3
    assert rounds.at(15) == ORDERS_1
    assert rounds.found.observed.tolist() == [False, True, False]
    assert rounds.found.open == (
        OpenProducer(
            row=1,
            producer_id=7,
            producer_epoch=3,
            coordinator_epoch=None,
            start_offset=90,
            last_record_at=NOON,
        ),
    )
    assert rounds.gaps == []
    assert rounds.at(30) == ORDERS_1


def test_a_healthy_load_causes_no_request() -> None:
    rounds = Rounds()
    for number in range(5):
        assert rounds.at(15 * number, held({0: 10 + number, 1: 90 - number, 2: 100})) == []
    assert rounds.reader.known_ids() == frozenset()


@pytest.mark.parametrize(
    ("second", "ends"),
    [
        pytest.param(HELD_SECONDS - 0.1, HELD, id="too-soon"),
        pytest.param(15, held({1: 91}), id="moved"),
        pytest.param(15, held({1: 90}, leader_epoch=[5, 6, 5]), id="another-leader-epoch"),
        pytest.param(15, held({1: 90}, high_watermark=[100, 90, 100]), id="nothing-open-any-more"),
        pytest.param(15, held({1: 90}, high_watermark=[100, None, 100]), id="not-known-to-be-open"),
    ],
)
def test_what_does_not_stand_is_not_asked_about(second: float, ends: Offsets) -> None:
    rounds = Rounds()
    rounds.at(0)
    assert rounds.at(second, ends) == []


def test_an_offset_that_moved_has_to_stand_anew() -> None:
    rounds = Rounds()
    rounds.at(0)
    assert rounds.at(15, held({1: 95})) == []
    assert rounds.at(15 + HELD_SECONDS - 0.1, held({1: 95})) == []
    assert rounds.at(15 + HELD_SECONDS, held({1: 95})) == ORDERS_1


def test_a_round_without_an_answer_forgets_nothing() -> None:
    rounds = Rounds()
    rounds.at(0)
    assert rounds.at(1, held({1: 90}, last_stable_offset=[None] * 3)) == []
    assert rounds.at(2) == ORDERS_1


def test_rows_that_move_are_the_same_partition_and_a_topic_created_again_is_not() -> None:
    rounds = Rounds()
    rounds.at(0)
    more = partitions({"early": 2, "orders": 3})
    assert rounds.at(15, held({3: 90}, rows=5), more) == ORDERS_1
    assert rounds.found.open[0].row == 3
    again = partitions({"orders": 3}, topic_ids=(topic_id("orders", creation=1),))
    assert rounds.at(30, HELD, again) == []
    assert rounds.at(45, HELD, again) == ORDERS_1


def test_topics_without_an_id_are_known_by_name() -> None:
    rounds, unnamed = Rounds(), partitions({"orders": 3}, topic_ids=(None,))
    rounds.at(0, HELD, unnamed)
    assert rounds.at(15, HELD, partitions({"orders": 3}, topic_ids=(None,))) == ORDERS_1


def test_a_question_is_answered_at_once_where_something_is_open() -> None:
    rounds, earlier = Rounds(), partitions({"early": 2, "orders": 3})
    question = ProducersQuestion(earlier, ints(3, 4))  # orders-1 is held, orders-2 is not
    assert rounds.at(0, questions=[question]) == ORDERS_1
    assert rounds.found.open[0].producer_id == 7


def test_every_producer_of_a_partition_is_asked_for_whatever_is_open_there() -> None:
    idle: ProducerEntry = (9, 4, NOON_MS, 0, -1)
    rounds = Rounds(respond=held_by(HOLDER, idle))
    question = ProducersQuestion(partitions(), ints(2), wants_every=True)
    assert rounds.at(0, questions=[question]) == [(1, [("orders", 2)])]
    assert rounds.found.epochs == {2: {7: 3, 9: 4}}
    assert rounds.at(2) == ORDERS_1
    assert rounds.found.epochs == {}


def test_the_state_of_a_producer_is_told_whatever_is_open() -> None:
    new: ProducerEntry = (9, 4, -1, 0, -1)  # of whose epoch nothing was appended
    rounds = Rounds(
        lambda _, __, request: produced(
            dict.fromkeys(places(request), (HOLDER, new)), last_sequences={9: -1}
        )
    )
    ids = frozenset({7, 9, 11})
    questions = [ProducersQuestion(partitions(), ints(2), wants_states_of=ids)]
    assert rounds.at(0, questions=questions) == [(1, [("orders", 2)])]
    known = ProducerState(producer_epoch=3, last_sequence=4, last_record_at=NOON)
    fresh = ProducerState(producer_epoch=4, last_sequence=None, last_record_at=None)
    assert rounds.found.states == {2: {7: known, 9: fresh}}, "nothing is known of 11"
    assert rounds.found.epochs == {}


def test_the_producers_that_wrote_last_are_told_and_how_many_there_are() -> None:
    late: ProducerEntry = (9, 4, NOON_MS + 5, 0, -1)
    never: ProducerEntry = (11, 0, -1, 0, -1)
    rounds = Rounds(respond=held_by(HOLDER, never, late))
    question = ProducersQuestion(partitions(), ints(2), newest_producers=2)
    assert rounds.at(0, questions=[question]) == [(1, [("orders", 2)])]
    assert rounds.found.newest == {2: NewestProducers(ids=(9, 7), count=3)}
    assert rounds.at(2) == ORDERS_1
    assert rounds.found.newest == {}


def test_states_that_two_rules_ask_for_are_one_request() -> None:
    rounds = Rounds()
    questions = [
        ProducersQuestion(partitions(), ints(2), wants_states_of=frozenset({number}))
        for number in (7, 9)
    ]
    assert rounds.at(0, questions=questions) == [(1, [("orders", 2)])]
    assert set(rounds.found.states[2]) == {7}


def test_a_state_that_was_not_told_is_no_answer() -> None:
    rounds = Rounds(lambda *_: SILENT)
    question = ProducersQuestion(partitions(), ints(2), wants_states_of=frozenset({7}))
    rounds.at(0, questions=[question])
    assert (rounds.found.states, rounds.found.observed.any()) == ({}, np.False_)


def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    rounds = Rounds()
    placed = partitions({"orders": 3, "stock": 2}, leader=Column.of([1, 2, 1, 2, 2]))
    ends = held({0: 1, 1: 2, 2: 3, 3: 4, 4: 100}, rows=5)
    rounds.at(0, ends, placed)
    assert rounds.at(15, ends, placed) == [
        (1, [("orders", 0), ("orders", 2)]),
        (2, [("orders", 1), ("stock", 0)]),
    ]
    assert [one.row for one in rounds.found.open] == [0, 1, 2, 3]


def test_open_producers_are_ordered_and_absence_is_no_sentinel() -> None:
    later: ProducerEntry = (8, 0, -1, 12, 95)
    idle: ProducerEntry = (9, 0, NOON_MS, 12, -1)
    lying: ProducerEntry = (10, 0, 2**62, 12, 97)
    rounds = Rounds(held_by(lying, later, idle, HOLDER))
    rounds.at(0)
    rounds.at(15)
    assert [
        (one.producer_id, one.start_offset, one.coordinator_epoch, one.last_record_at)
        for one in rounds.found.open
    ] == [(7, 90, None, NOON), (8, 95, 12, None), (10, 97, 12, None)]
    assert rounds.reader.known_ids() == {7, 8, 10}


def test_a_observation_that_finds_nobody_is_a_observation() -> None:
    rounds = Rounds(held_by())
    rounds.at(0)
    rounds.at(15)
    assert (rounds.found.observed.tolist(), rounds.found.open) == ([False, True, False], ())


def refusing(codes: Mapping[int, int]) -> Respond:
    """Refuse some partitions of `orders` with an error code, answer for the others."""

    def respond(_: Broker, __: Api, request: Any) -> bytes:
        return produced({place: codes.get(place[1], (HOLDER,)) for place in places(request)})

    return respond


def test_one_partition_that_is_rejected_costs_nothing_of_the_others() -> None:
    rounds = Rounds(refusing({0: READ_DENIED, 2: READ_DENIED}))
    ends = held({0: 90, 1: 90, 2: 90})
    rounds.at(0, ends)
    rounds.at(15, ends)
    assert rounds.found.observed.tolist() == [False, True, False]
    [gap] = rounds.gaps
    assert (gap.scope, gap.cause) == (GapScope.PRODUCERS, GapCause.NOT_AUTHORIZED)
    assert "needs READ on Topic orders" in gap.why
    assert "2 partitions (orders-0, orders-2)" in gap.what


@pytest.mark.parametrize(
    ("respond", "cause"),
    [
        pytest.param(refusing({1: NOT_LEADER}), GapCause.LEADER_CHANGING, id="not-the-leader"),
        pytest.param(refusing({1: UNKNOWN}), GapCause.GONE, id="deleted"),
        pytest.param(lambda *_: SILENT, GapCause.TIMEOUT, id="late"),
        pytest.param(lambda *_: b"\0", GapCause.UNREADABLE, id="unreadable"),
        pytest.param(lambda *_: produced({}), GapCause.UNREADABLE, id="left-out"),
        pytest.param(
            lambda *_: produced({("orders", 0): (HOLDER,)}), GapCause.UNREADABLE, id="not-asked-for"
        ),
    ],
)
def test_what_a_leader_did_not_tell_is_a_gap(respond: Respond, cause: GapCause) -> None:
    rounds = Rounds(respond)
    rounds.at(0)
    assert rounds.at(15) == ORDERS_1
    assert (rounds.found.observed.any(), rounds.found.open) == (np.False_, ())
    assert [gap.cause for gap in rounds.gaps] == [cause]


def test_brokers_without_the_request_are_a_gap() -> None:
    rounds = Rounds()
    rounds.at(0)
    session, pool = scripted(
        [FIRST], held_by(), too_old=[DESCRIBE_PRODUCERS], began=rounds.start + 15
    )
    rounds.reader.collect(session, partitions(), HELD, ())
    assert pool.requests == []
    assert [gap.cause for gap in session.gaps] == [GapCause.UNSUPPORTED]


def test_holders_are_remembered_while_their_partition_is_held() -> None:
    rounds = Rounds()
    rounds.at(0)
    rounds.at(15)
    assert rounds.reader.known_ids() == {7}
    rounds.respond = lambda *_: SILENT
    rounds.at(30)
    assert rounds.reader.known_ids() == {7}
    rounds.respond = held_by((8, 0, NOON_MS, -1, 90))
    rounds.at(45)
    assert rounds.reader.known_ids() == {8}
    rounds.at(60, held({}))
    assert rounds.reader.known_ids() == frozenset()


def test_too_many_partitions_of_a_leader_have_their_turn_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producers_collector, "MAX_PER_REQUEST", 1)
    monkeypatch.setattr(producers_collector, "MAX_REQUESTS", 2)
    rounds, ends = Rounds(), held({0: 90, 1: 90, 2: 90})
    rounds.at(0, ends)
    asked: list[list[int]] = []
    for second in (15, 30, 45):
        asked.append([number for _, about in rounds.at(second, ends) for _, number in about])
        [gap] = rounds.gaps
        assert (gap.cause, gap.scope) == (GapCause.LIMIT, GapScope.PRODUCERS)
    assert asked == [[0, 1], [2, 0], [1, 0]]


def test_more_partitions_of_a_leader_than_fit_one_request_are_asked_about_in_one_round() -> None:
    rows = 2 * MAX_PER_REQUEST + 1
    rounds, placed = Rounds(), partitions({"orders": rows})
    ends = held(dict.fromkeys(range(rows), 90), rows)
    rounds.at(0, ends, placed)
    asked = rounds.at(15, ends, placed)
    assert [(leader, len(about)) for leader, about in asked] == [
        (1, MAX_PER_REQUEST),
        (1, MAX_PER_REQUEST),
        (1, 1),
    ]
    assert (rounds.found.observed.all(), rounds.gaps) == (np.True_, [])
    assert len(rounds.found.open) == rows


def test_requests_without_an_answer_come_first_in_the_next_round_but_for_the_slowest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producers_collector, "MAX_PER_REQUEST", 1)
    rounds, ends = Rounds(), held({0: 90, 1: 90, 2: 90})
    rounds.at(0, ends)
    rounds.respond = lambda *_: SILENT
    assert [about for _, about in rounds.at(15, ends)] == [
        [("orders", number)] for number in (0, 1, 2)
    ]
    assert [about for _, about in rounds.at(30, ends)] == [
        [("orders", number)] for number in (1, 2, 0)
    ]
    assert [gap.cause for gap in rounds.gaps] == [GapCause.TIMEOUT]


def test_a_leader_that_is_not_registered_is_left_out() -> None:
    rounds, placed = Rounds(), partitions(leader=Column.of([1, 9, 1]))
    rounds.at(0, HELD, placed)
    assert rounds.at(15, HELD, placed) == []
    assert rounds.found.observed.tolist() == [False] * 3
