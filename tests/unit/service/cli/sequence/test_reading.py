"""What is pasted is read as a stream of bytes, whatever it is."""

from __future__ import annotations

import codecs
import gzip
import io
from typing import BinaryIO

import pytest

from service.cli.sequence.reading import (
    BATCH,
    MAX_LINE,
    UnusableInputError,
    batches,
)


def lines_of(data: bytes, name: str = "server.log") -> list[bytes]:
    return [line for batch in batches(io.BytesIO(data), name) for line in batch]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"\xff\x00\xe9\n\x80", [b"\xff\x00\xe9", b"\x80"]),
    ],
)
def test_lines_are_bytes_without_their_ends(data: bytes, expected: list[bytes]) -> None:
    assert lines_of(data) == expected


def test_many_lines_come_in_batches() -> None:
    sizes = [len(batch) for batch in batches(io.BytesIO(b"x\n" * (BATCH + 1)), "-")]
    assert sizes == [BATCH, 1]


@pytest.mark.parametrize("length", [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, 3 * MAX_LINE])
def test_a_long_line_is_cut_and_the_next_one_is_whole(length: int) -> None:
    long, after = lines_of(b"a" * length + b"\nnext\n")
    assert long == b"a" * min(length, MAX_LINE)
    assert after == b"next"


@pytest.mark.parametrize(
    ("data", "name", "told"),
    [
        (
            gzip.compress(b"a\n"),
            "server.log.gz",
            "server.log.gz is compressed with gzip: zcat server.log.gz | tidemark sequence",
        ),
        (gzip.compress(b"a\n"), "-", "- is compressed with gzip: zcat | tidemark sequence"),
        (gzip.compress(b"a\n"), "my log", "zcat 'my log' | "),
        (b"\x28\xb5\x2f\xfdrest", "a.zst", "zstdcat a.zst | "),
        (codecs.BOM_UTF16_LE + "a\n".encode("utf-16-le"), "a", "iconv -f UTF-16 -t UTF-8 a | "),
    ],
)
def test_what_is_no_text_is_rejected_with_the_command_that_helps(
    data: bytes, name: str, told: str
) -> None:
    with pytest.raises(UnusableInputError) as rejected:
        lines_of(data, name)
    assert told in str(rejected.value)


def test_a_file_that_fails_is_told() -> None:
    class Failing(io.BytesIO):
        def readline(self, _size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    stream: BinaryIO = Failing()
    with pytest.raises(UnusableInputError, match="a cannot be read: input/output error"):
        list(batches(stream, "a"))
