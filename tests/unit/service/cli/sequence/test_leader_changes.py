"""What given lines tell of a leader that changed uncleanly, and what a rejection after it then is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rules.facts.broker_log import UncleanChange
from rules.facts.episodes import ChangeKind
from rules.facts.identity import BrokerId
from service.cli.sequence.leader_changes import describe_changes
from tests.unit.service.cli.sequence.given import TOPIC_ID, reading_all, rejected
from tests.unit.service.cli.sequence.lost import (
    ALONE,
    ASKED,
    CONTROLLER,
    CUT,
    FOLLOWS,
    OLD_LEADER,
    UNCLEAN,
    WENT_BACK,
    line_events,
)

REJECTED = {"broker-2.log": rejected(27, 2, offset=3, second=600, broker=2)}


def test_a_controller_and_the_old_leader_tell_the_exact_range() -> None:
    (change,) = describe_changes(line_events(CONTROLLER | OLD_LEADER), 0)
    assert (change.kind, change.leader_epoch) == (ChangeKind.LOST, 1)
    assert (change.leader_before, change.leader) == (1, 2)
    assert (change.epoch_end, change.lost_from, change.lost_to) == (3, 3, 27)


def test_the_controller_alone_tells_that_records_may_be_gone() -> None:
    (change,) = describe_changes(line_events(CONTROLLER), 0)
    assert (change.kind, change.lost_to) == (ChangeKind.UNCLEAN, None)


def test_the_old_leader_alone_proves_what_was_committed() -> None:
    (change,) = describe_changes(line_events(OLD_LEADER), 0)
    assert (change.kind, change.leader_before, change.leader) == (ChangeKind.LOST, 1, 2)
    assert (change.lost_from, change.lost_to) == (3, 27)


@pytest.mark.parametrize(
    "left",
    [
        [FOLLOWS, CUT],  # a clean change: nobody was told of what it alone had
        [ASKED, FOLLOWS, CUT],  # frozen until another one led: nobody took what it asked for
        [ALONE, ALONE.replace("to 1 ", "to 1,2 ").replace("59:00", "59:30"), FOLLOWS, CUT],
        [ALONE, FOLLOWS.replace("from offset 27", "from offset 3"), CUT, WENT_BACK],
        [ALONE, FOLLOWS, WENT_BACK],
        [ALONE, CUT, WENT_BACK],
    ],
    ids=["clean", "frozen", "joined again", "cut at its own end", "not cut", "never followed"],
)
def test_harmless_lines_of_a_returning_replica_tell_of_no_change(left: list[str]) -> None:
    assert describe_changes(line_events({"broker-1.log": left}), 0) == ()


def test_an_election_of_the_last_known_leader_is_not_held_against_it() -> None:
    (unclean,) = line_events(CONTROLLER)
    assert isinstance(unclean, UncleanChange)
    (change,) = describe_changes([replace(unclean, elr_before=(BrokerId(2),))], 0)
    assert change.kind is ChangeKind.NOT_KNOWN


def test_lines_of_one_election_are_one_change_of_the_earliest_time() -> None:
    again = UNCLEAN.replace("12:00:01", "13:00:01")
    (change,) = describe_changes(line_events({"a": [again], "b": [UNCLEAN]}), 0)
    (first,) = describe_changes(line_events(CONTROLLER), 0)
    assert change == first


def test_lines_of_several_logs_are_held_together() -> None:
    found = reading_all(REJECTED | CONTROLLER | OLD_LEADER)
    (event,) = found.events
    assert event.is_by_lines
    row = event.row
    assert (row["class"], row["phase"], row["reason"]) == ("loss", "suspected", "unclean_change")
    (change,) = row["changes"]
    assert (change["kind"], change["lost_from"], change["lost_to"]) == ("lost", 3, 27)
    assert row["next_command"] == (
        "tidemark sequence explain broker-2.log controller.log broker-1.log "
        "--bootstrap-servers HOST:PORT"
    )


def test_a_small_gap_after_an_unclean_change_is_no_reordering() -> None:
    (event,) = reading_all(
        {"b": rejected(4, 2, offset=3, second=600, broker=2)} | CONTROLLER
    ).events
    assert event.by_numbers.class_ == "reordering"
    assert (event.row["class"], event.row["at_most_records"]) == (
        "loss",
        1,
    ) or not event.is_by_lines


def test_a_controller_s_log_without_a_change_is_not_asked_for() -> None:
    around = [
        f"[2026-11-21 {time},000] INFO [QuorumController id=100] Replayed nothing (org.apache)"
        for time in ("11:00:00", "13:00:00")
    ]
    (event,) = reading_all(REJECTED | {"c.log": around}).events
    assert event.row["check"].startswith(
        "The controller's log, c.log, shows no unclean change from 2026-11-21 11:00:00 to "
        "2026-11-21 13:00:00 UTC: check whether"
    )
    (later,) = reading_all(REJECTED | {"c.log": around[1:]}).events
    assert "UNCLEAN partition change" in later.row["check"]


def test_a_change_of_an_older_topic_says_nothing() -> None:
    other = UNCLEAN.replace(TOPIC_ID, "A" * 21 + "B")
    (event,) = reading_all(REJECTED | {"controller.log": [other]}).events
    assert (event.changes, event.is_by_lines) == ((), False)
