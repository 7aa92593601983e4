"""Application log lines to a real service: accepted means stored, and a real client's own log is beside its transaction."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import httpx2
import pytest
from confluent_kafka import Producer

from service.runtime.clock import wait_until
from service.sandbox.cluster.cluster import Sandbox
from service.sandbox.workloads.stepwise_producer import JavaTransactionalProducer
from tests import loopback
from tests.application_lines import fatal
from tests.integration.serve.conftest import Serve
from tests.integration.serve.kafka import Kafka
from tests.integration.serve.served import ROOT, Document, Served, plain_environment
from tests.integration.serve.test_ingest import (
    MEGABYTE,
    TEXT,
    WAIT_SECONDS,
    database_unchanged,
    noise,
    token,
)

pytestmark = pytest.mark.integration

PATH: Final = "/api/v1/ingest/application-log"
LIST: Final = "/api/v1/application-errors"
NDJSON: Final = "application/x-ndjson"


def post(
    served: Served, body: str | bytes, kind: str = TEXT, *, query: str = "", **headers: str
) -> httpx2.Response:
    with loopback.client() as client:
        data = body.encode() if isinstance(body, str) else body
        target = served.address + PATH + query
        return client.post(target, content=data, headers={"Content-Type": kind, **headers})


def errors(served: Served, **query: str) -> list[Document]:
    rows: list[Document] = served.get(
        f"{LIST}?{'&'.join(f'{k}={v}' for k, v in query.items())}"
    ).json()["items"]
    return rows


def counts(served: Served) -> dict[str, int]:
    return {str(row["transactional_id"]): row["count"] for row in errors(served)}


def loaded(served: Served) -> bool:
    is_current: bool = served.get(LIST).json()["is_current"]
    return is_current


def test_what_was_accepted_outlives_a_kill_and_is_counted_once(alone: Serve) -> None:
    served = alone()
    body = "\n".join([fatal("pay-1"), fatal("pay-1", at="2025-06-02 12:00:01,000"), fatal("pay-2")])
    answer = post(served, body, query="?application=payments")
    assert (answer.status_code, answer.json()) == (202, {"lines": 3, "errors": 3, "unparsed": 0})
    served.kill()
    again = alone()
    assert wait_until(lambda: loaded(again), timeout_seconds=WAIT_SECONDS)
    assert counts(again) == {"pay-1": 2, "pay-2": 1}
    assert post(again, body, query="?application=payments").status_code == 202, "sent again"
    assert (
        post(
            again, fatal("pay-1", at="2025-06-02 12:00:09,000"), query="?application=payments"
        ).status_code
        == 202
    )
    assert counts(again) == {"pay-1": 3, "pay-2": 1}
    (row,) = errors(again, transactional_id="pay-1")
    assert (row["application"], row["first_at"], row["last_at"]) == (
        "payments",
        "2025-06-02T12:00:00Z",
        "2025-06-02T12:00:09Z",
    )


def test_a_database_that_hangs_is_named_and_what_is_sent_again_is_counted_once(
    alone: Serve, folder: Path
) -> None:
    served = alone()
    assert wait_until(lambda: loaded(served), timeout_seconds=WAIT_SECONDS)
    assert post(served, fatal("pay-1")).status_code == 202
    with database_unchanged(folder / "data"):
        rejected = post(served, fatal("pay-2"))
        assert (rejected.status_code, rejected.headers["retry-after"]) == (503, "10")
        assert counts(served) == {"pay-1": 1}, "an answer needs no database"
    assert wait_until(
        lambda: post(served, fatal("pay-2")).status_code == 202, timeout_seconds=WAIT_SECONDS
    )
    assert counts(served) == {"pay-1": 1, "pay-2": 1}


def test_who_sends_too_much_is_told_when_to_come_again_and_others_go_on(
    alone: Serve, folder: Path
) -> None:
    limits = {
        "APPLICATION_LOGS__MAX_LINES_PER_MINUTE": "6000",
        "APPLICATION_LOGS__MAX_LINES_PER_MINUTE_OF_SENDER": "600",
    }
    served = alone(host="0.0.0.0", settings=limits)  # noqa: S104 - what is tested
    secrets = [token(folder / "data", name, "ingest") for name in ("a", "b")]
    reader = {"Authorization": f"Bearer {token(folder / 'data', 'r', 'read')}"}

    def ship(sender: int, count: int) -> httpx2.Response:
        line = fatal(f"pay-{sender}")
        return post(served, (line + "\n") * count, Authorization=f"Bearer {secrets[sender]}")

    assert post(served, fatal()).status_code == 401
    assert post(served, fatal(), **reader).status_code == 403
    assert ship(0, 700).status_code == 202, "more than the limit at once comes through, once"
    rejected = ship(0, 7)
    assert rejected.status_code == 429
    assert 0 < int(rejected.headers["retry-after"]) <= 11
    assert ship(1, 1).status_code == 202
    with loopback.client() as client:
        page = client.get(served.address + LIST, headers=reader).json()
    assert page["rejected_lines"] == 7
    assert {row["transactional_id"]: row["count"] for row in page["items"]} == {
        "pay-0": 700,
        "pay-1": 1,
    }
    assert wait_until(lambda: ship(0, 1).status_code == 202, timeout_seconds=60)


TRACE: Final = fatal() + "\n" + "\tat org.apache.kafka.clients.producer.X.y(X.java:1)\n" * 1000
DEEP: Final = "Caused by: org.apache.kafka.common.errors.ProducerFencedException: x\n"
BAD: Final[Sequence[tuple[str, bytes, str, str, int]]] = [
    ("random bytes", noise(3 * MEGABYTE), TEXT, "", 202),
    ("random bytes as JSON", noise(MEGABYTE), "application/json", "", 400),
    ("random bytes as a push", noise(MEGABYTE), "application/x-protobuf", "", 400),
    ("random bytes as gzip", noise(MEGABYTE), TEXT, "gzip", 400),
    ("invalid UTF-8 in an error", fatal().encode() + b" \xff\xfe\x80 \xed\xa0\x80\n", TEXT, "", 202),
    ("NUL bytes in an error", fatal("pay\0x").encode(), TEXT, "", 202),
    ("UTF-16", (fatal() + "\n").encode("utf-16"), TEXT, "", 202),
    ("one huge line", b"x" * (4 * MEGABYTE), TEXT, "", 202),
    ("a huge line of ours", fatal().encode() * 15_000, TEXT, "", 202),
    ("stack traces without end", TRACE.encode() * 50, TEXT, "", 202),
    ("causes without end", DEEP.encode() * 20_000, TEXT, "", 202),
    ("a million tiny lines", b"a\n" * 1_000_000, TEXT, "", 413),
    ("deep JSON", b"[" * MEGABYTE, "application/json", "", 400),
    ("deep JSON in a line", b'{"a":' * 200_000 + b"\n", TEXT, "", 202),
    ("JSON in JSON", json.dumps({"message": json.dumps({"message": fatal()})}).encode(), NDJSON, "", 202),
    ("a record without a line", b'{"level":"ERROR","x":[1,2,{"y":null}]}', NDJSON, "", 202),
    ("small packed, huge unpacked", gzip.compress(bytes(100 * MEGABYTE), 1), TEXT, "gzip", 413),
    ("more than a body may have", b"x\n" * (5 * MEGABYTE), TEXT, "", 413),
    ("a picture", b"\x89PNG\r\n\x1a\n" + noise(1000), "image/png", "", 415),
]  # fmt: skip


def test_whatever_comes_is_answered_and_the_service_goes_on(alone: Serve) -> None:
    limits = {
        "APPLICATION_LOGS__MAX_LINES_PER_MINUTE": "100000000",
        "APPLICATION_LOGS__MAX_LINES_PER_MINUTE_OF_SENDER": "100000000",
        "APPLICATION_LOGS__MAX_PROBLEMS": "50",
    }
    served = alone(settings=limits)
    for what, body, kind, encoding, status in BAD:
        headers = {"Content-Encoding": encoding} if encoding else {}
        answer = post(served, body, kind, query="?application=bad", **headers)
        assert (what, answer.status_code) == (what, status), answer.text
        assert len(answer.content) < 1000
    flood = "\n".join(fatal(f"flood-{number}") for number in range(5_000))
    answer = post(served, flood, query="?application=flood")
    assert answer.json() == {"lines": 5000, "errors": 5000, "unparsed": 0}
    rows = errors(served, limit="1000")
    assert len([row for row in rows if not row["is_of_many"]]) == 50
    of_flood = [row for row in rows if row["is_of_many"] or row["application"] == "flood"]
    assert sum(row["count"] for row in of_flood) == 5000, "bounded, and no count is lost"
    assert served.events("request_failed") == []


@pytest.mark.brokers
def test_a_fenced_producers_own_log_is_beside_its_transaction(
    serve: Serve, cluster: Sandbox, kafka: Kafka, new_name: Callable[[str], str]
) -> None:
    name = new_name("fenced")
    served = serve().wait_ready()
    java = JavaTransactionalProducer(
        cluster, kafka.bootstrap, kafka.topic, batch=1, transactional_id=name
    )
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "transactional.id": name,
        "transaction.timeout.ms": 600_000,
    }
    newer = Producer({**settings, "log_level": 2})
    try:
        java.hand_over(1)
        assert wait_until(lambda: entry_of(served, name) is not None, timeout_seconds=WAIT_SECONDS)
        newer.init_transactions(60)  # fences the Java client
        newer.begin_transaction()
        newer.produce(kafka.topic, b"newer", partition=0)
        newer.flush(60)
        log = java_log(java)
        assert wait_until(
            lambda: "Fenced" in log() or "epoch" in log(), timeout_seconds=WAIT_SECONDS
        ), log()
        answer = post(served, log(), query="?application=payments")
        assert answer.status_code == 202
        assert answer.json()["errors"] > 0, log()

        related: list[Document] = []

        def is_beside() -> bool:
            """Whether the newer producer's transaction shows it; the older one may still be listed before."""
            entry = entry_of(served, name) or {}
            related[:] = entry.get("application_errors") or ()
            return (entry.get("producer_epoch") or 0) > 0 and bool(related)

        assert wait_until(is_beside, timeout_seconds=WAIT_SECONDS), errors(served)
        first = related[0]
        said = [
            first[name] for name in ("application", "error", "transactional_producer", "records")
        ]
        # The older client may abort and go on, as it says itself; it is fenced when it tries.
        assert said == ["payments", "INVALID_PRODUCER_EPOCH", "abort", "neither"]
        detail = served.get(f"{LIST}/{first['id']}").json()
        assert [(row["transactional_id"], row["match"]) for row in detail["transactions"]] == [
            (name, "transactional_id")
        ]
        assert name not in json.dumps(served.findings()), "it opens no finding"
        words = ("--bootstrap-servers", kafka.bootstrap, "--server", served.address)
        assert f"{first['error']} (same transactional id)" in tidemark("tx", "show", name, *words)
        shown = tidemark("application-errors", "show", first["id"][:6], "--server", served.address)
        assert "same transactional id" in shown
    finally:
        java.close()
        newer.abort_transaction(60)


def tidemark(*words: str) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "service", *words]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=plain_environment(),
        timeout=180,
        check=False,
    )
    return ran.stdout + ran.stderr


def entry_of(served: Served, transactional_id: str) -> Document | None:
    rows: list[Document] = (
        served.get(f"/api/v1/transactions?transactional_id={transactional_id}")
        .json()
        .get("items", [])
    )
    return rows[0] if rows else None


def java_log(java: JavaTransactionalProducer) -> Callable[[], str]:
    """Return what reads all that the Java client and its application have written."""

    def read() -> str:
        files = [java._scratch / name for name in ("output.log", "server.log")]  # noqa: SLF001 - a child's files
        texts = [file.read_text("utf-8", "replace") for file in files if file.exists()]
        return "\n".join(texts)

    return read
