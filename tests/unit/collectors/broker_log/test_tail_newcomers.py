"""A log that comes later, and of which others could be rotated files by their names."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.collectors.broker_log.fake_disk import LOG, FakeDisk
from tests.unit.collectors.broker_log.tailing import SOURCE, Tailing, error_of, lines_of

FIRST, SECOND, NEW = "/logs/broker-1.log", "/logs/broker-2.log", "/logs/broker.log"


def followed() -> Tailing:
    """Return a tail that follows two logs, of which only one has grown so far."""
    disk = FakeDisk()
    disk.append(b"old 1\n", FIRST)
    disk.append(b"old 2\n", SECOND)
    tailing = Tailing(disk)
    assert tailing.lines() == []
    disk.tick()
    disk.append(b"a\n", FIRST)
    assert tailing.lines() == ["a"]
    disk.tick()
    return tailing


def test_logs_that_are_read_stay_logs_of_their_own() -> None:
    tailing = followed()
    disk = tailing.disk
    disk.append(b"new\n", NEW)
    disk.append(b"b\n", FIRST)
    assert sorted(tailing.lines()) == ["b", "new"]
    tailing.crash()
    disk.tick()
    for path in (FIRST, SECOND, NEW):
        disk.append(f"{path}\n".encode(), path)
    assert sorted(tailing.lines()) == [FIRST, SECOND, NEW]


def test_they_are_rotated_each_for_itself() -> None:
    tailing = followed()
    disk = tailing.disk
    disk.append(b"new\n", NEW)
    disk.append(b"b\n", FIRST)
    disk.append(b"c\n", SECOND)
    assert sorted(tailing.lines()) == ["b", "c", "new"]
    for path in (NEW, FIRST):
        for number in range(2):
            disk.tick()
            disk.append(f"last {path} {number}\n".encode(), path)
            disk.rename(path, path.replace(".log", f"-2026-11-2{number}.log"))
        disk.append(f"next {path}\n".encode(), path)
    found = tailing.read_once()
    assert sorted(lines_of(found)) == sorted(
        f"{what} {path}{number}"
        for path in (NEW, FIRST)
        for what, number in (("last", " 0"), ("last", " 1"), ("next", ""))
    )
    assert error_of(found) is None
    assert tailing.lines() == []


def test_a_rotated_file_that_was_there_before_its_log_is_none() -> None:
    disk = FakeDisk()
    disk.append(b"old\n", f"{LOG}.1")
    tailing = Tailing(disk, replace(SOURCE, pattern="/logs/*"))
    assert tailing.lines() == []
    disk.tick()
    disk.append(b"one\n")
    assert tailing.lines() == ["one"]
    disk.append(b"two\n")
    for number in range(2):
        disk.tick()
        disk.rotate_by_number()
        disk.append(f"after {number}\n".encode())
    assert tailing.lines() == ["two", "after 0", "after 1"]
    disk.tick()
    disk.append(b"end\n")
    assert tailing.lines() == ["end"]
