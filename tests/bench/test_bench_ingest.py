"""Log lines over HTTP to a service of its own process, with PostgreSQL; stats are printed.

The cluster is away, so that nothing is read meanwhile. Batches are as large as shippers send them;
one line in a hundred is part of a record that is stored. The clients run on the same machine.
"""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from service.observe.log_inbox import LogInbox
from service.runtime.clock import monotonic, utc_now
from service.runtime.threads import without_limit
from service.storage.database.engine import open_database
from service.storage.rounds.inbox import StoredInbox
from tests import loopback
from tests.bench.test_bench_log_parser import RECORD, mixed
from tests.integration.serve.served import Served, Start, end_processes

PATH: Final = "/api/v1/ingest/broker-log"
BATCH_LINES: Final = 5_000  # about a megabyte
LINES: Final = 200_000
SMALL: Final = 50
REJECTIONS: Final = 50_000
CLIENTS: Final = 4
PACKED: Final = {"Content-Encoding": "gzip"}

Body = tuple[bytes, dict[str, str]]


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        start = Start(
            bootstrap=f"127.0.0.1:{held.getsockname()[1]}",
            directory=folder / "data",
            settings={"BROKER_LOGS__MAX_WAITING_EVENTS": "10000000"},
        )
        made = Served(start, folder / "log").wait_ready()
        yield made
    made.stop()
    end_processes(start.directory)


def lines_of(run: int) -> list[bytes]:
    """Return lines of which each tells a time of its own: none is taken for a repetition."""
    return [moved(line, LINES * run + number) for number, line in enumerate(mixed()[:LINES])]


def moved(line: bytes, number: int) -> bytes:
    minute, rest = divmod(number, 60_000)
    at = b" %02d:%02d:%02d,%03d]" % (minute // 60, minute % 60, rest // 1000, rest % 1000)
    return line.replace(b" 11:56:40,159]", at, 1)


def text(lines: Sequence[bytes]) -> Body:
    return b"\n".join(lines), {"Content-Type": "text/plain"}


def ndjson(lines: Sequence[bytes]) -> Body:
    records = [{"host": "kafka-1", "file": "/a.log", "message": line.decode()} for line in lines]
    body = "\n".join(json.dumps(record) for record in records).encode()
    return body, {"Content-Type": "application/x-ndjson"}


def array(lines: Sequence[bytes]) -> Body:
    records = [{"date": 1795262200.159, "log": line.decode()} for line in lines]
    return json.dumps(records).encode(), {"Content-Type": "application/json"}


def packed(form: Callable[[Sequence[bytes]], Body]) -> Callable[[Sequence[bytes]], Body]:
    def made(lines: Sequence[bytes]) -> Body:
        body, headers = form(lines)
        return gzip.compress(body, 6), {**headers, **PACKED}

    return made


FORMS: Final = {
    "text": text,
    "text, gzip": packed(text),
    "NDJSON": ndjson,
    "NDJSON, gzip": packed(ndjson),
    "JSON array": array,
}


def send(served: Served, bodies: Sequence[Body]) -> int:
    """Send bodies one after the other on one connection; return how many events were stored."""
    with loopback.client() as client:
        answers = [
            client.post(served.address + PATH, content=body, headers=headers)
            for body, headers in bodies
        ]
    assert {one.status_code for one in answers} == {202}
    return sum(one.json()["events"] for one in answers)


def in_batches(lines: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    return [lines[at : at + size] for at in range(0, len(lines), size)]


def test_lines_per_second(served: Served) -> None:
    whole = len(b"\n".join(lines_of(0)))
    print(f"\n{LINES:,} lines of {whole / LINES:.0f} bytes in batches of {BATCH_LINES:,}")
    for run, (name, form) in enumerate(FORMS.items()):
        bodies = [form(part) for part in in_batches(lines_of(run), BATCH_LINES)]
        begin = monotonic()
        events = send(served, bodies)
        took = monotonic() - begin
        print(f"  {name:<16} {LINES / took:9,.0f} lines/s, {events:,} events stored")
    bodies = [text(part) for part in in_batches(lines_of(10), BATCH_LINES)]
    begin = monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda first: send(served, bodies[first::CLIENTS]), range(CLIENTS)))
    print(f"  text, {CLIENTS} clients  {LINES / (monotonic() - begin):9,.0f} lines/s")
    tiny = [text(part) for part in in_batches(lines_of(11)[: SMALL * 200], SMALL)]
    begin = monotonic()
    send(served, tiny)
    print(f"  {SMALL} lines each    {len(tiny) / (monotonic() - begin):9,.0f} requests/s")
    records = [line for number in range(REJECTIONS) for line in rejection(number)]
    bodies = [text(part) for part in in_batches(records, BATCH_LINES)]
    begin = monotonic()
    events = send(served, bodies)
    print(f"  records alone    {events / (monotonic() - begin):9,.0f} events/s")
    _read(served)


def rejection(number: int) -> tuple[bytes, bytes]:
    first, second = (line.encode() for line in RECORD)
    return moved(first, 20 * LINES + number), second


def _read(served: Served) -> None:
    """Read all that waits as rounds do."""
    database = open_database(None, served.start.directory, attach=True)
    try:
        inbox = LogInbox(
            StoredInbox(lambda: database.engine, "default"),
            max_waiting=1,
            utc_now=utc_now,
            in_time=without_limit,
        )
        position, is_behind, events, took = None, True, 0, list[float]()
        while is_behind:
            begin = monotonic()
            fed = inbox.read(position)
            took.append(monotonic() - begin)
            position, is_behind = fed.position, fed.is_behind
            events += len(fed.events)
    finally:
        database.close()
    print(
        f"  reading        {events:,} events in {len(took)} rounds, max {max(took) * 1000:.0f} ms"
    )
