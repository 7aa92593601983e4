"""What was packed is unpacked, within a limit."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from service.api.core.problems import ProblemError
from service.api.ingest.unpacking import MAX_MEMBERS, MAX_UNPACKED, unpack

LINE = b"[2026-11-21 11:56:40,159] INFO ordinary\n"


@pytest.mark.parametrize("encoding", ["", "identity", " Identity "])
def test_what_is_not_packed_stays_as_it_is(encoding: str) -> None:
    assert unpack(LINE, encoding) == LINE


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP "])
def test_gzip_is_unpacked(encoding: str) -> None:
    assert unpack(gzip.compress(LINE * 1000), encoding) == LINE * 1000


def test_gzip_in_several_members_is_one_body() -> None:
    assert unpack(gzip.compress(b"a") + gzip.compress(b"") + gzip.compress(b"b"), "gzip") == b"ab"


def test_an_empty_body_is_empty() -> None:
    assert unpack(b"", "gzip") == b""
    assert unpack(gzip.compress(b""), "gzip") == b""


@pytest.mark.parametrize("encoding", ["deflate", "zstd", "snappy", "br", "gzip, gzip", "\0"])
def test_another_encoding_is_rejected(encoding: str) -> None:
    with pytest.raises(ProblemError, match="Content-Encoding may be gzip") as told:
        unpack(LINE, encoding)
    assert told.value.status == 415
    assert told.value.headers == {"Accept-Encoding": "gzip, identity"}


@pytest.mark.parametrize(
    ("body", "encoding", "kind"),
    [
        (gzip.compress(LINE), "", "compressed with gzip"),
        (gzip.compress(gzip.compress(LINE)), "gzip", "compressed with gzip"),
        (b"\x28\xb5\x2f\xfd" + LINE, "", "compressed with zstd"),
        (b"PK\x03\x04" + LINE, "identity", "a zip archive"),
    ],
)
def test_a_packed_body_that_does_not_say_so_is_rejected(
    body: bytes, encoding: str, kind: str
) -> None:
    with pytest.raises(ProblemError, match=f"the body is {kind}, which no Content-Enc") as told:
        unpack(body, encoding)
    assert told.value.status == 415


@pytest.mark.parametrize(
    "body",
    [
        LINE,
        b"\x1f\x8b",
        b"\x1f\x8b\x08" + b"\0" * 40,
        zlib.compress(LINE),
        gzip.compress(LINE)[:-1],
        gzip.compress(LINE)[:-5] + b"wrong",
        gzip.compress(LINE) + b"and more",
        random.Random(1).randbytes(1000),
        gzip.compress(b"") * (MAX_MEMBERS + 1),
    ],
)
def test_damaged_gzip_is_told(body: bytes) -> None:
    with pytest.raises(ProblemError, match="the body cannot be unpacked: ") as told:
        unpack(body, "gzip")
    assert told.value.status == 400


def test_as_many_bytes_as_the_limit_are_unpacked() -> None:
    assert len(unpack(gzip.compress(bytes(MAX_UNPACKED), 1), "gzip")) == MAX_UNPACKED


@pytest.mark.parametrize("parts", [[MAX_UNPACKED + 1], [MAX_UNPACKED, 1], [MAX_UNPACKED * 3]])
def test_more_is_rejected_however_small_it_was(parts: list[int]) -> None:
    body = b"".join(gzip.compress(bytes(size), 1) for size in parts)
    with pytest.raises(ProblemError, match="when it is unpacked") as told:
        unpack(body, "gzip")
    assert told.value.status == 413


def test_no_more_is_unpacked_than_it_takes_to_see_that(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Counted:
        def __init__(self, _bits: int) -> None:
            self.eof, self.unused_data = False, b""

        def decompress(self, _data: bytes, limit: int) -> bytes:
            asked.append(limit)
            return bytes(limit)

    monkeypatch.setattr("zlib.decompressobj", Counted)
    with pytest.raises(ProblemError, match="when it is unpacked"):
        unpack(LINE, "gzip")
    assert asked == [MAX_UNPACKED + 1]
