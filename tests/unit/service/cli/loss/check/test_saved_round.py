"""What `collect -o json` has printed is read back as the round that it was; anything else is one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rules.errors import RequestError
from service.cli.collect.snapshot_table import snapshot_document
from service.cli.loss.check.saved_round import read_round
from service.views.snapshot_rows import FORMAT, commit_rows, partition_rows
from tests.unit.service.cli.collect.test_snapshot_json import busy

PARTITION = {"topic": "orders", "partition": 0}
VALID: dict[str, Any] = {
    "cluster": "default", "cluster_id": "A", "taken_at": "2025-06-02T12:00:00Z", "partitions": [PARTITION],
}  # fmt: skip


def written(folder: Path, document: object) -> Path:
    file = folder / "round.json"
    text = document if isinstance(document, str | bytes) else json.dumps(document)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def test_a_round_is_read_as_it_was(tmp_path: Path) -> None:
    seen = busy()
    read = read_round(written(tmp_path, snapshot_document(seen)))
    assert (read.cluster_id, read.taken_at) == (seen.cluster_id, seen.taken_at)
    names = set(partition_rows(seen)[0]) - {"replica_log_end_offsets"}
    assert [{name: row[name] for name in names} for row in partition_rows(read)] == [
        {name: row[name] for name in names} for row in partition_rows(seen)
    ]
    keys = ("topic", "partition", "committed_offset", "committed_leader_epoch")
    assert [[row[key] for key in keys] for _, row in commit_rows(read)] == [
        [row[key] for key in keys] for _, row in commit_rows(seen)
    ]
    assert [group.group_type for group in read.groups] == [g.group_type for g in seen.groups]


def test_a_pattern_takes_whole_names(tmp_path: Path) -> None:
    file = written(tmp_path, snapshot_document(busy()))
    assert read_round(file, re.compile("audit|order")).partitions.index.topics == ("audit",)


def test_partitions_that_are_left_out_are_unknown(tmp_path: Path) -> None:
    row = {**PARTITION, "partition": 2, "high_watermark": 7}
    read = read_round(written(tmp_path, {**VALID, "partitions": [row]}))
    assert read.offsets.high_watermark.to_list() == [None, None, 7]


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("", "Invalid JSON"),
        ("cluster: default\n", "Invalid JSON"),
        (b"\xff\xfe{\x00", "Invalid JSON"),
        (json.dumps(VALID) + "\n" + json.dumps(VALID), "trailing characters at line 2"),
        ([], "object"),
        ({}, "cluster: Field required"),
        ({**VALID, "taken_at": "2025-06-02T12:00:00"}, "taken_at: .*timezone"),
        ({**VALID, "partitions": [{**PARTITION, "topic": "a\n"}] * 2}, r"a\\n-0 is in it twice"),
        ({**VALID, "partitions": [{**PARTITION, "high_watermark": -1}]}, "0.high_watermark: "),
        ({**VALID, "partitions": [{**PARTITION, "high_watermark": 2**63}]}, "0.high_watermark: "),
        ({**VALID, "partitions": [{**PARTITION, "partition": 2**31}]}, "0.partition: "),
        (
            {**VALID, "partitions": [PARTITION, {**PARTITION, "partition": 1, "topic_id": "b"}]},
            "topic orders has two topic ids",
        ),
        ({"format": FORMAT + 1, "rounds": []}, f"has format {FORMAT + 1}, of a newer Tidemark"),
    ],
)  # fmt: skip
def test_anything_else_is_rejected_in_one_line(tmp_path: Path, document: object, why: str) -> None:
    with pytest.raises(RequestError, match=why) as raised:
        read_round(written(tmp_path, document))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"absent\.json cannot be read: No such file"):
        read_round(tmp_path / "absent.json")
