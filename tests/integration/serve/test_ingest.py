"""Log lines by HTTP to a real service: accepted means stored, and whatever comes leaves it well."""

from __future__ import annotations

import gzip
import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2
import pytest

from rules.facts.broker_log import SequenceRejected
from service.runtime.clock import pause, wait_until
from service.storage.database.engine import open_database
from service.storage.rounds.inbox import StoredInbox
from tests import loopback
from tests.integration.serve.conftest import Serve
from tests.integration.serve.served import (
    ROOT,
    Served,
    plain_environment,
    processes_of,
)

pytestmark = pytest.mark.integration

PATH: Final = "/api/v1/ingest/broker-log"
TEXT: Final = "text/plain"
MEGABYTE: Final = 1024 * 1024
AGAIN: Final = frozenset({429, 503})
WAIT_SECONDS: Final = 180.0


def first(number: int = 0) -> str:
    at = f"2026-11-21 11:{number // 60000 % 60:02}:{number // 1000 % 60:02},{number % 1000:03}"
    told = f"[{at}] ERROR [ReplicaManager broker=1] Error processing append operation on partition"
    return f"{told} orders-0 (kafka.server.ReplicaManager)\n"


def second(number: int = 0) -> str:
    told = (
        "org.apache.kafka.common.errors.OutOfOrderSequenceException: Out of order sequence number"
    )
    numbers = f"{number + 3} (incoming seq. number), 2 (current end sequence number)"
    return f"{told} for producer 2001 at offset 3 in partition orders-0: {numbers}\n"


def record(number: int = 0) -> str:
    return first(number) + second(number)


def post(
    served: Served, body: str | bytes, kind: str = TEXT, *, query: str = "", **headers: str
) -> httpx2.Response:
    with loopback.client() as client:
        target = served.address + PATH + query
        data = body.encode() if isinstance(body, str) else body
        return client.post(target, content=data, headers={"Content-Type": kind, **headers})


def stored(directory: Path) -> list[SequenceRejected]:
    """Return what waits in the inbox, whoever runs the database."""
    database = open_database(None, directory, attach=True)
    try:
        found = StoredInbox(lambda: database.engine, "default").after(
            0, max_events=10**6, max_rows=10**6
        )
    finally:
        database.close()
    events = [event for part in found.parsed for event in part.events]
    return [event for event in events if isinstance(event, SequenceRejected)]


def test_what_was_accepted_outlives_a_kill_also_between_two_lines(
    alone: Serve, folder: Path
) -> None:
    for body, events in ((record(1), 1), (first(2), 0), (second(2), 1)):
        served = alone()
        answer = post(served, body, query="?broker_id=1")
        assert (answer.status_code, answer.json()["events"]) == (202, events), answer.text
        served.kill()
    found = stored(folder / "data")
    assert [(one.incoming_sequence, one.origin.broker_id) for one in found] == [(4, 1), (5, 1)]
    assert all(one.origin.at is not None for one in found), "the time stood in the first line"


def test_while_nothing_reads_shippers_are_told_to_wait(alone: Serve, folder: Path) -> None:
    served = alone(settings={"BROKER_LOGS__MAX_WAITING_EVENTS": "4"})
    answers = [post(served, record(number)) for number in range(3)]
    assert [one.status_code for one in answers] == [202, 202, 429]
    assert answers[2].headers["retry-after"] == "15"
    assert post(served, record(1)).status_code == 202, "it is stored already"
    assert len(stored(folder / "data")) == 2


@contextmanager
def database_unchanged(directory: Path) -> Iterator[None]:
    """Let PostgreSQL stand still until the block ends, as a frozen machine does."""
    frozen = [one for one in processes_of(directory) if "postgres" in one.name()]
    assert frozen
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in frozen:
            process.send_signal(signal.SIGCONT)


def test_a_database_that_hangs_is_told_and_what_is_sent_again_is_stored_once(
    alone: Serve, folder: Path
) -> None:
    served = alone()
    assert post(served, record(1)).status_code == 202
    with database_unchanged(folder / "data"):
        rejected = post(served, record(2))
        assert (rejected.status_code, rejected.headers["retry-after"]) == (503, "10")
        assert served.get("/livez").status_code == 200
    # What hung may still have arrived, and arrives once either way.
    assert wait_until(
        lambda: post(served, record(2)).status_code == 202, timeout_seconds=WAIT_SECONDS
    )
    assert sorted(one.incoming_sequence for one in stored(folder / "data")) == [4, 5]


def test_shippers_at_once_lose_nothing_and_keep_their_order(alone: Serve, folder: Path) -> None:
    served = alone()
    rejected: list[int] = []

    def ship(shipper: int) -> None:
        for number in range(20):
            body = record(1000 * shipper + number)
            while (status := post(served, body, query=f"?source=s{shipper}").status_code) != 202:
                assert status in AGAIN
                rejected.append(status)
                pause(0.05)

    shippers = [threading.Thread(target=ship, args=(number,)) for number in range(12)]
    for shipper in shippers:
        shipper.start()
    for shipper in shippers:
        shipper.join(120)
    found = stored(folder / "data")
    for number in range(12):
        mine = [one.incoming_sequence for one in found if one.origin.source == f"s{number}"]
        assert mine == [1000 * number + place + 3 for place in range(20)]


def token(directory: Path, name: str, scope: str) -> str:
    command = [sys.executable, "-m", "service", "token", "create", name, "--scope", scope]
    made = subprocess.run(
        [*command, "--data-dir", str(directory)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=plain_environment(),
        check=True,
        timeout=180,
    )
    return made.stdout.strip()


def test_elsewhere_than_on_loopback_scope_ingest_is_needed(alone: Serve, folder: Path) -> None:
    served = alone(host="0.0.0.0")  # noqa: S104 - what is tested
    ingest, reads = (token(folder / "data", scope, scope) for scope in ("ingest", "read"))

    def status(secret: str | None) -> int:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return post(served, record(), **headers).status_code

    assert [status(None), status("tidemark_wrong"), status(reads), status(ingest)] == [
        401,
        401,
        403,
        202,
    ]
    assert len(stored(folder / "data")) == 1


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


ALMOST: Final = (first() + second()[:-30] + "\n").encode()
BAD: Final[Sequence[tuple[str, bytes, str, str, int]]] = [
    ("random bytes", noise(3 * MEGABYTE), TEXT, "", 202),
    ("random bytes as JSON", noise(MEGABYTE), "application/json", "", 400),
    ("random bytes as a push", noise(MEGABYTE), "application/x-protobuf", "", 400),
    ("random bytes as gzip", noise(MEGABYTE), TEXT, "gzip", 400),
    ("one huge line", b"x" * (4 * MEGABYTE), TEXT, "", 202),
    ("one huge line of ours", second().encode().strip() * 30_000, TEXT, "", 413),
    ("a huge line of ours", second().encode().strip() * 15_000, TEXT, "", 202),
    ("almost our lines", ALMOST * 10_000, TEXT, "", 202),
    ("our first lines alone", first().encode() * 20_000, TEXT, "", 202),
    ("NUL bytes", b"\0" * MEGABYTE, TEXT, "", 202),
    ("NUL bytes in a record", second().encode().replace(b"orders", b"or\0ders"), TEXT, "", 202),
    ("a million tiny lines", b"a\n" * 1_000_000, TEXT, "", 413),
    ("as many empty lines as may be", b"\n" * 200_000, TEXT, "", 202),
    ("deep JSON", b"[" * MEGABYTE, "application/json", "", 400),
    ("deep JSON in a record", b'{"a":' * 500_000, "application/x-ndjson", "", 400),
    (
        "wide JSON",
        b'{"message":"","a":[' + b"[]," * MEGABYTE + b"[]]}",
        "application/json",
        "",
        202,
    ),
    ("small packed, huge unpacked", gzip.compress(bytes(100 * MEGABYTE), 1), TEXT, "gzip", 413),
    ("gzip that ends early", gzip.compress(noise(100_000))[:-9], TEXT, "gzip", 400),
    ("more than a body may have", b"x\n" * (5 * MEGABYTE), TEXT, "", 413),
    ("a log of another program", b"Nov 21 11:56:40 host sshd[1]: hello\n" * 1000, TEXT, "", 202),
    ("UTF-16", (record() * 100).encode("utf-16"), TEXT, "", 202),
    ("a picture", b"\x89PNG\r\n\x1a\n" + noise(1000), "image/png", "", 415),
]


def test_whatever_comes_is_answered_and_the_service_goes_on(alone: Serve, folder: Path) -> None:
    served = alone()
    for what, body, kind, encoding, status in BAD:
        headers = {"Content-Encoding": encoding} if encoding else {}
        answer = post(served, body, kind, query="?source=bad", **headers)
        assert (what, answer.status_code) == (what, status), answer.text
        assert len(answer.content) < 1000
    assert post(served, record(7), query="?source=good").json()["events"] == 1
    assert served.events("request_failed") == []
    good = [one for one in stored(folder / "data") if one.origin.source == "good"]
    assert [one.incoming_sequence for one in good] == [10]


@pytest.mark.parametrize("secret", ["", "tidemark_wrong"])
def test_who_sends_much_before_looking_finds_the_answer(alone: Serve, secret: str) -> None:
    served = alone(host="0.0.0.0" if secret else "127.0.0.1")  # noqa: S104 - what is tested
    headers = {"Content-Type": TEXT, "Connection": "close", "Authorization": f"Bearer {secret}"}
    where = urlsplit(served.address)
    assert where.hostname is not None
    link = HTTPConnection(where.hostname, where.port, timeout=30)
    link.request("POST", PATH, body=b"x\n" * (5 * MEGABYTE), headers=headers)
    answer = link.getresponse()
    assert answer.status == (401 if secret else 413)
    assert json.loads(answer.read())["status"] == answer.status
    link.close()


def inbox_of(served: Served) -> tuple[str | None, int]:
    """Return up to where the last stored round has read, and how many deliveries are after it."""
    database = open_database(None, served.start.directory, attach=True)
    try:
        inbox = StoredInbox(lambda: database.engine, "default")
        position = inbox.stored_position("http")
        left = inbox.after(int(position or 0), max_events=10**6, max_rows=10**6)
    finally:
        database.close()
    return position, len(left.parsed)


def test_a_round_reads_what_came_and_the_next_process_goes_on_behind_it(serve: Serve) -> None:
    served = serve().wait_ready()
    assert inbox_of(served) == (None, 0), "nobody sent anything"
    assert served.status()["broker_logs"] == []
    for number in (1, 2):
        answer = post(served, record(number) + second()[:-40], query="?source=kafka-1")
        assert answer.json() == {"lines": 3, "events": 1, "unparsed": 1}
    assert wait_until(lambda: inbox_of(served) == ("2", 0), timeout_seconds=WAIT_SECONDS)
    (source,) = served.status()["broker_logs"]
    assert (source["source"], source["lines"], source["unparsed"]) == ("kafka-1", 6, 2)
    assert source["last_line_at"] == "2026-11-21T11:00:00.002000Z"
    served.kill()
    again = serve().wait_ready()
    assert inbox_of(again) == ("2", 0)
    assert post(again, record(3)).status_code == 202
    assert wait_until(lambda: inbox_of(again) == ("3", 0), timeout_seconds=WAIT_SECONDS)
