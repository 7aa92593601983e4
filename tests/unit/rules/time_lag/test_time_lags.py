"""What is told of a commit: 0, since when it waits, or why nobody can say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from rules.facts.groups import GroupType
from rules.facts.snapshot import Snapshot
from rules.time_lag import EndHistory, TimeLag, WhyAbsent, time_lags
from tests.ends import observed, remembered
from tests.factories import commits, group, offsets, partitions, snapshot, topic_id

PLACED = partitions({"orders": 1})
OLDER = WhyAbsent.OLDER_THAN_HISTORY


def seen(
    end: int | None,
    committed: int = 0,
    *,
    stable: int | None = None,
    start: int = 0,
    nothing: int | None = None,
    hidden: bool = False,
) -> Snapshot:
    """Return a round that sees one partition and one commit."""
    return snapshot(
        partitions=PLACED,
        offsets=offsets(
            1,
            log_start_offset=[start],
            high_watermark=[end],
            last_stable_offset=[end if stable is None else stable],
        ),
        groups=(group(),),
        commits=commits((0, 0, committed), nothing_to_read=[nothing], scan_failed=[hidden]),
    )


def uncommitted(history: EndHistory, observation: Snapshot) -> TimeLag:
    return time_lags(history, observation).read_uncommitted


def committed(history: EndHistory, observation: Snapshot) -> TimeLag:
    return time_lags(history, observation).read_committed


def told(lag: TimeLag) -> float | WhyAbsent:
    """Return the only lag, to a second, or why there is none."""
    why = lag.why(0)
    return why if why is not None else round(float(lag.seconds[0]))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One commit after observes 100 (noon), 110 (10 s later), 110 (600 s) and 120 (610 s)."""

    reason: str
    observation: Snapshot
    read_committed: float | WhyAbsent
    read_uncommitted: float | WhyAbsent


OBSERVATIONS = (seen(100), (10.0, seen(110)), (600.0, seen(110)))
CASES = [
    Case(
        reason="all is read",
        observation=seen(120, 120),
        read_committed=0,
        read_uncommitted=0,
    ),
    Case(
        reason="115 came between the last two observations, as the sixth of ten",
        observation=seen(120, 115),
        read_committed=5,
        read_uncommitted=5,
    ),
    Case(
        reason="110 came when the end moved again, and not evenly since it was at 110 first",
        observation=seen(120, 110),
        read_committed=9,
        read_uncommitted=9,
    ),
    Case(
        reason="109 has been readable for ten minutes; an idle producer does not stop the clock",
        observation=seen(120, 109),
        read_committed=601,
        read_uncommitted=601,
    ),
    Case(
        reason="99 was there before the first observation",
        observation=seen(120, 99),
        read_committed=OLDER,
        read_uncommitted=OLDER,
    ),
    Case(
        reason="what is below the log start is gone: the oldest unread is 115",
        observation=seen(120, 3, start=115),
        read_committed=5,
        read_uncommitted=5,
    ),
    Case(
        reason="all that was unread has expired",
        observation=seen(120, 3, start=120),
        read_committed=0,
        read_uncommitted=0,
    ),
    Case(
        reason="a transaction holds back the last stable offset: what is above it is not readable",
        observation=seen(120, 110, stable=110),
        read_committed=0,
        read_uncommitted=9,
    ),
    Case(
        reason="a read_uncommitted reader is above the last stable offset",
        observation=seen(120, 115, stable=110),
        read_committed=WhyAbsent.BEYOND_END,
        read_uncommitted=5,
    ),
    Case(
        reason="markers alone follow; for a reader of aborted records nobody can say so of ten",
        observation=seen(120, 110, nothing=1),
        read_committed=0,
        read_uncommitted=9,
    ),
    Case(
        reason="one offset that is nothing to read is a marker",
        observation=seen(120, 119, nothing=1),
        read_committed=0,
        read_uncommitted=0,
    ),
    Case(
        reason="the log may not be inspected: ten offsets may be markers",
        observation=seen(120, 110, hidden=True),
        read_committed=WhyAbsent.PERHAPS_NOTHING_TO_READ,
        read_uncommitted=9,
    ),
    Case(
        reason="the leader gave no answer",
        observation=seen(None, 110),
        read_committed=WhyAbsent.END_UNKNOWN,
        read_uncommitted=WhyAbsent.END_UNKNOWN,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.reason for case in CASES])
def test_what_is_told_of_a_commit(case: Case) -> None:
    history = remembered(*OBSERVATIONS, (610.0, case.observation))
    assert told(committed(history, case.observation)) == case.read_committed
    assert told(uncommitted(history, case.observation)) == case.read_uncommitted


def test_a_share_group_has_none_because_its_start_offset_is_no_commit() -> None:
    observation = replace(seen(120, 115), groups=(group(group_type=GroupType.SHARE),))
    assert (
        told(uncommitted(remembered(*OBSERVATIONS, (610.0, observation)), observation))
        is WhyAbsent.SHARE_GROUP
    )


def test_what_is_older_than_history_has_a_lower_bound() -> None:
    observation = seen(120, 50)
    lag = uncommitted(remembered(*OBSERVATIONS, (610.0, observation)), observation)
    assert (lag.at_least_us[0], lag.lag_us[0]) == (610_000_000, None)


def test_a_replay_is_as_far_behind_as_the_record_that_is_read_again() -> None:
    history = remembered(seen(100), (100.0, seen(200)), (200.0, seen(300)))
    lags = [
        told(uncommitted(observed(history, 200, seen(300, c)), seen(300, c)))
        for c in (300, 250, 100)
    ]
    assert lags == [0, 50, 199]


def test_offsets_that_an_election_lost_are_readable_anew() -> None:
    # 100 to 110 came at 10 s, were lost down to 103, and came again at 30 s.
    again = (30.0, seen(112, 105))
    history = remembered(seen(100), (10.0, seen(110)), (20.0, seen(103)), again)
    assert told(uncommitted(history, seen(112, 105))) == 7
    assert told(uncommitted(history, seen(112, 101))) == 25  # what is left of ten is three


def test_a_topic_that_was_created_again_is_another_one() -> None:
    def created(creation: int) -> Snapshot:
        placed = partitions({"orders": 1}, topic_ids=(topic_id("orders", creation=creation),))
        return snapshot(
            partitions=placed, offsets=offsets(1), groups=(group(),), commits=commits((0, 0, 99))
        )

    observation = created(2)
    history = remembered(created(1), (10.0, observation))
    assert uncommitted(history, observation).at_least_us[0] == 0


def test_partitions_keep_their_ends_when_topics_come_and_go() -> None:
    def of(topics: dict[str, int], ends: Sequence[int], place: int) -> Snapshot:
        return snapshot(
            partitions=partitions(topics),
            offsets=offsets(len(ends), high_watermark=ends, last_stable_offset=ends),
            groups=(group(),),
            commits=commits((0, place, 105)),
        )

    history = remembered(
        of({"audit": 1, "orders": 1}, [7, 100], 1),
        (10.0, of({"audit": 1, "orders": 1}, [9, 110], 1)),
    )
    for second in range(20, 100, 10):
        history = observed(history, second, of({"orders": 2}, [110, 50], 0))
    observation = of({"new": 3, "orders": 2}, [1, 2, 3, 110, 50], 3)
    history = observed(history, 100, observation)
    assert told(uncommitted(history, observation)) == 95


def test_ends_beyond_four_billion_between_two_observations_are_kept() -> None:
    far = 10**12
    history = remembered(seen(0), (10.0, seen(far)), (20.0, seen(far + 10)), (30.0, seen(far + 10)))
    assert told(uncommitted(history, seen(far + 10, far + 5))) == 15
    assert told(uncommitted(history, seen(far + 10, far // 2))) == 25


def test_old_observations_are_thinned_and_then_forgotten() -> None:
    history = None
    for second in range(3000):
        history = observed(history, second, seen(second))
    assert history is not None
    assert len(history.blocks) < 20
    late, early = seen(2999, 2990), seen(2999, 2900)
    exact, coarse = (
        uncommitted(history, observation).within_us[0] for observation in (late, early)
    )
    assert exact == 500_000
    assert exact < coarse < 64 * 10**6
    gone = uncommitted(history, seen(2999, 10))
    assert gone.why(0) is OLDER
    assert 1000 * 10**6 < (gone.at_least_us[0] or 0) < 2989 * 10**6


def test_a_clock_that_was_set_back_while_nobody_watched_changes_no_duration() -> None:
    history = remembered(seen(100), (3600.0, seen(110)), (3610.0, seen(110)))
    history = observed(history, -1000, seen(110, 105))
    assert told(uncommitted(history, seen(110, 105))) == 1646


def test_another_cluster_is_another_memory() -> None:
    observation = snapshot(cluster_id="another", groups=(group(),), commits=commits((0, 0, 99)))
    history = remembered(snapshot(), (10.0, observation))
    assert history.cluster_id == "another"
    assert uncommitted(history, observation).at_least_us[0] == 0
