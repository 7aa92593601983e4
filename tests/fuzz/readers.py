"""Everything that reads bytes from elsewhere: what it reads when all is well, and how it rejects the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from collectors.batch_samples import commits_of
from collectors.commit_deletions import find_recreated
from collectors.sampled_writers import writers_of
from collectors.transaction_record import RecordUnreadableError, decode, decode_name
from collectors.wire import blocks, codec, transaction_answers
from collectors.wire.api import (
    DESCRIBE_CONFIGS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    Api,
)
from collectors.wire.batches import read_all_headers, read_headers
from collectors.wire.blocks import IrregularError
from collectors.wire.codec import UnreadableError
from collectors.wire.config_answers import ConfigAnswerReader
from collectors.wire.consumer_protocol import read_assignment
from collectors.wire.records import Record, read_records
from tests.fuzz.answers import answer_versions, batches, encoded
from tests.fuzz.newer import at_random, encode_tags, newer
from tests.unit.collectors.transaction_records import render_batch, render_key, render_value, value

BODIES: Final = 16  # that are damaged


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that reads bytes."""

    name: str
    read: Callable[[bytes], object]
    make: Callable[..., bytes]  # what it reads, by `random.Random`
    rejection: type[Exception] | tuple[()] = ()  # the only exception that it may raise

    newer: Callable[..., bytes] | None = None  # the same of a newer broker

    def bodies(self, draw: random.Random) -> list[bytes]:
        """Return what it reads, half of it of a newer broker."""
        makes = (self.make, self.newer or self.make)
        return [makes[number % 2](draw) for number in range(BODIES)]


def readers() -> Iterator[Reader]:
    """Yield all of them."""
    for api, version in answer_versions():
        yield Reader(
            f"{api.name} v{version}",
            partial(codec.decode, api, version),
            partial(encoded, api=api, version=version),
            UnreadableError,
            partial(newer, api=api, version=version),
        )
    yield from OWN


def _columns(
    name: str, read: Callable[[bytes], object], api: Api, rejection: type[Exception]
) -> Reader:
    """Return a reader of one answer's own."""
    version = api.newest
    return Reader(
        name,
        read,
        partial(encoded, api=api, version=version),
        rejection,
        partial(newer, api=api, version=version),
    )


def _header(draw: random.Random) -> bytes:
    return draw.randbytes(4) + encode_tags(at_random(draw)()) + b"body"


def _log(draw: random.Random) -> bytes:
    keys = (None, b"", draw.randbytes(40))
    records = [Record(n, draw.choice(keys), draw.randbytes(9), ((b"h", b"x"),)) for n in range(4)]
    return render_batch(records) + render_batch(records[:1], base=4) + batches(draw)


def _commits(draw: random.Random) -> bytes:
    records = [Record(n, _commit_key(draw), draw.randbytes(20)) for n in range(4)]
    return render_batch(records)


def _transaction(draw: random.Random) -> bytes:
    topics = tuple(
        (f"topic-{n}", tuple(range(draw.randrange(9)))) for n in range(draw.randrange(4))
    )
    version = draw.randrange(2)
    tags: dict[str, Any] = (
        {"next_producer_id": 8, "client_transaction_version": 2} if version else {}
    )
    return render_value(value(version=version, partitions=topics or None, **tags))


def _commit_key(draw: random.Random) -> bytes:
    names = b"".join(len(name).to_bytes(2, "big") + name for name in (b"billing", b"orders"))
    return b"\0\1" + names + draw.randrange(50).to_bytes(4, "big")


def _assignment(draw: random.Random) -> bytes:
    topics = [f"topic-{n}".encode() for n in range(draw.randrange(5))]
    body = bytearray(b"\0\3" + len(topics).to_bytes(4, "big"))
    for name in topics:
        numbers = [draw.randrange(50) for _ in range(draw.randrange(9))]
        body += len(name).to_bytes(2, "big") + name + len(numbers).to_bytes(4, "big")
        body += b"".join(number.to_bytes(4, "big") for number in numbers)
    return bytes(body) + b"\xff\xff\xff\xff"


OWN: Final = (
    Reader("assignments of members", read_assignment, _assignment, UnreadableError),
    _columns("offsets", blocks.read_list_offsets, LIST_OFFSETS, IrregularError),
    _columns("commits", blocks.read_offset_fetch, OFFSET_FETCH, IrregularError),
    _columns(
        "transactions",
        transaction_answers.read_transactions,
        DESCRIBE_TRANSACTIONS,
        UnreadableError,
    ),
    _columns("producers", transaction_answers.read_producers, DESCRIBE_PRODUCERS, UnreadableError),
    _columns("settings", lambda b: ConfigAnswerReader().read(b), DESCRIBE_CONFIGS, UnreadableError),
    Reader(
        "headers of answers",
        partial(codec.body_position, LIST_OFFSETS, LIST_OFFSETS.newest),
        _header,
        UnreadableError,
    ),
    Reader("records", read_records, _log),
    Reader("batch headers", read_headers, batches),
    Reader("sampled batches", lambda data: writers_of(read_all_headers(data)), batches),
    Reader("sampled commits", lambda data: list(commits_of(data, 0)), _commits),
    Reader(
        "values of transactions",
        partial(decode, render_key("payments")),
        _transaction,
        RecordUnreadableError,
    ),
    Reader(
        "keys of transactions",
        decode_name,
        lambda draw: render_key("p" * draw.randrange(40)),
        RecordUnreadableError,
    ),
    Reader(
        "keys of commits",
        lambda key: find_recreated([Record(0, key, None), Record(1, key, b"\0" * 10)]),
        _commit_key,
    ),
)
