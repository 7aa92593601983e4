"""Answers about transactions and producers are read as they stand, sentinels included."""

from __future__ import annotations

import pytest

from collectors.wire import codec
from collectors.wire.api import DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS
from collectors.wire.codec import UnreadableError
from collectors.wire.transaction_answers import (
    ActiveProducer,
    DescribedTransaction,
    read_producers,
    read_transactions,
)
from tests.fuzz.newer import encode_with, everywhere
from tests.unit.collectors.wire.transaction_messages import BEGAN, described, produced

MANY = 300  # the array's length then needs two bytes
OPEN = {"orders": (0, 7), "__consumer_offsets": (12,)}


def test_a_transaction_is_read_as_the_codec_reads_it() -> None:
    body = described(("payments", 7, "Ongoing"), ("zahlungen-ä", 9, "Empty"), topics=OPEN)
    by_codec = codec.decode(DESCRIBE_TRANSACTIONS, 0, body).transaction_states
    assert [
        (entry.transactional_id, str(entry.transaction_state), int(entry.producer_id))
        for entry in by_codec
    ] == [(e.transactional_id, e.state, e.producer_id) for e in read_transactions(body)]
    assert read_transactions(body)[0] == DescribedTransaction(
        error=0,
        transactional_id="payments",
        state="Ongoing",
        timeout_ms=60_000,
        start_ms=int(BEGAN.timestamp() * 1000),
        producer_id=7,
        producer_epoch=3,
        partitions=(("orders", 0), ("orders", 7), ("__consumer_offsets", 12)),
    )


def test_an_id_that_has_begun_nothing_does_not_cost_the_whole_answer() -> None:
    body = described(("idle", 7, "Empty"), began=None)
    with pytest.raises(UnreadableError, match="negative timestamp"):
        codec.decode(DESCRIBE_TRANSACTIONS, 0, body)
    [entry] = read_transactions(body)
    assert (entry.transactional_id, entry.start_ms) == ("idle", -1)


def test_what_newer_brokers_add_is_skipped_and_all_else_read() -> None:
    transactions = described(("payments", 7, "Ongoing"), ("orders", 9, "Empty"), topics=OPEN)
    entries = [(number, 0, 1000 + number, -1, 50 * (number % 2) - 1) for number in range(MANY)]
    producers = produced({("orders", 4): entries, ("orders", 5): [], ("hidden", 0): 29})
    newer_transactions, newer_producers = (
        encode_with(codec.decode(api, 0, body), everywhere)
        for api, body in ((DESCRIBE_TRANSACTIONS, transactions), (DESCRIBE_PRODUCERS, producers))
    )
    assert read_transactions(newer_transactions) == read_transactions(transactions)
    for newer, plain in zip(
        read_producers(newer_producers), read_producers(producers), strict=True
    ):
        assert (newer.topic, newer.partition, newer.error) == (
            plain.topic,
            plain.partition,
            plain.error,
        )
        assert newer.open == plain.open
        assert newer.producers.tobytes() == plain.producers.tobytes()


def test_only_open_transactions_of_producers_are_read() -> None:
    entries = [(number, 0, 1000 + number, -1, -1) for number in range(MANY)]
    entries[3], entries[200] = (3, 1, -1, 5, 90), (200, 2, 77, -1, 95)
    body = produced({("orders", 4): entries, ("orders", 5): [], ("hidden", 0): 29})
    decoded = codec.decode(DESCRIBE_PRODUCERS, 0, body)
    assert len(decoded.topics[0].partitions[0].active_producers) == MANY
    [many, none, hidden] = read_producers(body)
    assert (many.topic, many.partition, many.error) == ("orders", 4, 0)
    assert many.open == (
        ActiveProducer(
            producer_id=3,
            producer_epoch=1,
            last_timestamp=-1,
            coordinator_epoch=5,
            start_offset=90,
        ),
        ActiveProducer(
            producer_id=200,
            producer_epoch=2,
            last_timestamp=77,
            coordinator_epoch=-1,
            start_offset=95,
        ),
    )
    assert many.epochs() == dict.fromkeys(range(MANY), 0) | {3: 1, 200: 2}
    assert (none.partition, none.open, none.epochs()) == (5, (), {})
    assert (hidden.topic, hidden.error, hidden.open, hidden.epochs()) == ("hidden", 29, (), {})


def test_tagged_fields_of_a_newer_broker_are_passed_over() -> None:
    body = described(("payments", 7, "Ongoing"))
    tagged = body[:-1] + b"\x01\x05\x02ab"  # one tag: number 5, two bytes
    assert read_transactions(tagged) == read_transactions(body)


@pytest.mark.parametrize("cut", range(5, 40, 7))
def test_an_answer_that_ends_early_is_unreadable(cut: int) -> None:
    with pytest.raises(UnreadableError, match="ends early"):
        read_transactions(described(("payments", 7, "Ongoing"))[:-cut])
    with pytest.raises(UnreadableError, match="ends early"):
        read_producers(produced({("orders", 0): [(7, 3, 1, 2, 90)]})[:-cut])


def test_producers_whose_tagged_fields_are_cut_short_are_unreadable() -> None:
    body = produced({("orders", 0): [(7, 3, 1, 2, 90)]})
    tagged = body[:-4] + b"\x01" + body[-3:]  # behind it end the partition, its topic, the answer
    with pytest.raises(UnreadableError, match="ends early"):
        read_producers(tagged)


def test_a_name_that_is_no_text_is_unreadable() -> None:
    body = described(("payments", 7, "Ongoing")).replace(b"payments", b"payment\xff")
    with pytest.raises(UnreadableError, match="no text"):
        read_transactions(body)
