"""Which topics carry transactions, and the timeouts of ids: seen once, remembered until the topic is another one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rules.facts import transactional_use
from rules.facts.identity import TopicPartition
from rules.facts.memory import Memory, advance
from rules.facts.snapshot import Snapshot
from rules.facts.transaction_log import TransactionLog
from tests.factories import (
    ended,
    offsets,
    open_producer,
    partitions,
    producers,
    snapshot,
    topic_id,
    transaction,
    transactions,
)
from tests.unit.rules.posture.client_rounds import sample, sampled, writer

PLACED = partitions({"orders": 1, "bills": 1})


def after(*seen: Snapshot) -> Memory:
    """Return the memory after some rounds."""
    memory = None
    for one in seen:
        memory = advance(one, memory)
    assert memory is not None
    return memory


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(
            {"offsets": offsets(2, last_stable_offset=[90, 100])}, id="a span stays held back"
        ),
        pytest.param(
            {
                "batch_samples": sampled(
                    sample(writer(is_transactional=True)), sample(writer(), row=1)
                )
            },
            id="a batch of one was sampled",
        ),
        pytest.param({"producers": producers(open_producer(), rows=2)}, id="a leader says so"),
        pytest.param({"transactions": transactions(transaction())}, id="a coordinator lists it"),
        pytest.param(
            {
                "transaction_log": TransactionLog(
                    is_read=True,
                    ended=(ended(partitions=frozenset({TopicPartition("orders", 0)})),),
                )
            },
            id="it ended in between",
        ),
    ],
)
def test_a_topic_is_remembered_from_then_on(seen: dict[str, object]) -> None:
    round_ = snapshot(partitions=PLACED, **seen)
    memory = after(round_, round_, snapshot(partitions=PLACED))
    assert memory.transactional_use.topics == {"orders": topic_id("orders")}


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(
            {"last_stable_offset": [105, 100], "high_watermark": [110, 100]},
            id="it goes on growing",
        ),
        pytest.param(
            {"last_stable_offset": [95, 100], "leader_epoch": [6, 5]},
            id="another leader begins below",
        ),
    ],
)
def test_a_high_watermark_that_grows_while_it_is_read_is_no_transaction(
    later: dict[str, list[int]],
) -> None:
    """A plain topic that is written to all the time: its last stable offset is read a moment earlier."""
    first = snapshot(partitions=PLACED, offsets=offsets(2, last_stable_offset=[90, 100]))
    second = snapshot(partitions=PLACED, offsets=offsets(2, **later))
    assert after(first, second).transactional_use.topics == {}


def test_a_topic_that_was_created_again_or_is_gone_begins_anew() -> None:
    first = snapshot(partitions=PLACED, transactions=transactions(transaction()))
    ids = (topic_id("orders", creation=1), topic_id("bills"))
    again = snapshot(partitions=partitions({"orders": 1, "bills": 1}, topic_ids=ids))
    gone = snapshot(partitions=partitions({"bills": 1}))
    for later in (again, gone):
        assert after(first, later).transactional_use.topics == {}


def test_timeouts_are_those_that_were_seen_last_and_no_more_than_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactional_use, "MOST_IDS", 2)
    log = TransactionLog(
        is_read=True, ended=(ended(transactional_id="b", timeout=timedelta(seconds=9)),)
    )
    memory = after(
        snapshot(transactions=transactions(transaction("a"), transaction("b"))),
        snapshot(transaction_log=log),
        snapshot(transactions=transactions(transaction("c", timeout=None), transaction("d"))),
    )
    assert memory.transactional_use.timeouts == {
        "b": timedelta(seconds=9),
        "d": timedelta(seconds=60),
    }


def test_a_round_that_shows_nothing_new_keeps_the_same_object() -> None:
    first = after(snapshot(partitions=PLACED, transactions=transactions(transaction())))
    later = advance(snapshot(partitions=PLACED), first)
    assert later.transactional_use is first.transactional_use
