"""Record batches as they are written, read back by what reads Kafka's own."""

from __future__ import annotations

import struct

import pytest

from collectors.wire.batches import read_headers
from service.sandbox.workloads.record_batch import Batch, crc32c, varint

CHECKED_FROM = 21  # attributes: the first byte that the checksum covers
OF_PRODUCER = Batch(
    values=[b"one", b"two", b"three"],
    timestamp_ms=1_700_000_000_000,
    producer_id=2**40,
    producer_epoch=7,
    base_sequence=12,
    is_transactional=True,
)
PLAIN = Batch(values=[b""], timestamp_ms=0, is_transactional=False)


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        pytest.param(b"", 0, id="nothing"),
        pytest.param(b"123456789", 0xE3069283, id="the-check-value-of-the-polynomial"),
        pytest.param(bytes(32), 0x8A9136AA, id="zeros-rfc-3720"),
        pytest.param(b"\xff" * 32, 0x62A8AB43, id="ones-rfc-3720"),
    ],
)
def test_the_checksum_is_the_published_one(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-65, "8101"), (300, "d804")],
)
def test_numbers_are_in_zigzag_form(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded


def test_the_header_tells_the_producer() -> None:
    [header] = read_headers(OF_PRODUCER.encode())
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 3)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40, 7, 12)
    assert header.is_transactional
    assert not header.is_control


def test_a_plain_batch_has_no_producer() -> None:
    [header] = read_headers(PLAIN.encode())
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (None, None, None)
    assert not header.is_transactional


def test_the_checksum_covers_everything_behind_it() -> None:
    encoded = OF_PRODUCER.encode()
    [written] = struct.unpack_from(">I", encoded, CHECKED_FROM - 4)
    assert written == crc32c(encoded[CHECKED_FROM:])


def test_values_stand_in_their_order() -> None:
    assert OF_PRODUCER.encode().endswith(
        b"\x01\x06one\x00\x12\x00\x00\x02\x01\x06two\x00" + (b"\x16\x00\x00\x04\x01\x0athree\x00")
    )
