"""A partition and a producer that numbers its records, as brokers and clients behave: the truth.

Broker 1 leads at first. What is written while a leader is alone in the ISR is acknowledged and on its
disk only; who then takes over uncleanly lacks it. Markers of transactions stand between the batches,
and a new leader writes them as well for batches that it does not have. A topic that is deleted and
created again begins anew, and nothing of the old one counts as lost. A round sees the leader's offsets and epochs, reads
the lines that were written since the last one, and is told what the rules had asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from hypothesis import strategies as st

from rules.facts.batches import BatchesOf, BatchSeen, MarkerSeen
from rules.facts.broker_log import SequenceRejected
from rules.facts.episodes import Episode
from rules.facts.last_observation import microseconds
from rules.facts.producers import ProducerState
from tests.factories import topic_id
from tests.unit.rules.sequence.lines import expected_zero, new_epoch, rejected
from tests.unit.rules.sequence.stage import Observation, found

STEP_SECONDS: Final = 2.5  # between two acts: more than clocks may differ
WAIT_SECONDS: Final = 130.0
FIRST_EPOCH: Final = 5
NO_BATCH: Final = -1  # what a leader has of an epoch that a marker began


class Act(Enum):
    """What happens next."""

    WRITE = "write"  # the next batch
    OVERTAKE = "overtake"  # a batch arrives before the one that it follows; both are sent again
    OVERTAKE_AND_BUMP = (
        "overtake_and_bump"  # likewise, under a new producer epoch, as librdkafka does
    )
    GIVE_UP = "give_up"  # the client skips a batch, and goes on
    BUMP = "bump"  # the client raises its epoch
    SEND_AGAIN = "send_again"  # a batch that is in the log
    OTHERS = "others"  # another producer writes
    ALONE = "alone"  # the followers stop; what is written now is on one disk
    MARK = "mark"  # a transaction ends, and its producer goes on in the same epoch (version 1)
    END = "end"  # a transaction ends, with a marker of the next epoch (version 2)
    CREATE_AGAIN = "create_again"  # the topic is deleted and created again under its name
    TOGETHER = "together"  # they are back in sync
    CHANGE = "change"  # the leader dies: cleanly, if it was not alone
    OBSERVATION = "observation"
    WAIT = "wait"  # longer than a client tries again


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A line, and whether acknowledged records were missing before the rejected batch."""

    line: SequenceRejected
    is_lost: bool
    # Whether a leader had been alone in the ISR before: a change after that counts as unclean, also
    # if the others came back unseen.
    was_at_risk: bool


@dataclass(slots=True)
class World:
    """The partition, its leader and the producer, and all that was written to logs."""

    entries: list[BatchSeen | MarkerSeen] = field(default_factory=list)  # ascending by offset
    creation: int = 0
    end: int = 0
    epoch: int = FIRST_EPOCH
    leader: int = 1
    starts: list[tuple[int, int]] = field(
        default_factory=lambda: [(FIRST_EPOCH, 0)]
    )  # epoch, first offset
    alone_from: int | None = None
    was_at_risk: bool = False
    is_unclean_allowed: bool = True
    producer_epoch: int = 0
    is_v2: bool = False  # the latest transaction was ended as from version 2 on
    next_sequence: int = 0
    acknowledged: set[tuple[int, int]] = field(default_factory=set)  # producer epoch, sequence
    second: float = 0.0
    reported: list[Truth] = field(default_factory=list)

    def act(self, act: Act, size: int) -> None:  # noqa: C901, PLR0912 - one line per act
        """Let something happen."""
        self.second += STEP_SECONDS
        match act:
            case Act.WRITE:
                self.write(size)
            case Act.OVERTAKE | Act.OVERTAKE_AND_BUMP:
                self.overtake(size, bumps=act is Act.OVERTAKE_AND_BUMP)
            case Act.GIVE_UP:
                self.next_sequence += size
            case Act.BUMP:
                self.bump()
            case Act.SEND_AGAIN:
                self.send_again()
            case Act.OTHERS:
                self.end += size
            case Act.ALONE:
                self.alone_from = self.end if self.alone_from is None else self.alone_from
                self.was_at_risk = True
            case Act.TOGETHER:
                self.alone_from = None
            case Act.CHANGE:
                self.change_leader()
            case Act.WAIT:
                self.second += WAIT_SECONDS
            case Act.MARK | Act.END:
                self.end_transaction(raises=act is Act.END)
            case Act.CREATE_AGAIN:
                self.create_again()
            case Act.OBSERVATION:
                pass

    def write(self, size: int) -> None:
        """Send the next batch; who is rejected goes on under a new epoch, as Java does."""
        if self.send(self.next_sequence, size):
            self.next_sequence += size
            return
        self.bump()
        self.send(0, size)
        self.next_sequence = size

    def overtake(self, size: int, *, bumps: bool) -> None:
        first, second = self.next_sequence, self.next_sequence + size
        if self.send(second, size):  # a leader without any state takes what comes
            self.next_sequence = second + size
            return
        if bumps:
            self.bump()
            first, second = 0, size
        if self.send(first, size) and self.send(second, size):
            self.next_sequence = second + size
        else:
            self.bump()

    def bump(self) -> None:
        self.producer_epoch, self.next_sequence = self.producer_epoch + 1, 0

    def end_transaction(self, *, raises: bool) -> None:
        """Let the coordinator write a marker; the producer may have had nothing there."""
        self.is_v2 = raises
        if raises:
            self.bump()
        self.entries.append(
            MarkerSeen(offset=self.end, leader_epoch=self.epoch, producer_epoch=self.producer_epoch)
        )
        self.end += 1

    def send_again(self) -> None:
        mine = [one for one in self.batches if one.producer_epoch == self.producer_epoch]
        if len(mine) > 1:
            self.send(mine[0].base_sequence, mine[0].record_count)

    def send(self, sequence: int, size: int) -> bool:
        """Append a batch, or write a line; whether it was appended."""
        state = self._state()
        if state is not None and not self._follows(*state, sequence):
            self._refuse(*state, sequence)
            return False
        self.entries.append(
            BatchSeen(
                base_offset=self.end,
                last_offset=self.end + size - 1,
                leader_epoch=self.epoch,
                producer_epoch=self.producer_epoch,
                base_sequence=sequence,
                last_sequence=sequence + size - 1,
                record_count=size,
            )
        )
        self.end += size
        self.acknowledged |= {(self.producer_epoch, sequence + n) for n in range(size)}
        return True

    @property
    def batches(self) -> list[BatchSeen]:
        """Return the producer's batches in the leader's log."""
        return [one for one in self.entries if isinstance(one, BatchSeen)]

    def _state(self) -> tuple[int, int] | None:
        """Return what the leader remembers: the epoch, and its last sequence, -1 where it has none."""
        state: tuple[int, int] | None = None
        for one in self.entries:
            if isinstance(one, BatchSeen):
                state = one.producer_epoch, one.last_sequence
            elif state is None or state[0] != one.producer_epoch:
                state = one.producer_epoch, NO_BATCH
        return state

    def _follows(self, epoch: int, last: int, sequence: int) -> bool:
        return sequence == (last + 1 if epoch == self.producer_epoch else 0)

    def _refuse(self, epoch: int, last: int, sequence: int) -> None:
        is_new = epoch != self.producer_epoch
        where: dict[str, Any] = {
            "second": self.second,
            "broker": self.leader,
            "offset": self.end,
            "topic_id": topic_id("orders", creation=self.creation),
        }
        if is_new:
            line = new_epoch(sequence, self.producer_epoch, **where | {"current_epoch": epoch})
        elif last == NO_BATCH and self.is_v2:
            line = expected_zero(sequence, **where)
        else:
            line = rejected(sequence, last, **where)
        expected = 0 if is_new else last + 1
        gone = {(self.producer_epoch, number) for number in range(expected, sequence)}
        self.reported.append(
            Truth(
                line=line,
                is_lost=bool(gone & self.acknowledged),
                was_at_risk=self.was_at_risk,
            )
        )

    def change_leader(self) -> None:
        self.epoch += 1
        self.leader = self.leader % 3 + 1
        if self.alone_from is not None:
            self._cut(self.alone_from)
            self.alone_from = None
        self.starts.append((self.epoch, self.end))

    def _cut(self, end: int) -> None:
        self.end = end
        self.entries = [one for one in self.entries if _offset(one) < end]
        self.starts = [(epoch, start) for epoch, start in self.starts if start < end or not start]

    def create_again(self) -> None:
        """Begin with an empty log in epoch 0, under another topic id."""
        self.creation += 1
        self.entries, self.end, self.epoch, self.starts = [], 0, 0, [(0, 0)]
        self.alone_from, self.was_at_risk = None, False
        self.acknowledged = set()

    def observe(self, lines: Sequence[SequenceRejected], *, asked: bool) -> Observation:
        """Return what a round sees now; `asked` for batches and states by the round before."""
        isr = (self.leader,) if self.alone_from is not None else (1, 2, 3)
        first = 0 if self.creation else FIRST_EPOCH
        return Observation(
            second=self.second,
            lines=lines,
            leader=self.leader,
            epoch=self.epoch,
            end=self.end,
            isr=isr,
            is_unclean_allowed=self.is_unclean_allowed,
            creation=self.creation,
            ends=tuple((0, epoch, self._end_of(epoch)) for epoch in range(first, self.epoch)),
            found=[self._found()] if asked else [],
            states=self._states() if asked else None,
        )

    def _end_of(self, epoch: int) -> int:
        return next((start for known, start in self.starts if known > epoch), self.end)

    def _found(self) -> BatchesOf:
        largest = max((one.record_count for one in self.batches), default=None)
        markers = tuple(one for one in self.entries if isinstance(one, MarkerSeen))
        return found(*self.batches, markers=markers, observed=(0, self.end), largest=largest)

    def _states(self) -> dict[int, ProducerState]:
        state = self._state()
        if state is None:
            return {}
        epoch, last = state
        return {
            7: ProducerState(
                producer_epoch=epoch,
                last_sequence=None if last == NO_BATCH else last,
                last_record_at=None,
            )
        }

    def of_episode(self, episode: Episode) -> list[Truth]:
        """Return the truth about the lines of an episode."""
        times = {time for rejection in episode.rejections for time in rejection.times_us}
        return [
            one
            for one in self.reported
            if one.line.origin.at is not None and microseconds(one.line.origin.at) in times
        ]


def _offset(entry: BatchSeen | MarkerSeen) -> int:
    return entry.last_offset if isinstance(entry, BatchSeen) else entry.offset


Course = list[tuple[Act, int]]
courses: Final = st.lists(
    st.tuples(st.sampled_from(Act), st.integers(1, 3)), min_size=4, max_size=40
)
