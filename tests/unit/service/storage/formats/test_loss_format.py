"""What is remembered of losses survives the way through JSON, and old checkpoints are read."""

from __future__ import annotations

import json
from dataclasses import is_dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from rules.errors import StoreError
from rules.facts.broker_log import Origin
from rules.facts.identity import BrokerId, TopicPartition
from rules.facts.incidents import EventName, Incident
from rules.facts.loss_memory import LossMemory, ReplicaLine, ReportedLoss
from rules.facts.transaction_memory import CommittedTransaction, OutcomeCounts
from rules.facts.unseen_elections import NewTopic, UnseenElection
from service.storage.formats import values
from service.storage.formats.loss import losses_of
from service.storage.formats.loss import plain_losses as plain
from tests.factories import topic_id
from tests.unit.rules.loss.replica_lines import alone, cut, loaded, started, went_back

LOSS = ReportedLoss(
    name=TopicPartition("☃\0", 3),
    topic_id=topic_id("orders"),
    leader_before=1,
    leader_epoch_before=5,
    leader=2,
    leader_epoch=6,
    epoch_end=73,
    certain_to=2**62,
    last_observation_us=10**15,
    reported_us=10**15 + 1,
)
SETTLED = replace(
    LOSS,
    topic_id=None,
    leader=None,
    certain_to=None,
    former_leader_log_end=100,
    former_leader_high_watermark=95,
    alone_since_us=10**15,
    last_observation_us=None,
    checked_epoch=8,
    restored_epoch=9,
)
ELECTION = UnseenElection(
    name=LOSS.name,
    topic_id=topic_id("orders"),
    leader=2,
    leader_epoch=6,
    former_leaders=(1, 3),
    written_us=10**15,
    read_us=10**15 + 1,
    since_us=10**15 - 1,
)
FULL = LossMemory(
    beyond_epoch_end=frozenset({("orders", 0, "billing", 100)}),
    beyond_log_end=frozenset({("orders", 1, "nul\0", 2**61)}),
    reported=(LOSS, SETTLED),
    quiet=(replace(LOSS, certain_to=None),),
    lines=(
        ReplicaLine(event=alone(), read_us=1),
        ReplicaLine(event=loaded(), read_us=2),
        ReplicaLine(event=started(second=None), read_us=3),
        ReplicaLine(event=cut(broker=None), read_us=4),
        ReplicaLine(event=went_back(), read_us=5),
    ),
    unseen=(
        ELECTION,
        replace(ELECTION, topic_id=None, former_leaders=(), written_us=None, since_us=None),
    ),
    new_topics=(
        NewTopic(topic="☃\0", topic_id=topic_id("orders"), first_partition=3, listed_us=10**15),
        NewTopic(topic="old", topic_id=None, first_partition=0, listed_us=1),
    ),
    incidents=(
        Incident(
            incident_id="broker-1-20250602T120015Z",
            broker=1,
            began_us=10**15,
            last_us=10**15 + 1,
            events=frozenset(
                {
                    EventName(TopicPartition("☃\0", 3), topic_id("orders"), 6),
                    EventName(TopicPartition("old", 0), None, 7),
                }
            ),
        ),
        Incident(incident_id="unknown-1", broker=None, began_us=1, last_us=2, events=frozenset()),
    ),
)


def through_json(told: Any) -> LossMemory:
    return losses_of(json.loads(json.dumps(told)))


@pytest.mark.parametrize("memory", [LossMemory(), FULL], ids=["empty", "full"])
def test_what_is_read_is_what_was_written(memory: LossMemory) -> None:
    assert through_json(plain(memory)) == memory


NEW = NewTopic(topic="orders", topic_id=None, first_partition=3, listed_us=7)
AGO = Incident(
    incident_id="broker-1",
    broker=1,
    began_us=5,
    last_us=6,
    events=frozenset({EventName(LOSS.name, None, 7)}),
)
AT = datetime(2025, 6, 2, 12, tzinfo=UTC)
NOW = 10**15


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (TopicPartition("orders", 3), ["orders", 3]),
        (Origin(source="b2", broker_id=BrokerId(2), at=AT), ["b2", 2, "2025-06-02T12:00:00+00:00"]),
        (OutcomeCounts(minute=3, committed=2, aborted=1), [3, 2, 1]),
        (SETTLED, ["☃\0", 3, None, 1, 5, None, 6, 73, None, None, NOW + 1, 100, 95, NOW, 8, 9]),
        (ELECTION, ["☃\0", 3, topic_id("orders"), 2, 6, [1, 3], NOW, NOW + 1, NOW - 1]),
        (NEW, ["orders", None, 3, 7]),
        (AGO, ["broker-1", 1, 5, 6, [["☃\0", 3, None, 7]]]),
    ],
    ids=lambda value: type(value).__name__ if is_dataclass(value) else "",
)
def test_values_are_stored_in_the_order_that_older_checkpoints_have(
    value: object, stored: list[object]
) -> None:
    assert values.plain(value) == stored
    assert values.read(type(value), stored) == value


def test_which_transactions_may_be_missing_is_seen_anew() -> None:
    one = CommittedTransaction(
        transactional_id="payments",
        producer_id=7,
        producer_epoch=3,
        marker_epoch=4,
        started_us=1,
        ended_us=2,
    )
    doubted = replace(LOSS, missing=(one,), doubtful=(one,), doubtful_since_us=1)
    assert through_json(plain(LossMemory(reported=(doubted,)))).reported == (LOSS,)


def test_a_checkpoint_that_tells_of_commits_alone_is_read() -> None:
    commits = [[["orders", 0, "billing", 100]], []]
    assert through_json(commits) == LossMemory(beyond_epoch_end=FULL.beyond_epoch_end)


def test_a_checkpoint_of_format_2_is_read() -> None:
    *older, _, _, _ = plain(FULL)
    *_, losses, lines, quiet = older
    shorter = [*older[:2], [row[:-2] for row in losses], lines, [row[:-2] for row in quiet]]
    settled = replace(SETTLED, checked_epoch=None, restored_epoch=None)
    before = replace(FULL, reported=(LOSS, settled), unseen=(), new_topics=(), incidents=())
    assert through_json(shorter) == before


def test_a_checkpoint_without_incidents_is_read() -> None:
    assert through_json(plain(FULL)[:-1]) == replace(FULL, incidents=())


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([], id="nothing"),
        pytest.param([[], [], [[1]], [], []], id="half-a-loss"),
        pytest.param([[], [], [], [1, "{}", []], []], id="no-lines"),
        pytest.param([[], [], [], [9, "{}", []], []], id="lines-of-another-format"),
        pytest.param(
            [[], [], [["orders", 0, None, *["x"] * 12]], [1, "", []], []], id="no-numbers"
        ),
        pytest.param([*plain(LossMemory())[:5], [["orders", 0]], []], id="half-an-election"),
        pytest.param([*plain(LossMemory())[:5], [], [["orders"]]], id="half-a-topic"),
        pytest.param([*plain(LossMemory())[:5], []], id="no-topics"),
        pytest.param([*plain(LossMemory())[:7], [["broker-1"]]], id="half-an-incident"),
    ],
)
def test_something_else_is_rejected(told: list[Any]) -> None:
    with pytest.raises((StoreError, LookupError, TypeError, ValueError)):
        losses_of(told)
