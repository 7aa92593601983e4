"""Everything that reads bytes from elsewhere: what it reads when all is well, and how it rejects the rest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from collectors.commit_deletions import find_recreated
from collectors.transaction_record import RecordUnreadableError, decode, decode_name
from collectors.wire import blocks, codec, transaction_answers
from collectors.wire.api import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    Api,
)
from collectors.wire.batches import read_headers
from collectors.wire.blocks import IrregularError
from collectors.wire.codec import UnreadableError
from collectors.wire.records import Record, read_records
from tests.fuzz.answers import answer_versions, batches, encoded
from tests.unit.collectors.transaction_records import render_batch, render_key, render_value, value

BODIES: Final = 16  # that are damaged


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that reads bytes."""

    name: str
    read: Callable[[bytes], object]
    make: Callable[[random.Random], bytes]  # what it reads
    rejection: type[Exception] | tuple[()] = ()  # the only exception that it may raise

    def bodies(self, draw: random.Random) -> list[bytes]:
        """Return what it reads."""
        return [self.make(draw) for _ in range(BODIES)]


def readers() -> Iterator[Reader]:
    """Yield all of them."""
    for api, version in answer_versions():
        yield Reader(
            f"{api.name} v{version}",
            partial(codec.decode, api, version),
            partial(encoded, api=api, version=version),
            UnreadableError,
        )
    yield from OWN


def _answer(api: Api) -> Callable[[random.Random], bytes]:
    return partial(encoded, api=api, version=api.newest)


def _log(draw: random.Random) -> bytes:
    keys = (None, b"", draw.randbytes(40))
    records = [Record(n, draw.choice(keys), draw.randbytes(9), ((b"h", b"x"),)) for n in range(4)]
    return render_batch(records) + render_batch(records[:1], base=4) + batches(draw)


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


OWN: Final = (
    Reader("offsets", blocks.read_list_offsets, _answer(LIST_OFFSETS), IrregularError),
    Reader("commits", blocks.read_offset_fetch, _answer(OFFSET_FETCH), IrregularError),
    Reader(
        "transactions",
        transaction_answers.read_transactions,
        _answer(DESCRIBE_TRANSACTIONS),
        UnreadableError,
    ),
    Reader(
        "producers",
        transaction_answers.read_producers,
        _answer(DESCRIBE_PRODUCERS),
        UnreadableError,
    ),
    Reader("records", read_records, _log),
    Reader("batch headers", read_headers, batches),
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
