"""What `tidemark sequence explain` tells of pasted lines, with no cluster at all."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.unit.service.cli.sequence.given import OUT_OF_ORDER, TOPIC_ID, reading, rejected

ORDINARY = "[2026-11-21 12:00:00,000] INFO [GroupCoordinator 1]: Stabilized group a (kafka)"
UNREADABLE = f"{OUT_OF_ORDER}: Out of order sequence number for producer 99999999999999999999 at"
OLD_EPOCH = (
    "org.apache.kafka.common.errors.InvalidProducerEpochException: Epoch of producer 2007 at "
    "offset 3 in orders-0 is 0, which is smaller than the last seen epoch 1"
)
UNCLEAN = (
    "[2026-11-21 12:00:01,000] INFO [QuorumController id=100] UNCLEAN partition change for orders-0 "
    f"with topic ID {TOPIC_ID}: isr: [1] -> [2], leader: 1 -> 2, leaderRecoveryState: RECOVERED "
    "-> RECOVERING, leaderEpoch: 0 -> 1, partitionEpoch: 2 -> 3 "
    "(org.apache.kafka.controller.ReplicationControlManager)"
)


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_SERVER", raising=False)


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


def told(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def test_the_textbook_case_says_24(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.log"
    file.write_text("\n".join([ORDINARY, *rejected(27, 2), ORDINARY]), encoding="utf-8")
    assert run(["sequence", "explain", str(file), "-o", "json"]) == ExitCode.OK
    (row,) = told(capsys)
    for prose in ("explanation", "needed_evidence", "check"):
        assert row.pop(prose)
    assert row == {
        "producer_id": 2001,
        "producer_epoch": None,
        "topic": "orders",
        "partition": 0,
        "offset": 3,
        "incoming_sequence": 27,
        "current_sequence": 2,
        "gap": 24,
        "class": "loss",
        "phase": "suspected",
        "reason": "large_gap",
        "evidence": {
            "rejections": 1,
            "distinct_rejections": 1,
            "smallest_gap": 24,
            "largest_batch": None,
            "records_per_batch": 1,
            "in_flight_records": 4,
        },
        "lost_from": None,
        "lost_to": None,
        "lost_offsets": None,
        "at_most_records": 24,
        "transactional": None,
        "transactional_id": None,
        "transaction": None,
        "rejections": 1,
        "first_seen": "2026-11-21T12:00:00.159000Z",
        "last_seen": "2026-11-21T12:00:00.159000Z",
        "brokers": [1],
        "other_lines": [],
        "changes": [],
        "next_command": f"tidemark sequence explain {file} --bootstrap-servers HOST:PORT",
        "verdict_by": "numbers",
        "by_numbers": {"class": "loss", "phase": "suspected", "reason": "large_gap"},
    }


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_a_pipe_is_read_with_and_without_a_dash(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, "\r\n".join(rejected(3, 1)).encode())
    assert run(["sequence", "explain", *arguments, "-o", "json"]) == ExitCode.OK
    assert [(row["gap"], row["class"]) for row in told(capsys)] == [(1, "reordering")]


def test_times_are_in_the_zone_of_the_broker(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, "\n".join(rejected(27, 2)).encode())
    run(["sequence", "explain", "-", "--time-zone", "+01:00", "-o", "json"])
    assert told(capsys)[0]["first_seen"] == "2026-11-21T11:00:00.159000Z"


def test_a_line_that_names_no_broker_is_of_the_one_that_is_given(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, rejected(27, 2)[1].encode())
    run(["sequence", "explain", "-", "--broker-id", "7", "-o", "json"])
    assert told(capsys)[0]["brokers"] == [7]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", "0 lines"),
        (b"hello\n", "1 line"),
        (b"\x00\xff\xfe\n" * 3, "3 lines"),
        ("\n".join([ORDINARY] * 2).encode(), "2 lines"),
        (rejected(27, 2)[0].encode(), "1 line"),
    ],
)
def test_a_text_about_something_else_says_so(
    data: bytes, lines: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, data)
    assert run(["sequence", "explain", "-o", "json"]) == ExitCode.NOTHING_TO_EXPLAIN
    output = capsys.readouterr()
    assert output.out == "[]\n"
    assert output.err == f"tidemark: no line about sequences among {lines}\n"


def test_what_cannot_be_read_is_shown_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(monkeypatch, f"{UNREADABLE}\x1b[2J\n{OLD_EPOCH}\n".encode())
    assert run(["sequence", "explain"]) == ExitCode.INCOMPLETE
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "tidemark: no line about sequences among 2 lines",
        "tidemark: 1 line could not be read, the last of them:",
        f"tidemark:   {UNREADABLE}",
        (
            "tidemark: 1 line rejected an older producer epoch (INVALID_PRODUCER_EPOCH): ordinary once, "
            "after a client gave up a batch"
        ),
    ]


def test_a_compressed_log_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "server.log.gz"
    file.write_bytes(gzip.compress(b"a\n"))
    assert run(["sequence", "explain", str(file)]) == ExitCode.USAGE
    assert f"zcat {file} | tidemark sequence explain -" in capsys.readouterr().err


def test_a_terminal_on_which_nothing_is_given_shows_how_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert run(["sequence", "explain"]) == ExitCode.USAGE
    assert "kubectl logs kafka-1 | tidemark sequence explain" in capsys.readouterr().err


def test_a_closed_input_shows_how_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for arguments in ([], ["-"]):
        assert run(["sequence", "explain", *arguments]) == ExitCode.USAGE
        assert "no log lines to explain" in capsys.readouterr().err


def test_a_person_reads_what_it_is_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [*rejected(5, 3, topic="a"), UNCLEAN, *rejected(27, 2), *rejected(27, 2, second=1)]
    piped(monkeypatch, "\n".join(lines).encode())
    assert run(["sequence", "explain"]) == ExitCode.OK
    output = capsys.readouterr().out.splitlines()
    assert output[0] == "7 lines, 2 events: 1 loss (suspected), 1 reordering (suspected)"
    assert output[1] == "loss (suspected)  orders-0  producer 2001"
    assert output[2].split(maxsplit=1) == [
        "sequence", "expected 3, got 27: 24 records are missing before it",
    ]  # fmt: skip
    text = "\n".join(output)
    assert "2 times, 2026-11-21 12:00:00 UTC to 2026-11-21 12:00:01 UTC, by broker 1" in text
    assert "expected 4, got 5: 1 record is missing before it" in text
    assert (
        "2026-11-21 12:00:01 UTC  broker 100: broker 2 became leader after broker 1 by an unclean "
        "election: records may be lost"
    ) in text
    for label in ("would decide", "check", "next"):
        assert text.count(f"\n  {label} ") == 2


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        (rejected(27, 2), "tidemark sequence explain 'my log' --bootstrap-servers HOST:PORT"),
        (
            rejected(1, 9),
            (
                "kafka-transactions.sh --bootstrap-server HOST:PORT describe-producers --topic orders "
                "--partition 0"
            ),
        ),
        (
            [
                (
                    f"{OUT_OF_ORDER}: Out of order sequence number for producerId 7: 27 (incoming seq. "
                    "number), 2 (current end sequence number)"
                )
            ],
            None,
        ),
    ],
)
def test_the_next_command_fits_the_case(lines: list[str], command: str | None) -> None:
    (event,) = reading(lines, "my log").events
    assert event.next_command == command


def test_a_retry_of_what_is_there_has_no_gap() -> None:
    (event,) = reading(rejected(1, 9)).events
    assert (event.row["class"], event.row["gap"]) == ("stale_retry", None)
