"""Ends of leader epochs: who is asked about which, how often, and what silence leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collectors import epoch_ends as epoch_end_collector
from collectors.epoch_ends import EpochEndReader
from collectors.wire.api import OFFSET_FOR_LEADER_EPOCH
from collectors.wire.failure import Failure
from rules.facts.column import Column
from rules.facts.gap import GapCause, GapScope
from rules.facts.groups import Commits
from rules.facts.partitions import Partitions
from tests.factories import commits, offsets, partitions, topic_id
from tests.unit.collectors.epoch_rounds import (
    BROKEN,
    FIRST,
    NONE,
    Rounds,
    about,
    answering,
    committed_in,
    ended,
    ends_answer,
    places,
    refusing,
)
from tests.unit.collectors.scripted_pool import Respond, scripted

NOT_LEADER, DESCRIBE_DENIED, FENCED, NEWER = 6, 29, 74, 75
SILENT = Failure(GapCause.TIMEOUT, "127.0.0.1:9091: no answer within 5.0 s")


def test_a_healthy_round_asks_nothing() -> None:
    rounds = Rounds()
    for _ in range(3):
        assert rounds.read(committed=committed_in(5, None, 5)) == []
        assert (rounds.reported, rounds.gaps) == ([], [])


def test_a_leader_change_is_asked_about_in_the_very_round_that_sees_it() -> None:
    rounds = Rounds()
    rounds.read()
    assert rounds.read((5, 7, 5)) == [(1, [("orders", 1, 5)])]
    assert rounds.reported == [(1, 5, 5, 1005)]
    [request] = rounds.requests
    [asked] = request.topics[0].partitions
    assert (int(request.replica_id), int(asked.current_leader_epoch)) == (-1, 7)
    assert rounds.read((5, 7, 5)) == []
    assert rounds.reported == []


def test_the_next_change_is_asked_about_too() -> None:
    rounds = Rounds()
    rounds.read()
    rounds.read((5, 7, 5))
    assert rounds.read((5, 8, 5)) == [(1, [("orders", 1, 7)])]


def test_the_answer_may_be_of_a_lower_epoch() -> None:
    rounds = Rounds(answering(lambda *_: (0, 3, 40)))
    rounds.read(questions=[about((0, 4))])
    assert rounds.reported == [(0, 4, 3, 40)]


def test_a_commit_of_an_older_epoch_is_asked_about_once() -> None:
    rounds, older = Rounds(), committed_in(3, 5, None)
    assert rounds.read(committed=older) == [(1, [("orders", 0, 3)])]
    assert rounds.reported == [(0, 3, 3, 3)]
    for _ in range(3):
        assert rounds.read(committed=older) == []
        assert rounds.reported == [(0, 3, 3, 3)]


def test_groups_share_an_answer() -> None:
    rounds = Rounds()
    two = commits((0, 0, 10), (1, 0, 20), epochs=(3, 3))
    assert rounds.read(committed=two) == [(1, [("orders", 0, 3)])]


def test_a_question_of_earlier_rows_is_about_the_same_partitions() -> None:
    rounds, earlier = Rounds(), partitions({"early": 2, "orders": 3, "gone": 1})
    question = about((5, 1), (3, 4), placed=earlier)
    assert rounds.read(questions=[question]) == [(1, [("orders", 1, 4)])]
    assert rounds.reported == [(1, 4, 4, 1004)]
    assert rounds.gaps == []


def test_a_question_about_a_topic_created_again_is_about_another_one() -> None:
    rounds = Rounds()
    again = partitions(topic_ids=(topic_id("orders", creation=1),))
    assert rounds.read(placed=again, questions=[about((0, 4))]) == []


def test_all_who_want_the_same_share_one_request_and_the_rows_are_ordered() -> None:
    rounds = Rounds()
    rounds.read()
    asked = rounds.read(
        (6, 5, 6), committed=committed_in(5, 4, None), questions=[about((2, 5), (0, 5))]
    )
    assert asked == [(1, [("orders", 0, 5), ("orders", 1, 4), ("orders", 2, 5)])]
    assert [(row, epoch) for row, epoch, _, _ in rounds.reported] == [(0, 5), (1, 4), (2, 5)]


def test_an_epoch_of_which_the_log_has_nothing_is_answered_all_the_same() -> None:
    rounds = Rounds(answering(lambda *_: (0, *NONE)))
    rounds.read(questions=[about((0, 99))])
    assert (rounds.reported, rounds.gaps) == ([(0, 99, None, None)], [])
    assert rounds.read(questions=[about((0, 99))]) == []
    assert rounds.reported == [(0, 99, None, None)]


def test_several_epochs_of_a_partition_are_pipelined_requests() -> None:
    rounds = Rounds()
    asked = rounds.read(questions=[about((0, 4), (0, 2), (1, 4), (0, 3))])
    assert asked == [
        (1, [("orders", 0, 2), ("orders", 1, 4)]),
        (1, [("orders", 0, 3)]),
        (1, [("orders", 0, 4)]),
    ]
    assert [one[:2] for one in rounds.reported] == [(0, 2), (0, 3), (0, 4), (1, 4)]


def test_each_leader_is_asked_once_for_all_its_partitions() -> None:
    rounds = Rounds()
    placed = partitions({"orders": 3, "stock": 2}, leader=Column.of([1, 2, 1, 2, 2]))
    rounds.read([5] * 5, placed=placed)
    assert rounds.read([6] * 5, placed=placed) == [
        (1, [("orders", 0, 5), ("orders", 2, 5)]),
        (2, [("orders", 1, 5), ("stock", 0, 5), ("stock", 1, 5)]),
    ]
    assert [end for *_, end in rounds.reported] == [5, 1005, 2005, 5, 1005]


def test_an_answer_is_asked_for_again_in_another_leader_epoch() -> None:
    rounds, older = Rounds(), committed_in(3, None, None)
    rounds.read(committed=older)
    rounds.respond = answering(lambda *_: (0, 3, 2))
    assert rounds.read((6, 5, 5), committed=older) == [
        (1, [("orders", 0, 5)]),
        (1, [("orders", 0, 3)]),
    ]
    assert rounds.reported == [(0, 3, 3, 2), (0, 5, 3, 2)]


def test_an_answer_of_a_topic_created_again_is_another_one() -> None:
    rounds, older = Rounds(), committed_in(3, None, None)
    rounds.read(committed=older)
    again = partitions(topic_ids=(topic_id("orders", creation=1),))
    assert rounds.read(committed=older, placed=again) == [(1, [("orders", 0, 3)])]
    assert rounds.read((6, 6, 6), placed=partitions()) == []


def test_answers_follow_rows_that_move() -> None:
    rounds = Rounds()
    rounds.read(questions=[about((0, 4), (2, 3))])
    more = partitions({"early": 2, "orders": 3})
    assert rounds.read([5] * 5, placed=more, questions=[about((0, 4), (2, 3))]) == []
    assert rounds.reported == [(2, 4, 4, 4), (4, 3, 3, 2003)]
    swapped = partitions({"orders": 3, "early": 2})
    asked = rounds.read([6, 5, 5, 6, 5], placed=swapped, questions=[about((2, 3))])
    assert asked == [(1, [("orders", 0, 5), ("early", 0, 5)])]
    assert [one[:2] for one in rounds.reported] == [(0, 5), (2, 3), (3, 5)]


def test_answers_follow_topics_that_change_places() -> None:
    rounds = Rounds()
    older = commits((0, 0, 10), (0, 1, 10), epochs=(3, 4))
    rounds.read((5, 5), placed=partitions({"orders": 1, "stock": 1}), committed=older)
    swapped = commits((0, 1, 10), (0, 0, 10), epochs=(3, 4))
    placed = partitions({"stock": 1, "orders": 1})
    assert rounds.read((5, 5), placed=placed, committed=swapped) == []
    assert rounds.reported == [(0, 4, 4, 4), (1, 3, 3, 3)]


def test_the_log_end_that_is_told_of_the_present_epoch_is_not_kept() -> None:
    rounds = Rounds(answering(lambda *_: (0, 5, 100)))
    rounds.read(questions=[about((0, 5))])
    assert rounds.reported == [(0, 5, 5, 100)]
    rounds.respond = answering(lambda *_: (0, 5, 120))
    assert rounds.read(questions=[about((0, 5))]) == [(1, [("orders", 0, 5)])]
    assert rounds.reported == [(0, 5, 5, 120)]


def test_a_commit_that_is_unseen_for_a_round_does_not_cost_another_request() -> None:
    rounds, older = Rounds(), committed_in(3, None, None)
    rounds.read(committed=older)
    assert rounds.read() == []
    assert rounds.reported == []
    assert rounds.read(committed=older) == []
    assert rounds.reported == [(0, 3, 3, 3)]


def test_an_answer_that_is_unseen_for_a_round_is_found_beside_those_that_are_seen() -> None:
    rounds, placed = Rounds(), partitions()
    both, one = committed_in(4, None, 3), committed_in(None, None, 3)
    rounds.read(placed=placed, committed=both)
    rounds.read(placed=placed, committed=one)
    assert rounds.read(placed=placed, committed=both) == []
    assert [pair[:2] for pair in rounds.reported] == [(0, 4), (2, 3)]


def test_what_nobody_asks_any_more_is_forgotten() -> None:
    rounds, older = Rounds(), committed_in(3, None, None)
    rounds.read(committed=older)
    rounds.read()
    rounds.read()
    assert rounds.read(committed=older) == [(1, [("orders", 0, 3)])]


def test_nothing_is_told_while_a_leader_gives_no_answer_and_nothing_is_forgotten() -> None:
    rounds, older = Rounds(), committed_in(3, None, None)
    rounds.read(committed=older)
    for _ in range(3):
        assert rounds.read((None, 5, 5), committed=older, questions=[about((0, 4))]) == []
        assert (rounds.reported, rounds.gaps) == ([], [])
    assert rounds.read(committed=older) == []
    assert rounds.reported == [(0, 3, 3, 3)]


def test_a_change_behind_a_silence_is_seen() -> None:
    rounds = Rounds()
    rounds.read()
    rounds.read((None, None, 5))
    assert rounds.read((6, 5, 5)) == [(1, [("orders", 0, 5)])]


@pytest.mark.parametrize(
    ("respond", "cause"),
    [
        pytest.param(refusing({1: NOT_LEADER}), GapCause.LEADER_CHANGING, id="not-the-leader"),
        pytest.param(refusing({1: FENCED}), GapCause.LEADER_CHANGING, id="a-newer-epoch-there"),
        pytest.param(refusing({1: NEWER}), GapCause.LEADER_CHANGING, id="an-older-epoch-there"),
        pytest.param(refusing({1: DESCRIBE_DENIED}), GapCause.NOT_AUTHORIZED, id="rejected"),
        pytest.param(refusing({1: BROKEN}), GapCause.BROKER_ERROR, id="another-error"),
        pytest.param(lambda *_: SILENT, GapCause.TIMEOUT, id="late"),
        pytest.param(lambda *_: b"\0", GapCause.UNREADABLE, id="unreadable"),
        pytest.param(lambda *_: ends_answer({}), GapCause.UNREADABLE, id="left-out"),
        pytest.param(
            lambda *_: ends_answer({"orders": {7: (0, 5, 1)}, "stock": {1: (0, 5, 1)}}),
            GapCause.UNREADABLE,
            id="not-asked-for",
        ),
    ],
)
def test_what_a_leader_did_not_tell_is_a_gap_and_asked_again(
    respond: Respond, cause: GapCause
) -> None:
    rounds = Rounds(respond)
    rounds.read()
    for _ in range(2):
        assert rounds.read((5, 6, 5)) == [(1, [("orders", 1, 5)])]
        assert rounds.reported == []
        [gap] = rounds.gaps
        assert (gap.scope, gap.cause) == (GapScope.EPOCHS, cause)
        assert gap.what == "where leader epochs of 1 partition ended (orders-1)"
    rounds.respond = answering(ended)
    assert rounds.read((5, 6, 5)) == [(1, [("orders", 1, 5)])]
    assert (rounds.reported, rounds.gaps) == ([(1, 5, 5, 1005)], [])
    assert rounds.read((5, 6, 5)) == []


def test_a_change_that_was_not_answered_is_wanted_over_the_next_one() -> None:
    rounds = Rounds(lambda *_: SILENT)
    rounds.read()
    rounds.read((5, 6, 5))
    rounds.respond = answering(ended)
    assert rounds.read((5, 7, 5)) == [(1, [("orders", 1, 5)])]


def test_the_answer_about_another_epoch_does_not_settle_a_change() -> None:
    rounds = Rounds(answering(lambda *pair: (BROKEN, *NONE) if pair[2] == 5 else ended(*pair)))
    rounds.read()
    rounds.read((6, 5, 5), questions=[about((0, 3))])
    assert rounds.reported == [(0, 3, 3, 3)]
    assert rounds.read((6, 5, 5)) == [(1, [("orders", 0, 5)])]


def test_rejections_are_grouped_and_cost_nothing_of_the_others() -> None:
    rounds = Rounds(refusing({0: DESCRIBE_DENIED, 2: DESCRIBE_DENIED}))
    rounds.read(questions=[about((0, 3), (0, 4), (1, 4), (2, 4))])
    assert rounds.reported == [(1, 4, 4, 1004)]
    [gap] = rounds.gaps
    assert "needs DESCRIBE on Topic orders" in gap.why
    assert gap.what == "where leader epochs of 2 partitions ended (orders-0, orders-2)"


def test_brokers_without_the_request_are_a_gap_where_something_is_wanted() -> None:
    reader, later = EpochEndReader(), offsets(leader_epoch=(5, 6, 5))
    causes: list[list[GapCause]] = []
    for ends, asked in ((offsets(), []), (later, []), (later, []), (later, [about((0, 4))])):
        session, pool = scripted([FIRST], answering(ended), too_old=[OFFSET_FOR_LEADER_EPOCH])
        found = reader.collect(session, partitions(), ends, Commits.none(), asked)
        assert (len(found), pool.requests) == (0, [])
        causes.append([gap.cause for gap in session.gaps])
    assert causes == [[], [GapCause.UNSUPPORTED], [], [GapCause.UNSUPPORTED]]


def test_topics_without_an_id_are_a_gap_where_something_is_wanted() -> None:
    rounds, counts = Rounds(), {"orders": 2, "stock": 1}
    ids = (None, topic_id("stock"))

    def placed() -> Partitions:
        return partitions(counts, topic_ids=ids)

    rounds.read(placed=placed())
    assert rounds.gaps == []
    assert rounds.read((5, 6, 6), placed=placed()) == [(1, [("stock", 0, 5)])]
    [gap] = rounds.gaps
    assert (gap.scope, gap.cause) == (GapScope.EPOCHS, GapCause.UNSUPPORTED)
    assert gap.what == "where leader epochs of 1 partition ended (orders-1)"
    assert rounds.read((5, 6, 6), placed=placed()) == []
    assert rounds.gaps == []
    rounds.read((5, 6, 6), placed=placed(), questions=[about((0, 3), placed=placed())])
    assert [gap.cause for gap in rounds.gaps] == [GapCause.UNSUPPORTED]


def test_memory_is_bounded_by_what_two_rounds_wanted() -> None:
    rounds = Rounds()
    for number in range(20):
        epochs = (100 + number, 5, 5)
        rounds.read(epochs, questions=[about(*((0, number * 4 + one) for one in range(4)))])
    assert len(rounds.reader._remembered) <= 2 * (4 + 1)  # noqa: SLF001 - nothing else shows it


def test_epochs_that_cannot_be_are_not_asked_about() -> None:
    rounds = Rounds()
    assert rounds.read(questions=[about((0, -1), (1, 2**31))]) == []
    assert (rounds.reported, rounds.gaps) == ([], [])


def test_a_cluster_without_topics_asks_nothing() -> None:
    rounds = Rounds()
    assert rounds.read((), placed=Partitions.none()) == []
    assert rounds.read() == []
    assert rounds.read((), placed=Partitions.none()) == []


@pytest.mark.parametrize("version", [3, 4])
def test_both_versions_carry_the_same(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    older_broker = replace(OFFSET_FOR_LEADER_EPOCH, newest=version)
    monkeypatch.setattr(epoch_end_collector, "OFFSET_FOR_LEADER_EPOCH", older_broker)
    told = ends_answer({"orders": {0: (0, 3, 40)}}, version=version)
    session, pool = scripted([FIRST], lambda *_: told)
    found = EpochEndReader().collect(
        session, partitions(), offsets(), Commits.none(), [about((0, 4))]
    )
    [(_, request)] = pool.of(older_broker)
    assert request.__version__ == version
    assert (int(request.replica_id), places(request)) == (-1, [("orders", 0, 4)])
    assert (found.found_epoch[0], found.end_offset[0]) == (3, 40)
