"""What is read of logs from pass to pass, and within which limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from collectors.broker_log.files import ReadFailure
from collectors.broker_log.handles import HELD
from collectors.broker_log.log_reading import MAX_LINE, PassLimits
from tests.unit.collectors.broker_log.fake_disk import LOG, FakeDisk
from tests.unit.collectors.broker_log.tailing import (
    SOURCE,
    Tailing,
    begun,
    error_of,
    lines_of,
)

OTHER = "/logs/controller.log"


def test_what_was_written_before_the_first_pass_is_not_news() -> None:
    disk = FakeDisk()
    disk.append(b"old\n")
    disk.append(b"older\n", f"{LOG}.1")
    tailing = Tailing(disk)
    assert tailing.lines() == []
    disk.append(b"new\n")
    assert tailing.lines() == ["new"]


def test_it_may_be_read_all_the_same_but_not_what_was_rotated_away() -> None:
    disk = FakeDisk()
    disk.append(b"old\n")
    disk.append(b"older\n", f"{LOG}.1")
    tailing = Tailing(disk, read_existing=True)
    assert tailing.lines() == ["old"]
    assert tailing.lines() == []


def test_a_line_that_is_begun_at_the_first_pass_is_read_whole() -> None:
    disk = FakeDisk()
    disk.append(b"old\nbeg")
    tailing = Tailing(disk)
    assert tailing.lines() == []
    disk.append(b"un\n")
    assert tailing.lines() == ["begun"]


def test_a_first_pass_within_a_line_without_end_begins_at_the_next_one() -> None:
    disk = FakeDisk()
    disk.append(b"x" * 100_000)
    tailing = Tailing(disk)
    assert tailing.lines() == []
    disk.append(b"xx\nnext\n")
    assert tailing.lines() == ["next"]


def test_a_log_that_comes_later_is_read_from_its_beginning() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.tick()
    disk.append(b"first\n", OTHER)
    disk.rename(OTHER, f"{OTHER}.1")
    disk.tick()
    disk.append(b"second\n", OTHER)
    assert tailing.lines() == ["first", "second"]


def test_a_copy_of_a_log_that_is_read_is_not_news() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.copy(LOG, "/logs/copy.log")
    assert tailing.lines() == []
    disk.append(b"more\n", "/logs/copy.log")
    assert tailing.lines() == ["more"]


def test_a_source_that_is_added_begins_with_its_own_first_pass() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"old\n", "/logs/b.txt")
    disk.append(b"line\n")
    tailing.sources = (SOURCE, replace(SOURCE, name="b", pattern="/logs/*.txt"))
    tailing.crash()
    assert tailing.lines() == ["line"]
    disk.append(b"new\n", "/logs/b.txt")
    assert tailing.lines() == ["new"]


def test_a_line_is_read_when_its_end_is_there() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\ntw")
    assert tailing.lines() == ["one"]
    assert tailing.lines() == []
    disk.append(b"o\n")
    assert tailing.lines() == ["two"]


def test_what_was_not_stored_is_read_again_and_the_parser_unchanged_where_it_stood() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    assert [event.offset for event in tailing.read_once().events if hasattr(event, "offset")] == [1]
    disk.append(b"two\n")
    assert lines_of(tailing.read_once(is_stored=False)) == ["two"]
    tailing.crash()
    found = tailing.read_once()
    assert lines_of(found) == ["two"]
    assert [event.offset for event in found.events if hasattr(event, "offset")] == [2]


def test_counts_are_those_of_the_pass() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"a\n?\n")
    (source,) = tailing.read_once().sources
    assert (source.lines, source.unparsed, source.unreadable) == (2, 1, ("?",))
    (source,) = tailing.read_once().sources
    assert (source.lines, source.unparsed, source.unreadable) == (0, 0, ())


def test_a_line_of_more_than_a_megabyte_is_cut_and_counted_also_over_passes_and_crashes() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"x" * (MAX_LINE + 5))
    found = tailing.read_once()
    assert [len(line) for line in lines_of(found)] == [MAX_LINE]
    lost = found.sources[0].lost_bytes or 0
    tailing.crash()
    disk.append(b"xxx\nnext\n")
    found = tailing.read_once()
    assert lines_of(found) == ["next"]
    assert lost + (found.sources[0].lost_bytes or 0) == 8


def test_a_pass_stops_at_its_limit_and_says_that_more_waits() -> None:
    disk = FakeDisk()
    tailing = begun(disk, limits=PassLimits(bytes=2 * MAX_LINE, seconds=3600))
    disk.append((b"y" * 999_999 + b"\n") * 3)
    passes = [tailing.read_once() for _ in range(3)]
    assert [(len(lines_of(one)), one.is_behind) for one in passes] == [
        (2, True), (1, False), (0, False),
    ]  # fmt: skip


def test_a_pass_stops_when_its_time_is_over_and_each_reads_something() -> None:
    disk = FakeDisk()
    tailing = begun(disk, limits=PassLimits(bytes=1 << 40, seconds=0))
    disk.append(b"a\n", OTHER)
    disk.append(b"bb\n")
    passes = [tailing.read_once() for _ in range(3)]
    assert [(lines_of(one), one.is_behind, one.gaps) for one in passes] == [
        (["a"], True, ()), (["bb"], False, ()), ([], False, ()),
    ]  # fmt: skip


class SlowDisk(FakeDisk):
    """A disk on which listing files takes its time."""

    tailing: Tailing | None = None
    seconds = 0.0

    def matching(self, pattern: str) -> Sequence[str] | ReadFailure:
        """List files, slowly."""
        if self.tailing is not None:
            self.tailing.now += self.seconds
        return super().matching(pattern)


def test_the_time_in_which_files_are_found_is_not_that_of_reading() -> None:
    disk = SlowDisk()
    disk.tailing = tailing = begun(disk, limits=PassLimits(seconds=2))
    disk.seconds = 5
    disk.append(b"a\n", OTHER)
    disk.append(b"b\n")
    found = tailing.read_once()
    assert sorted(lines_of(found)) == ["a", "b"]
    assert (found.is_behind, error_of(found)) == (False, None)


def test_it_is_told_when_finding_took_the_time_and_something_waits() -> None:
    disk = SlowDisk()
    disk.tailing = tailing = begun(disk, limits=PassLimits(bytes=1, seconds=2))
    disk.append(b"a\n", OTHER)
    disk.append(b"bb\n")
    disk.seconds = 5
    found = tailing.read_once()
    assert (lines_of(found), found.is_behind) == (["a"], True)
    assert error_of(found) == (
        "finding the files takes more than 2 s, and not all of them could be read"
    )


def test_a_log_with_much_to_read_holds_up_no_other() -> None:
    disk = FakeDisk()
    tailing = begun(disk, limits=PassLimits(bytes=100, seconds=3600))
    disk.append(b"b\n", OTHER)
    tailing.read_once()
    disk.append(b"news\n", LOG)
    disk.append(b"x" * 5000 + b"\n", OTHER)
    found = tailing.read_once()
    assert [line[:4] for line in lines_of(found)] == ["xxxx", "news"]
    assert not found.is_behind


def test_the_logs_of_a_source_come_in_the_order_of_their_names() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for path in (LOG, OTHER, LOG):
        disk.append(path.encode() + b"\n", path)
    assert tailing.lines() == [OTHER, LOG, LOG]


def test_a_folder_is_not_listed_while_nothing_is_rotated() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    before = disk.scans
    for _ in range(5):
        disk.append(b"a\n")
        assert tailing.lines() == ["a"]
    assert disk.scans == before


def test_few_files_are_open_and_none_after_the_end() -> None:
    disk = FakeDisk()
    paths = [f"/logs/{number}.x.log" for number in range(150)]
    for path in paths:
        disk.append(f"{path}\n".encode(), path)
        for number in range(3):
            disk.append(f"{path} {number}\n".encode(), f"{path}.{number}")
    tailing = Tailing(disk)
    tailing.read_once()
    assert disk.open_files == HELD
    for path in paths:
        disk.tick()
        disk.append(b"new\n", path)
        disk.rename(path, f"{path}.3")
        disk.append(f"next {path}\n".encode(), path)
    assert len(tailing.lines()) == 300
    assert disk.open_files == HELD
    assert disk.most_open <= 2 * HELD + 1
    tailing.tail.close()
    assert disk.open_files == 0
