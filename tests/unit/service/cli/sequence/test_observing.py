"""The rounds that ask the brokers about pasted lines: as few as it takes, and what they prove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rules.errors import UnreachableError
from rules.facts.broker_log import (
    FollowerStarted,
    LogEvent,
    LogTruncated,
    Origin,
    UncleanChange,
    WatermarkWentBack,
)
from rules.facts.gap import GapCause, GapScope
from rules.facts.identity import BrokerId
from rules.facts.snapshot import Snapshot
from rules.question import (
    BatchesQuestion,
    EpochEndQuestion,
    ProducersQuestion,
    TransactionsQuestion,
)
from service.cli.sequence.input_logs import InputLog
from service.cli.sequence.observing import AT_MOST, observe
from service.observe.cluster_reader import Scope
from tests.factories import at, gap
from tests.unit.rules.sequence.lines import rejected
from tests.unit.rules.sequence.stage import Observation, batch, found, remembered
from tests.unit.service.cli.sequence.given import read_events

OLD = found(batch(97, 0, 3))  # sequences 0 to 2, of leader epoch 5
NOT_READABLE = gap(scope=GapScope.BATCHES, cause=GapCause.NOT_AUTHORIZED)


@dataclass
class Brokers:
    """Rounds in a list; the last one is seen again and again."""

    observations: Sequence[Observation]
    scopes: list[Scope] = field(default_factory=list)

    def read(self, scope: Scope) -> Snapshot:
        self.scopes.append(scope)
        number = len(self.scopes) - 1
        seen = self.observations[min(number, len(self.observations) - 1)]
        return replace(seen, second=1000.0 + number).snapshot()

    @property
    def queries(self) -> list[set[type]]:
        """Return the kinds of questions of each round."""
        return [{type(one) for one in scope.questions} for scope in self.scopes]


def seen(
    *observations: Observation,
    lines: Sequence[LogEvent] = (rejected(27, 2),),
    is_zone_given: bool = False,
) -> dict[str, Any]:
    (row,) = observe(Brokers(observations), read_events(lines), is_zone_given=is_zone_given).rows
    return row


def said(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["class"], row["phase"], row["reason"]


def test_a_batch_of_the_present_leader_epoch_settles_it_in_two_rounds() -> None:
    brokers = Brokers(
        [Observation(second=0), Observation(second=0, found=[OLD], states=remembered(2))]
    )
    (row,) = observe(brokers, read_events([rejected(27, 2)])).rows
    assert said(row) == ("reordering", "confirmed", "same_leader_epoch")
    questions = {BatchesQuestion, ProducersQuestion, TransactionsQuestion}
    assert brokers.queries == [set(), questions]
    evidence = row["evidence"]
    assert (evidence["appended_leader_epoch"], evidence["leader_epoch_now"]) == (5, 5)
    assert (evidence["state_last_sequence"], evidence["log_end_offset_now"]) == (2, 100)
    assert (row["id"], row["next_command"]) == (None, None)


def test_only_the_topics_of_the_lines_are_observed_at() -> None:
    brokers = Brokers([Observation(second=0)])
    observe(
        brokers,
        read_events([rejected(27, 2), rejected(27, 2, topic="a.b"), rejected(27, 2, topic=None)]),
    )
    pattern = brokers.scopes[0].topics
    assert pattern is not None
    names = [name for name in ("orders", "a.b", "axb", "order") if pattern.fullmatch(name)]
    assert names == ["orders", "a.b"]
    groups = brokers.scopes[0].groups
    assert groups is not None
    assert groups.fullmatch("") is None


def test_a_leader_that_changed_unseen_proves_nothing() -> None:
    found_old = Observation(second=0, epoch=7, found=[OLD])
    told = replace(found_old, ends=((0, 5, 100),))
    brokers = Brokers([Observation(second=0, epoch=7), found_old, told])
    (row,) = observe(brokers, read_events([rejected(27, 2)])).rows
    assert (row["class"], row["phase"]) == ("loss", "suspected")
    assert row["evidence"]["appended_epoch_end"] == 100
    assert EpochEndQuestion in brokers.queries[2]
    assert row["next_command"] == "grep 'UNCLEAN partition change for orders-0 ' CONTROLLER_LOG"


BY_BROKER_2 = Observation(second=0, leader=2, epoch=6)
AFTERWARDS = replace(BY_BROKER_2, found=[OLD])
LATE = rejected(27, 2, broker=2, second=-1000)
UNCLEAN = UncleanChange(
    origin=Origin(source="controller.log", at=at(-1010)),
    topic="orders",
    partition=0,
    topic_id=None,
    leader=BrokerId(2),
    leader_before=BrokerId(1),
    leader_epoch=6,
)
CAME_BACK = Origin(source="broker-1", broker_id=BrokerId(1), at=at(-500))
RETURNED = (
    FollowerStarted(
        origin=CAME_BACK,
        topic="orders",
        partition=0,
        leader_epoch=6,
        log_end_offset=124,
        high_watermark=124,
        leader=BrokerId(2),
    ),
    LogTruncated(origin=CAME_BACK, topic="orders", partition=0, offset=100, epoch=5, epoch_end=100),
    WatermarkWentBack(origin=CAME_BACK, topic="orders", partition=0, offset_before=124, offset=100),
)


def test_a_controller_s_line_and_nothing_that_came_prove_a_loss() -> None:
    row = seen(BY_BROKER_2, AFTERWARDS, lines=(UNCLEAN, LATE), is_zone_given=True)
    assert said(row) == ("loss", "confirmed", "unclean_and_unhealed")
    assert (row["at_most_records"], row["lost_to"], row["next_command"]) == (24, None, None)
    assert row["check"].startswith("Keep the broker that led before down")
    assert [change["leader_epoch"] for change in row["changes"]] == [6]


def test_what_came_after_all_refutes_it() -> None:
    healed = found(batch(97, 0, 3), batch(100, 3, 24, leader_epoch=6))
    row = seen(
        BY_BROKER_2, replace(BY_BROKER_2, found=[healed]), lines=(UNCLEAN, LATE), is_zone_given=True
    )
    assert said(row) == ("reordering", "confirmed", "filled")


def test_a_client_that_may_still_try_is_waited_for() -> None:
    line = rejected(27, 2, broker=2, second=950)
    row = seen(BY_BROKER_2, AFTERWARDS, lines=(UNCLEAN, line), is_zone_given=True)
    assert said(row) == ("loss", "suspected", "unclean_change")
    assert "--time-zone" not in row["needed_evidence"]


@pytest.mark.parametrize(("hours", "phase"), [(1, "suspected"), (13, "confirmed")])
def test_lines_of_a_zone_that_nobody_told_are_old_enough_after_half_a_day(
    hours: int, phase: str
) -> None:
    ago = -3600.0 * hours
    old = replace(UNCLEAN, origin=Origin(source="controller.log", at=at(ago - 10)))
    line = rejected(27, 2, broker=2, second=ago)
    row = seen(BY_BROKER_2, AFTERWARDS, lines=(old, line))
    assert (row["class"], row["phase"]) == ("loss", phase)
    assert ("--time-zone" in (row["needed_evidence"] or "")) == (phase == "suspected")
    assert (row["next_command"] or "").endswith("OLD_LEADER_LOGS") == (phase == "suspected")


def test_the_old_leader_s_lines_tell_the_exact_range() -> None:
    row = seen(BY_BROKER_2, AFTERWARDS, lines=(UNCLEAN, *RETURNED, LATE))
    assert said(row) == ("loss", "confirmed", "loss_proven")
    assert (row["lost_from"], row["lost_to"], row["lost_offsets"]) == (100, 124, 24)
    assert (row["needed_evidence"], row["next_command"]) == (None, None)
    assert row["check"].startswith("The former leader has come back")


def test_of_two_events_of_a_producer_the_change_is_held_against_the_one_after_it() -> None:
    before = rejected(1, 2, second=-5000)
    row = seen(BY_BROKER_2, AFTERWARDS, lines=(before, UNCLEAN, *RETURNED, LATE))
    assert said(row) == ("loss", "confirmed", "loss_proven")
    assert row["incoming_sequence"] == 27


def test_a_controller_s_log_that_was_given_is_not_asked_for() -> None:
    log = InputLog(name="c.log", is_controllers=True, first_at=at(-9000), last_at=at(0))
    brokers = Brokers([BY_BROKER_2, AFTERWARDS])
    (row,) = observe(brokers, read_events([LATE], log)).rows
    assert (row["class"], row["phase"]) == ("loss", "suspected")
    assert "c.log, shows no unclean change" in row["needed_evidence"]
    assert row["next_command"].endswith("OLD_LEADER_LOGS")


def test_no_more_rounds_are_made_than_may_help() -> None:
    brokers = Brokers([Observation(second=0)])
    observe(brokers, read_events([rejected(27, 2)]))
    assert 1 < len(brokers.scopes) <= AT_MOST


def test_a_partition_that_is_not_there_is_asked_for_once() -> None:
    brokers = Brokers([Observation(second=0)])
    (row,) = observe(brokers, read_events([rejected(27, 2, topic="gone")])).rows
    assert row["phase"] == "suspected"
    assert row["evidence"]["leader_epoch_now"] is None
    assert len(brokers.scopes) == 1


def test_what_may_not_be_read_is_said_to_be() -> None:
    observed = observe(
        Brokers([Observation(second=0, gaps=[NOT_READABLE])]), read_events([rejected(27, 2)])
    )
    assert [one.scope for one in observed.gaps] == [GapScope.BATCHES]
    assert observed.rows[0]["phase"] == "suspected"


def test_a_time_that_is_still_to_come_is_none() -> None:
    """Lines of another zone would seem to be of the present leader epoch."""
    row = seen(
        Observation(second=0), lines=(rejected(27, 2, second=5000), rejected(28, 2, second=-5000))
    )
    times = {line["incoming_sequence"]: line["first_at"] is None for line in row["lines"]}
    assert times == {27: True, 28: False}


def test_a_cluster_that_is_away_is_an_error() -> None:
    class Away(Brokers):
        def read(self, _scope: Scope) -> Snapshot:
            raise UnreachableError("no broker")

    with pytest.raises(UnreachableError):
        observe(Away([]), read_events([rejected(27, 2)]))
