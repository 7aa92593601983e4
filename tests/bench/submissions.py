"""Log lines as large as one request may be, every submission a new one, which the service has to parse.

One line in a hundred belongs to a rejected batch. Another time, or another first line, makes a submission
differ from all before; making it costs the clients next to nothing.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from service.api.core.edge import MAX_LOG_BODY
from service.api.ingest.unpacking import MAX_UNPACKED
from tests.bench.crowd import INGEST, request
from tests.bench.test_bench_log_parser import mixed

TIME: Final = b" 11:56:40,159]"
ROOM: Final = 4096  # bytes for the line that differs
TEXT: Final = {"Content-Type": "text/plain"}
PACKED: Final = {**TEXT, "Content-Encoding": "gzip"}
RECORDS: Final = {"Content-Type": "application/x-ndjson"}

Form = tuple[bytes, Mapping[str, str]]


class Submissions:
    """Requests without end: text, twice as much text in gzip, and records of JSON, in turn."""

    def __init__(self, secret: str) -> None:
        lines = mixed()
        self._secret = secret
        self._number = 0
        self._text = _up_to(MAX_LOG_BODY - ROOM, lines)
        self._double = gzip.compress(_up_to(MAX_UNPACKED - ROOM, lines))
        self._records = _up_to(MAX_LOG_BODY - ROOM, map(_record, lines))

    def __iter__(self) -> Iterator[bytes]:
        """Go on for ever."""
        return self

    def __next__(self) -> bytes:
        """Return another one."""
        self._number += 1
        body, headers = self._forms[self._number % len(self._forms)](self._number)
        return request("POST", INGEST, self._secret, body, headers)

    @property
    def _forms(self) -> Sequence[Callable[[int], Form]]:
        return (
            lambda number: (at_another_time(self._text, number), TEXT),
            lambda number: (gzip.compress(b"submission %d\n" % number) + self._double, PACKED),
            lambda number: (at_another_time(self._records, number), RECORDS),
        )


def at_another_time(body: bytes, number: int) -> bytes:
    """Return lines that were written at a time of their own."""
    minute, rest = divmod(number, 60_000)
    return body.replace(TIME, b" 12:%02d:%02d,%03d]" % (minute, rest // 1000, rest % 1000))


def _up_to(size: int, lines: Iterable[bytes]) -> bytes:
    """Return as many lines as fit."""
    kept: list[bytes] = []
    for line in lines:
        size -= len(line) + 1
        if size < 0:
            break
        kept.append(line)
    return b"\n".join(kept) + b"\n"


def _record(line: bytes) -> bytes:
    fields = {"host": "kafka-1", "file": "/var/log/kafka/server.log", "message": line.decode()}
    return json.dumps(fields).encode()
