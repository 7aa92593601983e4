"""Remembered ends against a model that knows when every offset was appended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from rules.facts.column import Column
from rules.facts.snapshot import Snapshot
from rules.facts.times import EPOCH, MICROSECOND
from rules.time_lag import EndHistory, TimeLag, WhyAbsent, advance, shift_times, time_lags
from rules.time_lag.thinning import Bounds
from tests.factories import commits, group, offsets, partitions, snapshot
from tests.property.appending import PARTITIONS, Step, Track, World, stories

WIDE = Bounds(observations=3, fine_blocks=1000)
NARROW = Bounds(observations=2, fine_blocks=1, largest_step=16)
TIGHT = Bounds(observations=2, fine_blocks=1000, most_bytes=900)
PLACED = partitions({"orders": PARTITIONS})
HOUR_US = 3_600_000_000


def played(story: list[Step], bounds: Bounds) -> Iterator[tuple[World, Step, Snapshot, EndHistory]]:
    """Give the world and what is remembered of it, observation by observation."""
    world, history = World.begun(), None
    for step in story:
        world.pass_time(step)
        high = [
            track.observe(world.now_us) if seen else None
            for track, seen in zip(world.high, step.seen, strict=True)
        ]
        stable = [
            track.observe(world.now_us) if seen else None
            for track, seen in zip(world.stable, step.seen, strict=True)
        ]
        observation = seen_of(world, high, stable)
        history = advance(
            history,
            cluster_id=observation.cluster_id,
            partitions=PLACED,
            offsets=observation.offsets,
            now_us=world.now_us,
            bounds=bounds,
        )
        yield world, step, observation, history


def seen_of(world: World, high: list[int | None], stable: list[int | None]) -> Snapshot:
    """Return a round in which one group has committed every offset of every partition once."""
    every = [(group_, row, group_) for group_ in range(0, 400, 7) for row in range(len(world.high))]
    return snapshot(
        taken_at=EPOCH + world.now_us * MICROSECOND,
        partitions=PLACED,
        offsets=offsets(PARTITIONS, high_watermark=high, last_stable_offset=stable),
        groups=tuple(group(f"at-{number}") for number in range(400)),
        commits=commits(*((g, row, offset) for g, row, offset in every)),
    )


def judged(
    observation: Snapshot, lags: TimeLag, tracks: list[Track]
) -> Iterator[tuple[int, int, Track]]:
    """Give the place of every commit whose end was seen and that has something unread."""
    for place, (row, offset) in enumerate(
        zip(
            observation.commits.row.tolist(),
            observation.commits.committed_offset.tolist(),
            strict=True,
        )
    ):
        why, track = lags.why(place), tracks[row]
        if not observation.offsets.high_watermark.valid[row]:
            assert why is WhyAbsent.END_UNKNOWN
        elif offset > track.end:
            assert why is WhyAbsent.BEYOND_END
        elif offset == track.end:
            assert lags.lag_us[place] == 0
        else:
            yield place, offset, track


@given(stories)
def test_an_offset_passed_between_the_observations_around_it(story: list[Step]) -> None:
    for world, _, observation, history in played(story, WIDE):
        lags = time_lags(history, observation)
        for one, tracks in (
            (lags.read_uncommitted, world.high),
            (lags.read_committed, world.stable),
        ):
            for place, offset, track in judged(observation, one, tracks):
                around, lag = track.bracket(offset), one.lag_us[place]
                if around is None:
                    assert one.why(place) is WhyAbsent.OLDER_THAN_HISTORY
                    continue
                assert lag is not None
                assert around[0] <= world.now_us - lag <= around[1]
                truth = world.now_us - track.passed_us[offset]
                assert abs(truth - lag) <= one.within_us[place]


@pytest.mark.parametrize("bounds", [NARROW, TIGHT], ids=["by number", "by memory"])
@given(stories)
def test_what_thinning_makes_inexact_is_told(bounds: Bounds, story: list[Step]) -> None:
    for world, _, observation, history in played(story, bounds):
        assert sum(block.size_bytes for block in history.blocks[1:]) <= bounds.most_bytes
        lags = time_lags(history, observation)
        for one, tracks in (
            (lags.read_uncommitted, world.high),
            (lags.read_committed, world.stable),
        ):
            for place, offset, track in judged(observation, one, tracks):
                truth = world.now_us - track.passed_us[offset]
                lag, at_least = one.lag_us[place], one.at_least_us[place]
                if lag is None:
                    assert one.why(place) is WhyAbsent.OLDER_THAN_HISTORY
                    assert at_least is not None
                    assert 0 <= at_least <= truth
                else:
                    assert at_least is None
                    assert abs(truth - lag) <= one.within_us[place]


@given(stories)
def test_a_step_of_the_clock_changes_no_lag(story: list[Step]) -> None:
    *_, (_, _, observation, history) = played(story, NARROW)
    before, after = (
        time_lags(history, observation),
        time_lags(shift_times(history, -HOUR_US), observation),
    )
    for old, new in (
        (before.read_committed, after.read_committed),
        (before.read_uncommitted, after.read_uncommitted),
    ):
        assert np.array_equal(old.seconds, new.seconds, equal_nan=True)
        assert _same(old.at_least_us, new.at_least_us)


def _same(one: Column, other: Column) -> bool:
    return np.array_equal(one.values, other.values) and np.array_equal(one.valid, other.valid)
