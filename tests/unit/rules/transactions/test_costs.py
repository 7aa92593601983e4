"""What transactions cost: records without markers, whose they are, and over which time."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from rules.facts.durations import Durations
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.memory import advance, shift_times
from rules.facts.transaction_costs import MAX_IDS, MAX_PARTITIONS
from rules.transactions.costs import (
    Costs,
    TransactionCost,
    costs_of,
    mean_records,
    uneven_coordinators,
)
from tests.factories import at, partitions, snapshot, topic_id
from tests.unit.rules.transactions.cost_rounds import (
    GROUPS,
    MINUTE,
    PLACES,
    TOPICS,
    observed,
    play,
    sampled,
    transactions_of,
)

START: Final = observed()


def only(costs: Costs) -> TransactionCost:
    [cost] = costs.ids
    return cost


def test_records_are_what_the_end_moved_without_markers() -> None:
    cost = only(costs_of(play(START, observed((60, 0, 0, 0), transactions_of(number=10)))))
    assert (cost.counted.transactions, cost.records, cost.records_per_transaction) == (10, 50, 5)
    assert (cost.marker_share, cost.is_shared) == (10 / 60, False)


def test_offsets_of_groups_cost_a_marker_and_are_no_records() -> None:
    ends = (20, 30, 0, 5000)
    made = transactions_of(number=10, on=(*PLACES[:2], GROUPS))
    cost = only(costs_of(play(START, observed(ends, made))))
    assert (cost.markers_per_transaction, cost.records_per_transaction) == (3, 3)


def test_the_first_round_begins_and_counts_nothing_that_ended_before_it() -> None:
    costs = costs_of(play(observed((10, 0, 0, 0), transactions_of(number=5))))
    assert (costs.ids, costs.window) == ([], timedelta(0))


def test_shared_partitions_have_a_mean_and_an_upper_bound() -> None:
    both = observed((1100, 0, 0, 0), transactions_of("a", 75), transactions_of("b", 25))
    first, second = costs_of(play(START, both)).ids
    assert first.is_shared
    assert second.is_shared
    assert (first.records_per_transaction, second.records_per_transaction) == (10, 10)
    assert (first.records_at_most, second.records_at_most) == (1000, 1000)


@pytest.mark.parametrize(
    ("ends", "mean"),
    [
        pytest.param((1100, 0, 0, 900), 10, id="of-all-that-write-there"),
        pytest.param((None, 0, 0, 900), None, id="end-not-read"),
    ],
)
def test_the_mean_of_the_cluster_is_exact_where_partitions_are_shared(
    ends: tuple[int | None, ...], mean: float | None
) -> None:
    both = transactions_of("a", 75), transactions_of("b", 25, on=(PLACES[0], GROUPS))
    assert mean_records(play(START, observed(ends, *both))) == mean


def test_without_a_marker_there_is_no_mean() -> None:
    assert mean_records(play(START, observed((60, 0, 0, 0), transactions_of(on=())))) is None


def test_an_end_that_was_not_read_leaves_the_records_unknown() -> None:
    made = transactions_of(number=10, on=PLACES[:2])
    cost = only(costs_of(play(START, observed((60, None, 0, 0), made))))
    assert (cost.records, cost.counted.transactions, cost.marker_share) == (None, 10, None)


def test_an_end_that_moved_back_is_no_number_of_records() -> None:
    view = play(observed((100, 0, 0, 0)), observed((90, 0, 0, 0), transactions_of()))
    assert only(costs_of(view)).records is None


def test_a_topic_that_was_made_anew_is_another_one() -> None:
    made = observed((60, 0, 0, 0), transactions_of())
    other = (topic_id("orders", creation=1), topic_id("__consumer_offsets"))
    made["partitions"] = partitions(TOPICS, topic_ids=other)
    assert only(costs_of(play(START, made))).records is None


@pytest.mark.parametrize(
    ("minutes", "window"),
    [(1, 1), (4, 4), (5, 5), (9, 9), (10, 5), (11, 6), (14, 9), (15, 5)],
)
def test_the_window_is_five_to_ten_minutes_long(minutes: int, window: int) -> None:
    rounds = [
        observed((20 * number, 0, 0, 0), transactions_of(number=10))
        for number in range(minutes + 1)
    ]
    costs = costs_of(play(*rounds))
    assert costs.window == timedelta(minutes=window)
    assert only(costs).counted.transactions == 10 * window
    assert only(costs).records_per_transaction == 1


def test_a_round_that_read_a_part_is_remembered_for_the_window() -> None:
    part = observed((20, 0, 0, 0), transactions_of(), is_whole=False)
    assert not costs_of(play(START, part, observed())).is_whole
    assert costs_of(play(START, part, *[observed()] * 9)).is_whole


def test_ids_beyond_the_limit_are_summed() -> None:
    many = [transactions_of(f"id-{number}")[0] for number in range(MAX_IDS + 3)]
    costs = costs_of(play(START, observed((9000, 0, 0, 0), many)))
    assert (len(costs.ids), costs.others.transactions) == (MAX_IDS, 3)
    assert costs.ids[0].is_shared  # with those that are summed as well


def test_an_id_of_very_many_partitions_is_counted_without_its_records() -> None:
    places = [TopicPartition("orders", number) for number in range(MAX_PARTITIONS + 1)]
    cost = only(costs_of(play(START, observed((60, 0, 0, 0), transactions_of(on=places)))))
    assert (cost.records, cost.counted.markers) == (None, MAX_PARTITIONS + 1)


def test_slow_markers_name_the_leaders_that_they_waited_for() -> None:
    made = observed((9, 9, 9, 9), transactions_of(took=2, on=PLACES), transactions_of(took=0.5))
    [_, second, _] = costs_of(play(START, made)).coordinators
    assert (second.coordinator, second.transactional_ids, second.transactions) == (2, 1, 2)
    assert second.markers.slow_by_leader == {BrokerId(1): 1}  # which leads all of them


@pytest.mark.parametrize(
    ("ids", "uneven"),
    [
        pytest.param({1: 60, 2: 20, 3: 19}, [], id="too-few-ids"),
        pytest.param({1: 66, 2: 34}, [], id="less-than-twice-the-mean"),
        pytest.param({1: 67, 2: 33}, [1], id="twice-the-mean-of-three-brokers"),
    ],
)
def test_coordinators_with_many_ids(ids: dict[int, int], uneven: list[int]) -> None:
    made = [
        transactions_of(f"{broker}-{number}", coordinator=broker)[0]
        for broker, count in ids.items()
        for number in range(count)
    ]
    assert (
        sorted(uneven_coordinators(costs_of(play(START, observed((999, 0, 0, 0), made))))) == uneven
    )


def test_samples_show_bytes_and_bound_the_records_of_the_fullest_partition() -> None:
    made = transactions_of(number=10, on=PLACES[:2])
    samples = (
        sampled(PLACES[0], records=60, markers=30, size_bytes=6000),
        sampled(PLACES[1], records=20, size_bytes=2000),
    )
    cost = only(costs_of(play(START, observed((30, 20, 0, 0), made, samples=samples))))
    assert cost.sample is not None
    assert cost.sample.records_at_most == 4  # two of each marker, and two markers
    assert (cost.records_per_transaction, cost.bytes_per_transaction) == (3, 300)
    assert cost.records_per_transaction_at_most == 3


def test_samples_of_several_rounds_add_up() -> None:
    samples = (sampled(PLACES[0], records=30, markers=10, size_bytes=600),)
    rounds = [
        observed((60 * n, 0, 0, 0), transactions_of(number=10), samples=samples) for n in (1, 2)
    ]
    assert only(costs_of(play(START, rounds[0]))).sample is None
    cost = only(costs_of(play(START, *rounds)))
    assert cost.sample is not None
    assert (cost.sample.records_at_most, cost.bytes_per_transaction) == (3, 100)


def test_a_step_of_the_clock_changes_no_window() -> None:
    memory = shift_times(advance(snapshot(taken_at=at(0))), 3_600_000_000)
    later = advance(snapshot(taken_at=at(3600 + MINUTE)), memory)
    assert later.costs.blocks[0].since_us == memory.costs.blocks[0].since_us


@pytest.mark.parametrize(("share", "bound_ms"), [(0.5, 5), (0.98, 5), (0.99, 2500), (1.0, None)])
def test_a_quantile_is_the_bound_of_its_bucket(share: float, bound_ms: int | None) -> None:
    seconds = [0.004] * 98 + [2.0, 1000.0]
    durations = Durations().with_more(timedelta(seconds=took) for took in seconds)
    bound = None if bound_ms is None else timedelta(milliseconds=bound_ms)
    assert durations.quantile(share) == bound
    assert (durations.above(timedelta(seconds=1)), durations.number) == (2, 100)
