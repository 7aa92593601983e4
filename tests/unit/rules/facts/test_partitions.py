"""The numbering of partitions, and placement by row."""

from __future__ import annotations

import pytest

from rules.facts.identity import Broker, BrokerId, TopicPartition
from rules.facts.partitions import PartitionIndex, Partitions
from tests.factories import partitions, topic_id

COUNTS = {"audit": 1, "empty": 0, "orders": 3, "payments": 2}


@pytest.fixture(scope="module")
def index() -> PartitionIndex:
    return PartitionIndex.of(COUNTS)


def test_rows_run_through_the_topics_in_order(index: PartitionIndex) -> None:
    names = [str(index.topic_partition(row)) for row in range(len(index))]
    assert names == ["audit-0", "orders-0", "orders-1", "orders-2", "payments-0", "payments-1"]


def test_row_and_name_are_each_others_inverse(index: PartitionIndex) -> None:
    for row in range(len(index)):
        name = index.topic_partition(row)
        assert index.row(name.topic, name.partition) == row


@pytest.mark.parametrize(
    ("topic", "partition"),
    [("orders", 3), ("orders", -1), ("payments", 2), ("empty", 0), ("unknown", 0)],
)
def test_a_partition_that_is_not_there_has_no_row(
    index: PartitionIndex, topic: str, partition: int
) -> None:
    assert index.row(topic, partition) is None


def test_a_row_behind_the_end_has_no_name(index: PartitionIndex) -> None:
    with pytest.raises(IndexError):
        index.topic_partition(len(index))


def test_every_row_knows_the_position_of_its_topic(index: PartitionIndex) -> None:
    assert index.topic_of_row.tolist() == [0, 2, 2, 2, 3, 3]


def test_a_cluster_without_topics_has_no_rows() -> None:
    assert len(PartitionIndex.of({})) == 0
    assert len(Partitions.none()) == 0
    assert PartitionIndex.of({}).topic_of_row.tolist() == []


def test_the_topic_id_of_a_row_is_that_of_its_topic() -> None:
    placed = partitions(COUNTS)
    ids = [placed.topic_id(row) for row in range(len(placed))]
    topics = ["audit", "orders", "orders", "orders", "payments", "payments"]
    assert ids == [topic_id(topic) for topic in topics]


def test_an_old_broker_knows_no_topic_id() -> None:
    placed = partitions({"orders": 2}, topic_ids=(None,))
    assert placed.topic_id(1) is None


def test_names_read_as_kafka_writes_them() -> None:
    assert str(TopicPartition("a-b", 7)) == "a-b-7"
    assert str(Broker(broker_id=BrokerId(2), host="kafka", port=9092)) == "broker 2 (kafka:9092)"


def test_partitions_sort_by_number_not_by_text() -> None:
    names = [TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert [str(name) for name in sorted(names)] == ["a-9", "a-10", "b-0"]
