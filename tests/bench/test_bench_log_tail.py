"""Reading log files that brokers append to: a backlog, and observes logs where little happens.

Stats are printed. The files are in the folder for temporary ones, in the system's cache.
"""

from __future__ import annotations

import os
import random
from datetime import UTC
from pathlib import Path
from typing import Final

import pytest

from collectors.broker_log.disk import Disk
from collectors.broker_log.tail import LogTail, TailSource
from rules.facts.identity import BrokerId
from service.runtime.clock import monotonic
from tests.bench.memory import weighed
from tests.log_lines import append_failed, stamped, thrown

MB: Final = 1_000_000
BACKLOG_BYTES: Final = 200 * MB
BROKERS, LOGS, ROTATED = 3, 6, 200
OBSERVATIONS: Final = 20
REJECTED: Final = (
    append_failed("orders-0"),
    thrown(
        "Out of order sequence number for producer 2001 at offset 3 in partition orders-0: 27 "
        "(incoming seq. number), 2 (current end sequence number)"
    ),
)


@pytest.fixture
def place(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def tail_of(*patterns: Path) -> LogTail:
    sources = [
        TailSource(name=str(pattern), pattern=str(pattern), broker_id=BrokerId(number), zone=UTC)
        for number, pattern in enumerate(patterns)
    ]
    return LogTail(Disk(), sources, monotonic=monotonic)


def backlog() -> bytes:
    """Return a megabyte of ordinary lines with an episode of rejected batches."""
    chooser, lines, size = random.Random(7), list[str](), 0
    while size < MB:
        number = chooser.randrange(10**9)
        line = stamped(f"[GroupCoordinator 1]: Stabilized group payments-{number} generation 42")
        lines += [line] if number % 200 else REJECTED
        size += len(line) + 1
    return "\n".join([*lines, ""]).encode()


def test_reading_a_backlog(place: Path) -> None:
    path, content = place / "server.log", backlog()
    path.write_bytes(b"first\n")
    tail = tail_of(path)
    position = tail.read(None).position
    with path.open("ab") as file:
        for _ in range(BACKLOG_BYTES // len(content)):
            file.write(content)
    observations = lines = events = 0
    begin, longest, is_behind = monotonic(), 0.0, True
    while is_behind:
        before = monotonic()
        found = tail.read(position)
        longest = max(longest, monotonic() - before)
        position, is_behind = found.position, found.is_behind
        observations += 1
        lines += found.sources[0].lines
        events += len(found.events)
    took = monotonic() - begin
    size = path.stat().st_size
    print(
        f"\n{size / MB:.0f} MB in {observations} observations: {lines:,} lines, {events:,} events"
    )
    print(
        f"  {size / took / MB:.0f} MB/s, {lines / took:,.0f} lines/s, longest observation {longest:.2f} s"
    )
    print(f"  {weighed()}")
    assert lines == BACKLOG_BYTES // len(content) * content.count(b"\n")
    tail.close()


def test_looking_where_little_happens_and_after_a_rotation(place: Path) -> None:
    """Three brokers with six logs each, and 200 rotated files of each log beside them."""
    folders = [place / f"broker-{number}" for number in range(BROKERS)]
    paths = [folder / f"log{number}.log" for folder in folders for number in range(LOGS)]
    for folder in folders:
        folder.mkdir()
    for path in paths:
        path.write_text(stamped(f"first of {path}") + "\n", encoding="utf-8")
        for number in range(ROTATED):
            rotated = path.with_name(f"{path.name}.2026-11-{number}")
            rotated.write_text(stamped(f"{number} of {path}") + "\n", encoding="utf-8")
    tail = tail_of(*(folder / "*.log" for folder in folders))
    begin = monotonic()
    position = tail.read(None).position
    first = monotonic() - begin
    begin = monotonic()
    for number in range(OBSERVATIONS):
        for path in paths:
            with path.open("a", encoding="utf-8") as file:
                file.write(stamped(f"{number}") + "\n")
        position = tail.read(position).position
    usual = (monotonic() - begin) / OBSERVATIONS
    for path in paths:
        path.rename(f"{path}.2026-12-01")
        path.write_text(stamped(f"next of {path}") + "\n", encoding="utf-8")
    begin = monotonic()
    found = tail.read(position)
    rotated_seconds = monotonic() - begin
    print(
        f"\n{len(paths)} logs, {len(paths) * ROTATED} rotated files: first observation {first:.3f} s,"
    )
    print(f"  usual observation {usual:.4f} s, after a rotation of all {rotated_seconds:.3f} s,")
    print(f"  position {len(found.position) / 1000:.0f} kB; {weighed()}")
    assert sum(source.lines for source in found.sources) == len(paths)
    tail.close()
