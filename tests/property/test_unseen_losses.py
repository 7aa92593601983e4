"""Laws of losses that nobody has observed, held against a partition whose truth is known.

Broker 1 leads at first. Who leads alone has the only copy of what is written; if it dies then, a stale
replica is elected, and the controller writes so. The old leader comes back sooner or later and writes
how far its log had come and where it is cut. A controller that starts writes its lines once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from rules.facts.broker_log import LogEvent, UncleanChange
from rules.facts.column import Column, Ragged
from rules.facts.identity import BrokerId
from rules.facts.memory import Memory
from service.storage.formats.checkpoint import FORMAT, Checkpoint, decode, encode
from tests.factories import epoch_ends, offsets, partitions, topic_id
from tests.unit.rules.loss.playing import COMMITTED, POSSIBLY, RETURNED, Said, played
from tests.unit.rules.loss.replica_lines import (
    ALLOWED,
    cut,
    elected,
    loaded,
    started,
    went_back,
    written,
)

STEP_SECONDS: Final = 15.0
ELSEWHERE: Final = {"partitions": partitions({"stock": 1}), "offsets": offsets(1)}


class Act(Enum):
    """What happens next."""

    WRITE = "write"
    ALONE = "alone"  # the followers stop
    TOGETHER = "together"
    CHANGE = "change"  # the leader dies: cleanly, if it was not alone
    RETURN = "return"  # every old leader comes back
    CONTROLLER_STARTS = "controller_starts"
    OBSERVATION = "observation"


@dataclass(frozen=True, slots=True)
class Truth:
    """An old leader whose log was longer than what its successor has."""

    broker: int
    epoch: int
    end: int  # of its own log
    left: int  # where the successor's log ends
    successor_epoch: int


@dataclass(slots=True)
class World:
    """The partition and all that is written of it."""

    end: int = 0
    epoch: int = 5
    leader: int = 1
    alone_from: int | None = None
    starts: list[tuple[int, int]] = field(default_factory=lambda: [(5, 0)])
    lost: list[Truth] = field(default_factory=list)
    away: list[Truth] = field(default_factory=list)
    elections: list[UncleanChange] = field(default_factory=list)
    lines: list[LogEvent] = field(default_factory=list)
    number: int = 1  # of the round that is next

    @property
    def second(self) -> float:
        return STEP_SECONDS * self.number - 5.0

    def act(self, act: Act, size: int) -> None:
        """Let something happen."""
        match act:
            case Act.WRITE:
                self.end += size
            case Act.ALONE:
                self.alone_from = self.end if self.alone_from is None else self.alone_from
            case Act.TOGETHER:
                self.alone_from = None
            case Act.CHANGE:
                self.change(through_nobody=size == 1)
            case Act.RETURN:
                self.come_back()
            case Act.CONTROLLER_STARTS:
                at = elected(origin=replace(started(second=self.second).origin, broker_id=None))
                self.lines += [replace(one, origin=at.origin) for one in self.elections]
            case Act.OBSERVATION:
                pass

    def change(self, *, through_nobody: bool) -> None:
        old, before, left = self.leader, self.epoch, self.alone_from
        self.epoch += 2 if through_nobody else 1
        self.leader = (
            next(one for one in (1, 2, 3) if one not in {old, *(one.broker for one in self.away)})
            if len(self.away) < 2
            else old
        )
        if left is not None and self.leader != old:
            made = Truth(old, before, self.end, left, self.epoch)
            self.lost += [made] if made.end > left else []
            self.away.append(made)
            self.elections.append(self.line_of(old, is_direct=not through_nobody))
            self.lines.append(self.elections[-1])
            self.end = left
            self.starts = [one for one in self.starts if one[1] < left or not one[1]]
        self.alone_from = None
        self.starts.append((self.epoch, self.end))

    def line_of(self, old: int, *, is_direct: bool) -> UncleanChange:
        return elected(
            origin=replace(started(second=self.second).origin, broker_id=None),
            topic_id=topic_id("orders"),
            leader=BrokerId(self.leader),
            leader_before=BrokerId(old) if is_direct else None,
            isr_before=(BrokerId(old),),
            leader_epoch=self.epoch,
        )

    def come_back(self) -> None:
        for one in self.away:
            end = self.end_of(one.epoch)
            where = {"broker": one.broker, "second": self.second + 0.1}
            self.lines += [
                loaded(one.end, **where),
                started(one.end, epoch=self.epoch, **where),
                cut(end, epoch=one.epoch, epoch_end=end, **where),
            ]
            if one.end > end:
                self.lines.append(went_back(one.end, end, **where))
        self.away = []

    def end_of(self, epoch: int) -> int:
        return next((start for known, start in self.starts if known > epoch), self.end)

    def observe(self) -> dict[str, Any]:
        """Return what a round sees and reads."""
        isr = (self.leader,) if self.alone_from is not None else (1, 2, 3)
        ends = [self.end]
        lines, self.lines, self.number = self.lines, [], self.number + 1
        return {
            "partitions": partitions(
                {"orders": 1}, leader=Column.of([self.leader]), isr=Ragged.of([isr]), **ALLOWED
            ),
            "offsets": offsets(
                1,
                leader_epoch=[self.epoch],
                last_stable_offset=ends,
                high_watermark=ends,
                log_end_offset=ends,
            ),
            "epoch_ends": epoch_ends(
                *((0, epoch, self.end_of(epoch)) for epoch in range(5, self.epoch))
            ),
            **written(*lines),
        }


Course = list[tuple[Act, int]]
courses: Final = st.lists(
    st.tuples(st.sampled_from(Act), st.integers(1, 3)), min_size=4, max_size=30
)
AFTER: Final = ((Act.OBSERVATION, 1), (Act.RETURN, 1), (Act.OBSERVATION, 1), (Act.OBSERVATION, 1))


def run(course: Iterable[tuple[Act, int]], *, restarts: bool = False) -> tuple[World, list[Said]]:
    """Let everything happen after a first round that knows nothing of the topic."""
    world = World()
    said, memory = played(ELSEWHERE)
    for act, size in (*course, *AFTER):
        world.act(act, size)
        if act is Act.OBSERVATION:
            number = world.number
            more, memory = played(
                world.observe(), memory=stored(memory) if restarts else memory, first=number
            )
            said += more
    return world, said


def stored(memory: Memory) -> Memory:
    kept = decode(encode(Checkpoint(memory=memory)), FORMAT).memory
    assert kept is not None
    return kept


@given(courses)
def test_whatever_is_lost_is_told(course: Course) -> None:
    world, said = run(course)
    if world.lost:
        assert {one.rule for one in said} & {COMMITTED, POSSIBLY}, world.lost


@given(courses)
def test_what_an_old_leader_tells_is_the_truth(course: Course) -> None:
    world, said = run(course)
    for one in said:
        if one.finding.reason != RETURNED:
            continue
        told = one.finding.evidence
        ends = {true.end for true in world.lost if true.broker == told["leader_before"]}
        assert told["exact_to"] in ends, (told, world.lost)


@given(courses)
def test_lines_tell_no_loss_of_a_topic_whose_leaders_were_never_alone(course: Course) -> None:
    """Where too many changes happen between two observations it is not known that all were clean."""
    _, said = run([one for one in course if one[0] is not Act.ALONE])
    for one in said:
        assert one.why == (POSSIBLY, "unseen", "warning")
        assert "never_observed" not in one.finding.evidence


@given(courses)
def test_a_restart_after_every_round_changes_nothing(course: Course) -> None:
    def told(said: list[Said]) -> list[tuple[int, str, str, str]]:
        return [(one.number, *one.why) for one in said]

    assert told(run(course, restarts=True)[1]) == told(run(course)[1])


@given(courses)
def test_a_controller_that_starts_tells_nothing_new(course: Course) -> None:
    """Unless nobody had read what it wrote at first."""
    quiet = [one for one in course if one[0] is not Act.CONTROLLER_STARTS]
    _, said = run(quiet)
    again = [*quiet, *AFTER, (Act.CONTROLLER_STARTS, 1), (Act.OBSERVATION, 1), (Act.OBSERVATION, 1)]
    _, more = run(again)
    assert [one.why for one in more] == [one.why for one in said]
