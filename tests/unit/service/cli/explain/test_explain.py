"""`tidemark explain` as it is typed: what it prints, how it ends, what it does with bad input."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rules.exceptions.collected import Subjects
from service.cli.explain import queries
from service.cli.main import run
from service.terminal.exit_codes import ExitCode
from tests.schemas import validate
from tests.tool_outputs import lines_of
from tests.unit.service.cli.printing import at_terminal

ERRORS = "org.apache.kafka.common.errors."
FENCED = (
    "2026-01-02 03:04:05,006 INFO [Producer clientId=p-1, transactionalId=pay-1] Transiting to fatal "
    f"error state due to {ERRORS}ProducerFencedException: words"
)
UNKNOWN = f"{ERRORS}BrandNewException: words"
REJECTED = (
    "[2026-01-02 03:04:05,006] ERROR [ReplicaManager broker=2] Error processing append operation on partition "
    f"orders-3 (kafka.server.ReplicaManager)\n{ERRORS}OutOfOrderSequenceException: Out of order sequence number "
    "for producer 9 at offset 3 in partition orders-3: 27 (incoming seq. number), 2 (current end sequence number)"
)
WENT_BACK = (
    "[2026-01-02 03:04:06,006] WARN [UnifiedLog partition=orders-4, dir=/d] Non-monotonic update of high watermark "
    "from (offset=37, segment=[0:435]) to (offset=10, segment=[0:141]) (kafka.log.UnifiedLog)"
)
ONGOING = "pay-9::TransactionMetadata(transactionalId=pay-9, producerId=9, producerEpoch=0, txnTimeoutMs=60000, state=Ongoing)"


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDEMARK_SERVER", raising=False)


def explain(monkeypatch: pytest.MonkeyPatch, text: str | bytes, *options: str) -> int:
    raw = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    return run(["explain", "-", *options])


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(capsys.readouterr().out)
    validate("explain", parsed)
    return parsed


def test_everything_in_one_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{FENCED}\n{REJECTED}\n{WENT_BACK}\n{ONGOING}"
    assert explain(monkeypatch, text, "-o", "json") == ExitCode.OK
    found = document(capsys)
    assert [row["meaning"] for row in found["incidents"]] == [
        "producer_fenced",
        "out_of_order_sequence",
    ]
    fenced = found["incidents"][0]
    assert (
        fenced["transactional_id"],
        fenced["transactional_producer"],
        fenced["idempotent_producer"],
    ) == (
        "pay-1",
        "fatal",
        None,
    )
    assert fenced["next_commands"][0] == "tidemark tx show pay-1 --bootstrap-servers HOST:PORT"
    assert [(row["topic"], row["gap"]) for row in found["sequences"]] == [("orders", 24)]
    assert [(row["topic"], row["records"]) for row in found["broker_lines"]] == [("orders", "lost")]
    assert [row["transactional_id"] for row in found["transactions"]] == ["pay-9"]


def test_a_person_reads_it_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{FENCED}\n{REJECTED}\n{WENT_BACK}\n{ONGOING}\n{UNKNOWN}"
    assert explain(monkeypatch, text) == ExitCode.INCOMPLETE
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for words in (
        "producer_fenced",
        "close it and start a new one",
        "orders-4",
        "pay-9",
        "BrandNewException",
    ):
        assert words in shown


@pytest.mark.parametrize("output", ["wide", "tsv"])
def test_nothing_is_folded_for_programs(
    output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(monkeypatch, FENCED, "-o", output) == ExitCode.OK
    assert "\\\n" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "code", "remark"),
    [
        ("java.net.ConnectException: Connection refused", 13, "nothing of Kafka"),
        (UNKNOWN, 1, "could not be explained"),
        ("INFO [Producer clientId=p-1] Instantiated an idempotent producer.", 1, "no error that is known"),
        ("\tat org.apache.kafka.clients.producer.KafkaProducer.send(KafkaProducer.java:1)", 1, "no error that is known"),
        ("", 2, "nothing to explain"),
        (" \n", 13, "nothing of Kafka"),
        (b"\x00\x01\x02\xff" * 1000, 13, "zero bytes"),
        (b"\x00\x01\n" + FENCED.encode("utf-16"), 0, "zero bytes"),
        (gzip.compress(FENCED.encode()), 2, "tidemark explain -"),
    ],
    ids=["not Kafka's", "unknown", "ordinary", "frames alone", "empty", "blank", "binary", "UTF-16", "compressed"],
)  # fmt: skip
def test_ends(
    text: str | bytes, code: int, remark: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert explain(monkeypatch, text) == code
    assert remark in capsys.readouterr().err


def test_nothing_is_given_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_terminal(monkeypatch)
    assert run(["explain"]) == ExitCode.USAGE
    assert "kubectl logs orders-7d4 | tidemark explain" in capsys.readouterr().err


def test_several_files_are_one_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client, broker = tmp_path / "app.log", tmp_path / "server.log"
    client.write_text(FENCED, encoding="utf-8")
    broker.write_text(
        "[2026-01-02 03:04:04,006] INFO [TransactionCoordinator id=1] Completed rollback of ongoing transaction for "
        "transactionalId pay-1 due to timeout (kafka.coordinator.transaction.TransactionCoordinator)",
        encoding="utf-8",
    )
    assert run(["explain", str(client), str(broker), "-o", "json"]) == ExitCode.OK
    (incident,) = document(capsys)["incidents"]
    assert [row["meaning"] for row in incident["problems"]] == [
        "transaction_timed_out",
        "producer_fenced",
    ]
    assert [row["role"] for row in incident["problems"]] == ["cause", "consequence"]


def test_a_query_that_fails_does_not_take_the_explanation_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = explain(monkeypatch, FENCED, "-o", "json", "--server", "http://127.0.0.1:9")
    assert code == ExitCode.INCOMPLETE
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    validate("explain", found)
    assert [row["meaning"] for row in found["incidents"]] == ["producer_fenced"]
    assert len(found["errors"]) == 1


def test_a_broker_id_is_for_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(FENCED, encoding="utf-8")
    assert run(["explain", *map(str, files), "--broker-id", "1"]) == ExitCode.USAGE
    assert "one FILE only" in capsys.readouterr().err


def test_a_rejected_sequence_is_one_block_with_its_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explain(monkeypatch, REJECTED, "-o", "json") == ExitCode.OK
    found = document(capsys)
    assert [row["sequences"] for row in found["incidents"]] == [[0]]
    assert explain(monkeypatch, REJECTED) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "by numbers" in shown
    assert sum(not line.startswith(" ") for line in shown.splitlines() if line.strip()) == 1


class Service:
    """A Tidemark that sees everything, with one topic, and a fenced producer."""

    server = "http://tidemark"

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        return {"items": [], "path": path, **query}

    def find(self, path: str, **query: str | int) -> dict[str, Any] | None:
        return {"group": "billing", **query} if path == "groups/billing" else None

    def pages(self, path: str, **query: str | int) -> Iterator[dict[str, Any]]:
        found = {"labels": {"transactional_id": "pay-1"}, "verdict": "breach", "rule": "producer_fenced", "reason": "zombie", "summary": "s"}  # fmt: skip
        rows: dict[str, list[dict[str, Any]]] = {
            "findings": [found],
            "partitions": [{"topic": "orders", "partition": 3}],
        }
        yield {
            "items": [row for row in rows[path] if query.get("topic") in (None, row.get("topic"))]
        }


@pytest.mark.parametrize(
    ("subjects", "verdict", "summary"),
    [
        pytest.param({"transactional_ids": ("pay-1",)}, "breach", "producer_fenced (zombie): s", id="fenced"),
        pytest.param({"transactional_ids": ("pay-2",)}, "UNKNOWN", queries.ONLY_OPEN, id="no transaction"),
        pytest.param({"partitions": (("orders", 3),)}, "OK", "against it", id="seen"),
        pytest.param({"partitions": (("orders", 4),)}, "UNKNOWN", queries.NO_PARTITION, id="not seen"),
        pytest.param({"groups": ("billing",)}, "OK", "against it", id="group seen"),
        pytest.param({"groups": ("other",)}, "UNKNOWN", queries.NO_GROUP, id="group not seen"),
    ],
)  # fmt: skip
def test_a_name_that_the_service_does_not_see_is_not_in_order(
    monkeypatch: pytest.MonkeyPatch, subjects: dict[str, Any], verdict: str, summary: str
) -> None:
    monkeypatch.setattr(queries, "blind_spots", lambda *_: iter(()))
    monkeypatch.setattr(queries, "read_gaps", lambda *_: ())
    names = {"partitions": (), "transactional_ids": (), "groups": (), **subjects}
    (row,) = queries.ask_service(Service(), Subjects(**names))
    assert row["verdict"] == verdict
    assert row["summary"].endswith(summary)


def test_outputs_of_tools_among_log_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = [
        f"> {line}"
        for name in ("topics-broker-down", "tx-list", "groups-describe")
        for line in lines_of(f"4.1.1-{name}")
    ]
    text = "\n".join([FENCED, *outputs, REJECTED, *lines_of("4.1.1-formatter")])
    assert explain(monkeypatch, text, "-o", "json") == ExitCode.OK
    found = document(capsys)
    assert [row["meaning"] for row in found["incidents"]] == [
        "producer_fenced",
        "out_of_order_sequence",
    ]
    assert [(row["topic"], row["gap"]) for row in found["sequences"]] == [("orders", 24)]
    assert [(row["verdict"], row["reason"], row["count"]) for row in found["tools"]] == [
        ("BREACH", "min_isr_above_replicas", 2),
        ("BREACH", "under_replicated", 17),
        ("BREACH", "replication_factor_one", 2),
        ("BREACH", "group_without_members", 3),
        ("UNKNOWN", "transaction_open", 1),
        ("OK", "read_to_the_end", 8),
        ("OK", "no_transaction_open", 2),
    ]
    assert {row["transactional_id"] for row in found["transactions"]} == {
        "hanging-transaction-eee59aca",
        "orders-to-orders-validated",
    }


def test_a_line_of_a_tool_that_was_cut_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = lines_of("4.1.1-topics-broker-down")
    assert explain(monkeypatch, "\n".join([*lines[:3], lines[3][:60]])) == ExitCode.INCOMPLETE
    assert "1 line of Kafka's tools cut off" in capsys.readouterr().err


def test_names_in_outputs_of_tools_are_queried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that are not in order: an output of a whole cluster has thousands of others."""
    queried: list[Subjects] = []

    def ask_brokers(_options: object, subjects: Subjects, _answers: object) -> None:
        queried.append(subjects)

    monkeypatch.setattr(queries, "_ask_brokers", ask_brokers)
    text = "\n".join(
        line for name in ("tx-list", "groups-describe") for line in lines_of(f"4.1.1-{name}")
    )
    assert explain(monkeypatch, text, "--bootstrap-servers", "127.0.0.1:1") == ExitCode.OK
    (subjects,) = queried
    assert subjects.transactional_ids == ("open-transaction-8864a51f",)
    assert ("orders", 1) in subjects.partitions
    assert "orders-fast" not in subjects.groups
    capsys.readouterr()
