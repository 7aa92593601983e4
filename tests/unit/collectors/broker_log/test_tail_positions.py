"""Up to where files were read, as text that is stored with a round."""

from __future__ import annotations

import json

import pytest

from collectors.broker_log.files import FileId
from collectors.broker_log.positions import (
    FILES_KEPT,
    HEAD,
    FileMark,
    LogMark,
    SourceMark,
    decode,
    encode,
)

MARK = FileMark(
    id=FileId(2, 2**63),
    offset=2**40,
    size=2**40 + 7,
    modified_ns=1_700_000_000_000_000_000,
    is_skipping=True,
).known_by(b"a line\n")


def test_what_is_read_is_what_was_written() -> None:
    log = LogMark(
        files=(MARK, FileMark(id=FileId(0, 1), is_packed=True, is_nameless=True)),
        old_before_ns=5,
        parser='{"☃": null}',
        path="/logs/☃.log",
        begins_at_end=True,
        is_absent=True,
    )
    position = {"a\0b": SourceMark(logs={"/link.log": log, "/b": LogMark()}, old_before_ns=3)}
    assert decode(encode(position)) == position


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "[" * 100_000,
        '{"format":1}',
        '{"format":2,"sources":{}}',
        '{"format":1,"sources":{"a":[]}}',
        '{"format":1,"sources":{"a":[0,{"b":[1]}]}}',
        '{"format":1,"sources":{"a":[0,{"b":["",0,null,0,[["x"]]]}]}}',
    ],
)
def test_what_is_none_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode(text)


def test_only_whole_lines_tell_a_file_from_others() -> None:
    begun = FileMark(id=FileId(1, 1)).known_by(b"[2026-11-21 ")
    assert begun.head_length == 0
    known = begun.known_by(b"[2026-11-21 10] a\n[2026")
    assert known.head_length == len(b"[2026-11-21 10] a\n")
    assert known.known_by(b"[2026-11-21 10] a\n") is known
    assert known.begins_like(b"[2026-11-21 10] a\n[2027")
    assert not known.begins_like(b"[2026-11-21 11] a\n[2026")
    assert not known.begins_like(b"[2026")


def test_a_long_first_line_tells_a_file_by_its_begin() -> None:
    known = FileMark(id=FileId(1, 1)).known_by(b"x" * HEAD)
    assert known.head_length == HEAD


def test_too_many_files_are_told_by_when_they_were_written() -> None:
    files = [FileMark(id=FileId(1, n), modified_ns=100 + n) for n in range(FILES_KEPT + 3)]
    files[1] = FileMark(id=FileId(1, 1), size=9)  # not read yet: it has to stay
    bounded = LogMark(files=tuple(files)).bounded()
    assert [mark.id.inode for mark in bounded.files] == [1, *range(3, FILES_KEPT + 3)]
    assert bounded.old_before_ns == 103


def test_a_day_of_hourly_rotations_of_a_brokers_logs_stays_small() -> None:
    mark = FileMark(id=FileId(64_769, 12_345_678), offset=10**8, size=10**8, modified_ns=10**18)
    log = LogMark(files=(mark.known_by(b"a\n"),) * FILES_KEPT, parser="{}", path="/l/server.log")
    text = encode({"kafka": SourceMark(logs={f"/l/{n}.log": log for n in range(6)})})
    assert len(text) < 20_000
    assert len(json.loads(text)["sources"]) == 1
