"""Records of JSON, however a shipper puts them behind each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.api.core.problems import ProblemError
from service.api.ingest.json_body import Records


def read(body: str | bytes) -> list[dict[str, Any]]:
    data = body.encode() if isinstance(body, str) else body
    return [record for _, record in Records(data)]


@pytest.mark.parametrize(
    "body",
    [
        '{"n": 1}{"n": 2}',
        '{"n": 1} {"n": 2}',
        '{"n": 1}\n{"n": 2}\n',
        '{"n": 1}\r\n\r\n{"n": 2}\r\n',
        '[{"n": 1},{"n": 2}]',
        ' [ {"n": 1} , {"n": 2} ] ',
        '[{"n": 1}][{"n": 2}]',
        '[{"n": 1}]\n{"n": 2}',
        '[]{"n": 1}[]\n[{"n": 2}]',
        '{\n"n":\n1}\n[\n{"n": 2}\n]\n',
        b'\xef\xbb\xbf{"n": 1}{"n": 2}',
    ],
)
def test_objects_arrays_and_many_of_both_are_records(body: str | bytes) -> None:
    assert read(body) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("body", ["", " \r\n\t", "[]", "[ ]\n[]"])
def test_nothing_is_no_record(body: str) -> None:
    assert read(body) == []


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert read(b'{"message": "\xff\xfe ok \xc3\xa4"}') == [{"message": "\ufffd\ufffd ok ä"}]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("{", 1),
        ('{"n": 1}\n{"n": }', 2),
        ('{"n": 1}\n\n{"n": 2}\nnot json\n', 4),
        ("plain text", 1),
        ("[2026-11-21 11:56:40,159] ERROR [ReplicaManager", 1),
        ('{"n": 1}\n[{"n": 2},\n{"n": 3}', 3),
        ('[{"n": 1}\n{"n": 2}]', 2),
        ('[{"n": 1},]', 1),
        ("[,]", 1),
        ("[", 1),
        ("]", 1),
        ('"text"', 1),
        ("12", 1),
        ("null", 1),
        ('[{"n": 1},\n["n"]]', 2),
        ("\0", 1),
        ('{"n": "\0"}', 1),
        ('{"n": ' + "9" * 5000 + "}", 1),
        ('{"n": 1}\n' + '{"n":' * 100_000, 2),
        ("[" * 100_000, 1),
        ('\n{"n":' + "[" * 100_000, 2),
    ],
)
def test_what_is_no_record_is_told_with_its_line(body: str, line: int) -> None:
    with pytest.raises(ProblemError, match=rf"^line {line} of the body: ") as told:
        read(body)
    assert told.value.status == 400
    assert len(told.value.detail) < 200, "what was sent is not sent back"


def test_what_comes_before_a_bad_record_is_read_first() -> None:
    records = iter(Records(b'{"n": 1}\n{"n": 2}\n{'))
    assert [next(records)[1], next(records)[1]] == [{"n": 1}, {"n": 2}]
    with pytest.raises(ProblemError, match="line 3"):
        next(records)


def test_many_small_records_are_read_in_time_proportional_to_them() -> None:
    body = json.dumps({"message": "x"}).encode() * 100_000
    assert sum(1 for _ in Records(body)) == 100_000
