"""A topic whose every append is known to the microsecond, and observes its ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import strategies as st

from rules.facts.times import SECOND_US

PARTITIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What happens between two observations."""

    seconds: int
    # Per partition: when records come, in shares of the time, and how many at once.
    appends: tuple[tuple[tuple[float, int], ...], ...]
    stable: tuple[float, ...]  # up to which share of what is new nothing is open
    seen: tuple[bool, ...]  # by the observation
    lost: tuple[int, ...]  # offsets at the end that an election loses, just before the observation


bursts = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), max_size=3)
shares = st.sampled_from([0.0, 0.5, 1.0])
seen = st.sampled_from([True, True, True, False])
steps = st.builds(
    Step,
    seconds=st.integers(1, 60),
    appends=st.tuples(*[bursts.map(tuple)] * PARTITIONS),
    stable=st.tuples(*[shares] * PARTITIONS),
    seen=st.tuples(*[seen] * PARTITIONS),
    lost=st.just((0,) * PARTITIONS),
)
losses = st.builds(
    Step,
    seconds=st.integers(1, 60),
    appends=st.just(((),) * PARTITIONS),
    stable=st.just((0.0,) * PARTITIONS),
    seen=st.just((True,) * PARTITIONS),
    lost=st.tuples(*[st.integers(0, 30)] * PARTITIONS),
)
stories = st.lists(steps | steps | steps | steps | losses, min_size=2, max_size=60)


@dataclass(slots=True)
class Track:
    """One end of one partition: when it passed each offset, and what observations saw of it."""

    passed_us: list[int]  # by offset
    observations: list[tuple[int, int]] = field(default_factory=list)  # time, end

    @property
    def end(self) -> int:
        return len(self.passed_us)

    def observe(self, now_us: int) -> int:
        self.observations.append((now_us, self.end))
        return self.end

    def lose(self, end: int) -> None:
        del self.passed_us[end:]
        self.observations = [(timestamp, min(seen, end)) for timestamp, seen in self.observations]

    def bracket(self, offset: int) -> tuple[int, int] | None:
        """Return the two observations between which the end passed an offset, None if before the first."""
        for (before, was), (after, became) in pairwise(self.observations):
            if was <= offset < became:
                return before, after
        return None


@dataclass(slots=True)
class World:
    """The partitions, as they really are."""

    now_us: int = 1_700_000_000 * SECOND_US
    high: list[Track] = field(default_factory=list)
    stable: list[Track] = field(default_factory=list)

    @classmethod
    def begun(cls) -> World:
        world = cls()
        for _ in range(PARTITIONS):
            old = [world.now_us - 3600 * SECOND_US + one for one in range(100)]
            world.high.append(Track(list(old)))
            world.stable.append(Track(list(old)))
        return world

    def pass_time(self, step: Step) -> None:
        began, took = self.now_us, step.seconds * SECOND_US
        self.now_us += took
        for place, (high, stable) in enumerate(zip(self.high, self.stable, strict=True)):
            for share, count in sorted(step.appends[place]):
                high.passed_us += [began + int(share * took)] * count
            free = int((high.end - stable.end) * step.stable[place])
            stable.passed_us += [self.now_us] * free
            kept = max(high.end - step.lost[place], 0)  # no log ends below its begin
            high.lose(kept)
            stable.lose(min(stable.end, kept))
