"""`tidemark log inspect` as it is typed: what it prints, how it ends, what it does with bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collectors.transaction_record import STATES
from rules.facts.transactions import TransactionState
from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.schemas import validate
from tests.unit.collectors.log_files.coordinator_batches import (
    CommitRecord,
    StateRecord,
    records_batch,
)
from tests.unit.collectors.log_files.files import BASE, checkpoint_text, write_log
from tests.unit.collectors.wire.records import TRANSACTIONAL, Batch, marker

OPEN = Batch(
    base_offset=6, last_delta=1, producer_id=2, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL,
)  # fmt: skip
BATCHES = (
    Batch(base_offset=0, last_delta=4, producer_id=1, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL),
    marker(is_commit=True, base_offset=5, producer_id=1, producer_epoch=0, coordinator_epoch=4),
    OPEN,
    Batch(base_offset=8, last_delta=0),
    Batch(base_offset=9, last_delta=0, producer_id=1, producer_epoch=0, base_sequence=7),
)  # fmt: skip
CONTENT = b"".join(each.encode() for each in BATCHES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "replication-offset-checkpoint").write_text(checkpoint_text("orders 3 8"))
    return write_log(tmp_path / "orders-3", CONTENT)


def inspect(*arguments: str | Path) -> int:
    return run(["log", "inspect", *map(str, arguments)])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    validate("log inspect", parsed)
    return parsed


def test_one_log_in_full(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(folder) == ExitCode.OK
    text = capsys.readouterr().out
    for words in (
        f"orders-3  {folder}",
        "0 to 10 (end, exclusive), open transactions from 6 on",
        "high watermark 8, 2 offsets beyond the high watermark",
        "1 committed, 0 aborted, 1 open",
        "1 record without a producer id, offsets 8 to 8",
        "BREACH   producer 1 epoch 0: sequence 7 at offset 9, after offset 5, where 5 was to come (sequences_missing)",
    ):
        assert words in text


def test_its_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(folder, "-o", "json") == ExitCode.OK
    answer = document(capsys)
    assert answer["complete"]
    [log] = answer["logs"]
    assert (log["topic"], log["partition"], log["high_watermark"]) == ("orders", 3, 8)
    assert [each["first_offset"] for each in log["open_transactions"]] == [6]
    assert [each["producer_id"] for each in log["producers"]] == [1, 2]
    assert [each["verdict"] for each in log["sequence_gaps"]] == ["BREACH"]


@pytest.mark.parametrize(
    ("options", "producers", "gaps"),
    [
        pytest.param(("--producer-id", "2"), [2], [], id="of a producer"),
        pytest.param(("--from", "7"), [1, 2], [9], id="from an offset on"),
        pytest.param(("--to", "6"), [1], [], id="before an offset"),
    ],
)
def test_filters_leave_out_what_belongs_elsewhere(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    producers: list[int],
    gaps: list[int],
) -> None:
    assert inspect(folder, "-o", "json", *options) == ExitCode.OK
    [log] = document(capsys)["logs"]
    assert [each["producer_id"] for each in log["producers"]] == producers
    assert [each["offset"] for each in log["sequence_gaps"]] == gaps
    assert (log["committed_transactions"], log["log_end_offset"]) == (1, 10), "totals are of all"


def test_several_logs_have_a_line_each(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(folder.parent / "orders-10", OPEN.encode()[:-1])
    assert inspect(folder.parent) == ExitCode.INCOMPLETE
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["orders-3", "orders-10"]
    [problem] = [line for line in lines if "NOT READ" in line]
    assert f"orders-10/{BASE}.log, byte 0: the file ends within a batch of 95 bytes" in problem


def test_batches_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(folder, "--batches", "-o", "tsv", "--from", "5", "--to", "8") == ExitCode.OK
    _, first, second = capsys.readouterr().out.splitlines()
    assert first.split("\t")[:2] == ["5", "1"]
    assert first.endswith("COMMIT (coordinator 4)")
    assert second.split("\t")[:5] == ["6-7", "2", "2", "0", "0-1"]


def test_an_empty_list_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(folder, "--batches", "--from", "99") == ExitCode.NOTHING_MATCHED
    assert capsys.readouterr().err == "tidemark: no batch matches\n"


def test_batches_are_documents(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(folder, "--batches", "-o", "json", "--producer-id", "1") == ExitCode.OK
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["base_offset"] for row in rows] == [0, 5, 9]
    for row in rows:
        validate("log inspect", row)


def test_a_list_names_problems_and_lists_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / f"{BASE}.log").write_bytes(CONTENT[:-1])
    assert inspect(folder, "--batches") == ExitCode.INCOMPLETE
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 5
    assert printed.err.startswith(f"tidemark: {folder / BASE}.log, byte 363: the file ends")


def test_records_are_listed_without_their_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = records_batch([(b"order-1", b"secret"), (None, None), (b"\xff", b"")], base_offset=40)
    folder = write_log(tmp_path / "orders-0", batch.encode(), bases=(40,))
    assert inspect(folder, "--records", "-o", "json", "--to", "42") == ExitCode.OK
    printed = capsys.readouterr().out
    assert "secret" not in printed
    rows = [json.loads(line) for line in printed.splitlines()]
    for row in rows:
        validate("log inspect", row)
    assert [(row["offset"], row["key"], row["key_size"], row["value_size"]) for row in rows] == [
        (40, "order-1", 7, 6),
        (41, None, None, None),
    ]


def test_transactional_ids_have_a_timeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [
        StateRecord("pay-1", TransactionState.ONGOING, {"orders": [3, 4]}),
        StateRecord("pay-1", TransactionState.PREPARE_COMMIT, {"orders": [4]}),
        StateRecord("pay-2", None),
    ]
    batch = records_batch([each.encode() for each in states])
    folder = write_log(tmp_path / "__transaction_state-7", batch.encode())
    assert inspect(folder, "-o", "json") == ExitCode.OK
    [log] = document(capsys)["logs"]
    first, second = log["transactional_ids"]
    assert [(each["state"], each["partitions"]) for each in first["states"]] == [
        ("Ongoing", ["orders-3", "orders-4"]),
        ("PrepareCommit", ["orders-4"]),
    ]
    assert [each["state"] for each in second["states"]] == [None]
    assert inspect(folder) == ExitCode.OK
    text = capsys.readouterr().out
    assert "transactional id pay-1" in text
    assert "not idempotent" not in text, "coordinators write so, and repeat nothing"
    assert len(STATES) > 1


def test_commits_within_a_transaction_count_once_it_is_committed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def within(offset: int, producer_id: int, commit: CommitRecord) -> Batch:
        return records_batch(
            [commit.encode()], base_offset=offset, attributes=TRANSACTIONAL, producer_id=producer_id, producer_epoch=0,
        )  # fmt: skip

    batches = [
        records_batch([CommitRecord("billing", "orders", 0, 10).encode()]),
        within(1, 1, CommitRecord("billing", "orders", 0, 20)),
        within(2, 2, CommitRecord("billing", "orders", 0, 99)),
        within(3, 3, CommitRecord("billing", "orders", 0, 77)),
        marker(is_commit=True, base_offset=4, producer_id=1, producer_epoch=0),
        marker(is_commit=False, base_offset=5, producer_id=2, producer_epoch=0),
        records_batch(
            [CommitRecord("audit", "orders", 1, None).encode(), (b"\0\2\0\1a", b"\0\3"), (b"\0\x63", b"")], base_offset=6,
        ),
    ]  # fmt: skip
    folder = write_log(
        tmp_path / "__consumer_offsets-1", b"".join(each.encode() for each in batches)
    )
    assert inspect(folder, "-o", "json") == ExitCode.OK
    [log] = document(capsys)["logs"]
    commits = {each["group"]: each for each in log["commits"]}
    assert (commits["billing"]["committed_offset"], commits["billing"]["is_transactional"]) == (
        20,
        True,
    )
    assert commits["billing"]["leader_epoch"] == 6
    assert commits["audit"]["committed_offset"] is None
    assert log["other_records"] == {"GroupMetadata": 1, "Unknown": 1}
    assert inspect(folder) == ExitCode.OK
    assert "COMMITS OF GROUPS" in capsys.readouterr().out


def test_a_record_that_cannot_be_decoded_costs_nothing_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, value = StateRecord("pay-1", TransactionState.ONGOING, {}).encode()
    assert value is not None
    batch = records_batch([(key, b"\0\x09" + value[2:]), (key, value)])
    folder = write_log(tmp_path / "__transaction_state-7", batch.encode())
    assert inspect(folder, "-o", "json") == ExitCode.INCOMPLETE
    [log] = document(capsys)["logs"]
    assert [each["record_count"] for each in log["transactional_ids"]] == [1]
    assert [each["kind"] for each in log["problems"]] == ["bad_record"]


@pytest.mark.parametrize("options", [(), ("--batches",), ("-o", "json")])
def test_a_directory_of_another_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    (tmp_path / "app.py").write_text("print()\n")
    assert inspect(tmp_path, *options) == ExitCode.NOTHING_MATCHED
    assert "holds no log of Kafka" in capsys.readouterr().err


def test_a_checkpoint_by_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder.parent / "replication-offset-checkpoint"
    assert inspect(path, "-o", "json") == ExitCode.OK
    assert document(capsys)["checkpoints"] == [
        {"path": str(path), "offsets": [{"topic": "orders", "partition": 3, "offset": 8}]}
    ]


@pytest.mark.parametrize(
    "arguments",
    [(), ("/nowhere/at-all",), ("--batches", "--records", "."), ("--from", "5", "--to", "5", ".")],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert inspect(*arguments) == ExitCode.USAGE
