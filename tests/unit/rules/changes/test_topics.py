"""What lists of topics prove: creations, deletions and partitions; what they lack proves nothing."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rules.facts.change_events import SUBJECTS_SHOWN, ChangeEventKind
from rules.facts.last_observation import microseconds
from rules.facts.memory import merge_stored, shift_times
from rules.facts.snapshot import Absence, Snapshot
from tests.factories import at, topic_id
from tests.unit.rules.changes.rounds import Told, observed, placed, play, told, with_new

BOTH = {"billing": 2, "orders": 3}
ORDERS = {"orders": 3}
DELETED = {"billing": Absence.DELETED}
HIDDEN = {"billing": Absence.HIDDEN}


class Case(NamedTuple):
    """The rounds of a case, and the change events that they show."""

    name: str
    why: str
    rounds: list[Snapshot]
    expected: list[Told]


def listing(seconds: float, counts: dict[str, int], **overrides: object) -> Snapshot:
    """Return a round that lists topics with so many partitions."""
    return observed(seconds, partitions=placed(counts), **overrides)


CASES = [
    Case(
        "first_round",
        "without a round before nothing has changed",
        [listing(0, BOTH)],
        [],
    ),
    Case(
        "quiet",
        "the same answers are no change",
        [listing(0, BOTH), listing(15, BOTH), listing(30, BOTH)],
        [],
    ),
    Case(
        "created",
        "a complete list lacked it, and all its partitions are in their first epoch",
        [listing(0, ORDERS), observed(15, partitions=with_new(BOTH, "billing"))],
        [("topic_created", "billing", None, "2 partitions")],
    ),
    Case(
        "appeared",
        "leaders changed before it was listed: it is older, and a permission hid it",
        [listing(0, ORDERS), listing(15, BOTH)],
        [("topic_appeared", "billing", None, "2 partitions")],
    ),
    Case(
        "after_an_incomplete_list",
        "the list before lacked some topics, perhaps this one",
        [
            listing(0, ORDERS, placement_complete=False),
            observed(15, partitions=with_new(BOTH, "billing")),
        ],
        [("topic_appeared", "billing", None, "2 partitions")],
    ),
    Case(
        "deleted",
        "no broker has a topic of this name",
        [listing(0, BOTH), listing(15, ORDERS, absences=DELETED), listing(30, ORDERS)],
        [("topic_deleted", "billing", "2 partitions", None)],
    ),
    Case(
        "not_listed",
        "brokers leave out what we may not see: a list alone proves no deletion",
        [listing(0, BOTH), listing(15, ORDERS), listing(30, ORDERS), listing(45, BOTH)],
        [],
    ),
    Case(
        "incomplete_list",
        "an incomplete list lacks topics that exist",
        [listing(0, BOTH), listing(15, {}, placement_complete=False), listing(30, BOTH)],
        [],
    ),
    Case(
        "unread_list",
        "a list that could not be read lacks all topics",
        [
            listing(0, BOTH),
            listing(15, {}, placement_complete=False, placement_read=False),
            listing(30, BOTH),
        ],
        [],
    ),
    Case(
        "hidden_once",
        "that a permission was lost is one event, and no deletion",
        [
            listing(0, BOTH),
            listing(15, ORDERS, absences=HIDDEN),
            listing(30, ORDERS, absences=HIDDEN),
            listing(45, BOTH),
        ],
        [("topic_hidden", "billing", "2 partitions", None)],
    ),
    Case(
        "deleted_while_hidden",
        "another topic id when it is visible again: it was created anew meanwhile",
        [
            listing(0, BOTH),
            listing(15, ORDERS, absences=HIDDEN),
            observed(30, partitions=placed(BOTH, billing=1)),
        ],
        [
            ("topic_hidden", "billing", "2 partitions", None),
            (
                "topic_recreated",
                "billing",
                topic_id("billing"),
                topic_id("billing", creation=1),
            ),
        ],
    ),
    Case(
        "recreated",
        "the same name has another topic id; how many partitions it has is of no matter",
        [listing(0, BOTH), observed(15, partitions=placed({"billing": 1, "orders": 3}, billing=1))],
        [
            (
                "topic_recreated",
                "billing",
                topic_id("billing"),
                topic_id("billing", creation=1),
            )
        ],
    ),
    Case(
        "recreated_then_an_older_answer",
        "a broker that is behind answers with the id before, which never returns",
        [
            listing(0, BOTH),
            observed(15, partitions=placed(BOTH, billing=1)),
            listing(30, BOTH),
            observed(45, partitions=placed(BOTH, billing=1)),
        ],
        [
            (
                "topic_recreated",
                "billing",
                topic_id("billing"),
                topic_id("billing", creation=1),
            )
        ],
    ),
    Case(
        "partitions_added",
        "more partitions of the same topic",
        [listing(0, ORDERS), listing(15, {"orders": 6}), listing(30, {"orders": 6})],
        [("partitions_added", "orders", "3", "6")],
    ),
    Case(
        "partitions_added_then_an_older_answer",
        "partitions never become fewer: the answer is of a broker that is behind",
        [listing(0, ORDERS), listing(15, {"orders": 6}), listing(30, ORDERS), listing(45, {"orders": 6})],
        [("partitions_added", "orders", "3", "6")],
    ),
    Case(
        "older_answer",
        "an earlier leader epoch: the whole list is older, also as to the topic that it lacks",
        [
            listing(0, BOTH),
            observed(15, partitions=placed(ORDERS, epoch=4), absences=DELETED),
            listing(30, BOTH),
        ],
        [],
    ),
    Case(
        "another_pattern",
        "the setting observes other topics now: they were not created, and the others not deleted",
        [
            listing(0, {"billing": 2}, topic_pattern="b.*"),
            observed(15, partitions=with_new(ORDERS, "orders"), topic_pattern="o.*"),
            observed(30, partitions=with_new(ORDERS | {"o": 1}, "o"), topic_pattern="o.*"),
        ],
        [("topic_created", "o", None, "1 partition")],
    ),
    Case(
        "another_cluster",
        "topics of another cluster id are no changes of this one",
        [listing(0, BOTH), listing(15, ORDERS, cluster_id="BBBBBBBBQACAAAAAAAAAAQ")],
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    events, _ = play(case.rounds)
    assert told(events) == case.expected, case.why


def test_an_event_happened_between_the_last_list_that_was_read_and_this_one() -> None:
    unread = listing(15, {}, placement_complete=False, placement_read=False)
    events, _ = play([listing(0, ORDERS), unread, listing(30, {"orders": 6})])
    assert [(event.since_us, event.seen_us) for event in events] == [(_us(0), _us(30))]


def test_what_changed_while_tidemark_was_not_running_is_an_event_of_its_first_round() -> None:
    _, memory = play([listing(0, ORDERS)])
    events, _ = play([listing(3600, {"orders": 6}), listing(3615, {"orders": 6})], memory)
    assert told(events) == [("partitions_added", "orders", "3", "6")]
    assert (events[0].since_us, events[0].seen_us) == (_us(0), _us(3600))


def test_what_is_stored_and_read_late_is_compared_with_the_first_round_of_the_process() -> None:
    """The database was away at the start: no change is reported twice, and none is left out."""
    _, stored = play([listing(0, ORDERS)])
    early, seen = play([listing(3600, {"orders": 6}), listing(3615, {"orders": 9})])
    late, _ = play(
        [listing(3630, {"orders": 9}), listing(3645, {"orders": 9})], merge_stored(stored, seen)
    )
    assert told(early) == [("partitions_added", "orders", "6", "9")]
    assert told(late) == [("partitions_added", "orders", "3", "6")]
    assert (late[0].since_us, late[0].seen_us) == (_us(0), _us(3600))


def test_a_topic_that_vanished_before_what_is_stored_was_read_late_is_checked_from_then_on() -> (
    None
):
    _, stored = play([listing(0, BOTH)])
    _, seen = play([listing(3600, ORDERS)])
    merged = merge_stored(stored, seen)
    events, _ = play([listing(3615, ORDERS), listing(3630, ORDERS, absences=DELETED)], merged)
    assert told(events) == [("topic_deleted", "billing", "2 partitions", None)]
    assert events[0].since_us == _us(0)


def test_a_clock_that_was_set_moves_the_time_before_along() -> None:
    _, memory = play([listing(0, ORDERS)])
    events, _ = play([listing(-3585, {"orders": 6})], shift_times(memory, -3600 * 1_000_000))
    assert (events[0].since_us, events[0].seen_us) == (_us(-3600), _us(-3585))


def test_a_clock_that_was_set_back_while_tidemark_was_not_running_gives_no_interval_that_ends_first() -> (
    None
):
    _, memory = play([listing(0, ORDERS)])
    events, _ = play([listing(-3600, {"orders": 6})], memory)
    assert (events[0].since_us, events[0].seen_us) == (_us(-3600), _us(-3600))


def test_a_thousand_topics_of_a_script_are_one_event() -> None:
    many = {f"job-{number:04}": 1 for number in range(1000)}
    events, _ = play([listing(0, ORDERS), observed(15, partitions=with_new(ORDERS | many, *many))])
    [event] = events
    assert (event.kind, event.count) == (ChangeEventKind.TOPIC_CREATED, 1000)
    assert [each.topic for each in event.subjects] == sorted(many)[:SUBJECTS_SHOWN]
    assert event.topics == tuple(sorted(many))


def test_topics_that_each_changed_in_another_way_are_one_event_where_they_are_many() -> None:
    before = {f"job-{number:02}": 1 for number in range(30)}
    after = {topic: 2 + number for number, topic in enumerate(before)}
    events, _ = play([listing(0, before), listing(15, after)])
    assert [(event.kind, event.count) for event in events] == [("partitions_added", 30)]


def _us(seconds: float) -> int:
    return microseconds(at(seconds))
