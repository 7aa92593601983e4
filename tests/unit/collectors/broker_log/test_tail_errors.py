"""What cannot be read is told, as a gap of its source, and the other logs go on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collectors.broker_log.files import OpenFile, ReadFailure
from collectors.broker_log.log_reading import PassLimits
from collectors.broker_log.tail import ABSENT_LOGS, MAX_LOGS
from rules.facts.gap import GapCause, GapScope
from tests.unit.collectors.broker_log.fake_disk import LOG, FakeDisk
from tests.unit.collectors.broker_log.tailing import (
    SOURCE,
    Tailing,
    begun,
    error_of,
    lines_of,
)

OTHER = "/logs/controller.log"
GZIP = b"\x1f\x8b\x08\x00 packed"


def test_a_pattern_that_matches_nothing_is_told_until_it_does() -> None:
    disk = FakeDisk()
    tailing = Tailing(disk)
    for _ in range(2):
        found = tailing.read_once()
        assert error_of(found) == "no file matches /logs/*.log"
        (gap,) = found.gaps
        assert (gap.scope, gap.cause, gap.broker_id) == (GapScope.BROKER_LOG, GapCause.GONE, 1)
    disk.append(b"first\n")
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["first"], None)


def test_a_folder_that_cannot_be_listed_leaves_everything_as_it_is() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.hidden = ReadFailure(why="/logs: permission denied", cause=GapCause.NOT_AUTHORIZED)
    assert error_of(tailing.read_once()) == "/logs: permission denied"
    disk.hidden = None
    assert tailing.lines() == ["one"]


def test_at_the_first_pass_it_stays_the_first_pass() -> None:
    disk = FakeDisk()
    disk.append(b"old\n")
    disk.hidden = ReadFailure(why="/logs: permission denied", cause=GapCause.NOT_AUTHORIZED)
    tailing = Tailing(disk)
    tailing.read_once()
    disk.hidden = None
    assert tailing.lines() == []


def test_a_file_that_may_not_be_read_holds_up_no_other() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"denied\n")
    disk.append(b"read\n", OTHER)
    tailing.crash()
    disk.denied.add(LOG)
    found = tailing.read_once()
    assert lines_of(found) == ["read"]
    assert error_of(found) == f"{LOG}: permission denied"
    assert found.gaps[0].cause is GapCause.NOT_AUTHORIZED
    disk.denied.clear()
    assert tailing.lines() == ["denied"]


def test_what_a_file_held_while_it_could_not_be_read_at_first_is_not_news() -> None:
    disk = FakeDisk()
    disk.append(b"old\n")
    disk.denied.add(LOG)
    tailing = Tailing(disk)
    assert error_of(tailing.read_once()) == f"{LOG}: permission denied"
    disk.append(b"older than what can be read\n")
    assert tailing.read_once().gaps != ()
    disk.denied.clear()
    assert tailing.lines() == []
    disk.append(b"new\n")
    assert tailing.lines() == ["new"]


def test_a_rotated_file_that_may_not_be_read_is_given_up_and_counted() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"denied\n")
    tailing.crash()
    disk.rotate_by_number()
    disk.denied.add(f"{LOG}.1")
    disk.append(b"next\n")
    found = tailing.read_once()
    assert lines_of(found) == ["next"]
    assert found.sources[0].lost_bytes == len(b"denied\n")
    assert error_of(found) == f"{LOG}.1: permission denied"
    assert error_of(tailing.read_once()) is None


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a socket", "a device"])
def test_what_is_no_file_is_told_and_not_opened(kind: str) -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.odd["/logs/odd.log"] = kind
    disk.append(b"line\n")
    found = tailing.read_once()
    assert lines_of(found) == ["line"]
    assert error_of(found) == f"/logs/odd.log is {kind}, no log file"


def test_a_name_of_any_bytes_is_told_as_one_line_of_text() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.odd["/logs/a\n\udcff.log"] = "a folder"
    assert error_of(tailing.read_once()) == "/logs/a??.log is a folder, no log file"


def test_a_link_to_nothing_is_told() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.links["/logs/link.log"] = "/nowhere/0.log"
    assert error_of(tailing.read_once()) == "/logs/link.log is not there"


def test_a_file_that_was_cut_short_begins_anew_and_what_was_seen_of_it_is_counted() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"seen and begu")
    tailing.read_once()
    disk.cut()
    disk.append(b"next\n")
    found = tailing.read_once()
    assert lines_of(found) == ["next"]
    assert found.sources[0].lost_bytes == len(b"seen and begu")
    assert error_of(found) == (
        f"a file of {LOG} was cut short after byte 7 of it was read: "
        "what was written there since is not known"
    )
    assert error_of(tailing.read_once()) is None


def test_a_file_that_was_cut_to_where_it_was_read_goes_on_there_and_the_rest_is_told() -> None:
    disk = FakeDisk()
    tailing = begun(disk, limits=PassLimits(bytes=1, seconds=3600))
    disk.append(b"r" * 2000 + b"\n" + b"x" * (1 << 20))
    assert tailing.lines() == ["r" * 2000]
    disk.cut(size=2008)
    disk.append(b"next\n")
    found = tailing.read_once()
    assert lines_of(found) == ["next"]
    assert found.sources[0].lost_bytes == (1 << 20) - len(b"next\n")
    assert "was cut short after byte 2008" in (error_of(found) or "")
    assert error_of(tailing.read_once()) is None


def test_a_file_that_is_gone_before_its_end_was_read_is_told() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"lost\n")
    tailing.crash()
    disk.remove(LOG)
    disk.append(b"next\n")
    disk.append(b"z" * 10, "/logs/takes-the-inode")
    found = tailing.read_once()
    assert lines_of(found) == ["next"]
    assert error_of(found) is not None
    assert error_of(tailing.read_once()) is None


def test_an_older_copy_does_not_hide_that_a_file_is_gone() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"r" * 2000 + b"\n")
    tailing.read_once()
    disk.copy(LOG, f"{LOG}.keep")
    disk.append(b"more\n")
    tailing.read_once()
    tailing.crash()
    disk.remove(LOG)
    disk.append(b"next\n")
    found = tailing.read_once()
    assert lines_of(found) == ["next"]
    assert "after byte 2013 of it was read" in (error_of(found) or "")


def test_a_disk_that_is_not_mounted_for_a_while_changes_nothing() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    tailing.crash()
    files, disk.files = disk.files, {}
    nothing, lost = "no file matches /logs/*.log", "what was written to it since is not known"
    told = [error_of(tailing.read_once()) for _ in range(3)]
    assert told == [f"{nothing}; {LOG} is not there any more: {lost}", nothing, nothing]
    disk.files = files
    disk.append(b"one\n")
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one"], None)


def test_logs_that_never_come_back_are_forgotten_in_the_end() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for number in range(ABSENT_LOGS + 20):
        path = f"/logs/pod-{number}.x.log"
        disk.append(b"line %d\n" % number, path)
        tailing.read_once()
        disk.remove(path)
    for _ in range(2):
        tailing.read_once()
    assert disk.open_files == 1
    assert tailing.position is not None
    assert tailing.position.count("pod-") <= 2 * (ABSENT_LOGS + 1)  # as name and as path
    disk.append(b"still read\n")
    assert tailing.lines() == ["still read"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (GZIP, "compressed with gzip"),
        (b"\x28\xb5\x2f\xfd..", "compressed with zstd"),
        (b"PK\x03\x04..", "a zip archive"),
        ("[2026".encode("utf-16"), "UTF-16 text"),
    ],
)
def test_a_log_that_is_no_plain_text_is_told_and_not_read(content: bytes, kind: str) -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(content + b"\n", OTHER)
    found = tailing.read_once()
    assert lines_of(found) == []
    assert error_of(found) == f"{OTHER} is {kind}: only plain lines are read"


def test_a_file_that_is_compressed_after_it_was_read_is_no_error() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for number in range(4):
        disk.append(b"line\n")
        disk.rename(LOG, f"{LOG}.2026-11-21-{number}")
        disk.append(b"next\n")
        found = tailing.read_once()
        assert (lines_of(found), error_of(found)) == (["line", "next"], None)
        disk.remove(f"{LOG}.2026-11-21-{number}")
        disk.append(GZIP + b"%d" % number, f"{LOG}.2026-11-21-{number}.gz")


def test_one_that_is_compressed_at_once_is_read_while_it_is_held_open() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for number in range(4):
        disk.append(b"line %d\n" % number)
        disk.remove(LOG)
        disk.append(GZIP + b"%d" % number, f"{LOG}.2026-11-21-{number}.gz")
        disk.append(b"next %d\n" % number)
        found = tailing.read_once()
        assert (lines_of(found), error_of(found)) == ([f"line {number}", f"next {number}"], None)


def test_one_that_was_compressed_before_it_was_ever_seen_is_told_once() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for number in range(2):
        disk.append(b"line %d\n" % number)
        disk.remove(LOG)
        disk.append(GZIP + b"%d" % number, f"{LOG}.2026-11-21-{number}.gz")
    disk.append(b"next\n")
    found = tailing.read_once()
    assert lines_of(found) == ["line 0", "next"]
    assert error_of(found) == (
        f"{LOG}.2026-11-21-0.gz, {LOG}.2026-11-21-1.gz: compressed with gzip before it was read, "
        "and only plain lines are read"
    )
    assert error_of(tailing.read_once()) is None


def test_a_log_of_two_sources_is_read_for_the_first() -> None:
    disk = FakeDisk()
    tailing = begun(disk, SOURCE, replace(SOURCE, name="again", pattern=LOG))
    disk.append(b"one\n")
    found = tailing.read_once()
    assert lines_of(found) == ["one"]
    assert [source.error for source in found.sources] == [
        None,
        f"{LOG} is read already, as one of source kafka",
    ]


def test_two_names_of_one_file_are_one_log() -> None:
    disk = FakeDisk()
    disk.links["/logs/alias.log"] = LOG
    tailing = begun(disk)
    disk.append(b"one\n")
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one"], None)


def test_of_too_many_logs_the_newest_are_read_and_none_twice() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for number in range(MAX_LOGS + 50):
        disk.tick()
        disk.append(b"line %d\n" % number, f"/logs/{number}.x.log")
    found = tailing.read_once()
    assert len(lines_of(found)) == MAX_LOGS
    assert error_of(found) == f"/logs/*.log matches 251 logs: the newest {MAX_LOGS} are read"
    assert tailing.lines() == []
    disk.tick()
    disk.append(b"newest\n", "/logs/new.log")
    assert tailing.lines() == ["newest"]
    for number in range(100, MAX_LOGS + 50):
        disk.remove(f"/logs/{number}.x.log")
    assert tailing.lines() == []


@pytest.mark.parametrize("position", ["", "{}", '{"format":99,"sources":{}}'])
def test_a_position_that_cannot_be_read_begins_anew_and_is_told(position: str) -> None:
    disk = FakeDisk()
    disk.append(b"old\n")
    tailing = Tailing(disk)
    tailing.position = position
    found = tailing.read_once()
    assert lines_of(found) == []
    assert (error_of(found) or "").startswith("where the last pass ended cannot be read (")
    disk.append(b"new\n")
    assert tailing.lines() == ["new"]


class FailingDisk(FakeDisk):
    """A disk whose files cannot be read while `fails` is set."""

    fails: ReadFailure | None = None

    def open(self, path: str) -> OpenFile | ReadFailure:
        """Open a file unless the disk fails."""
        return self.fails or super().open(path)


@pytest.mark.parametrize("cause", [GapCause.UNREACHABLE, GapCause.LIMIT])
def test_a_disk_that_fails_for_a_while_loses_nothing(cause: GapCause) -> None:
    disk = FailingDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rotate_by_number()
    disk.append(b"two\n")
    tailing.crash()
    disk.fails = ReadFailure(why="input/output error", cause=cause, is_transient=True)
    found = tailing.read_once()
    assert lines_of(found) == []
    assert "input/output error" in (error_of(found) or "")
    disk.fails = None
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one", "two"], None)
