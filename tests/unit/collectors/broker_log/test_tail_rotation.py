"""A log whose files are renamed, copied, cut short and removed is read line by line all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collectors.broker_log.log_reading import PassLimits
from collectors.broker_log.positions import FILES_KEPT
from tests.unit.collectors.broker_log.fake_disk import LOG, FakeDisk
from tests.unit.collectors.broker_log.tailing import (
    SOURCE,
    Tailing,
    begun,
    error_of,
    lines_of,
)


def test_a_renamed_file_is_read_to_its_end_before_the_new_one() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rename(LOG, f"{LOG}.2026-11-21-10")
    disk.append(b"two\n")
    assert tailing.lines() == ["one", "two"]
    assert tailing.lines() == []


def test_it_is_found_whatever_it_is_called_now() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rename(LOG, "/logs/old")
    disk.append(b"two\n")
    tailing.crash()
    assert tailing.lines() == ["one", "two"]


@pytest.mark.parametrize("kind", ["numbers", "dates"])
def test_several_rotations_while_nobody_looked_are_read_in_their_order(kind: str) -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    tailing.crash()
    for number in range(12):
        disk.tick()
        disk.append(f"line {number}\n".encode())
        if kind == "numbers":
            disk.rotate_by_number()
        else:
            disk.rename(LOG, f"{LOG}.2026-11-21-{number}")
    disk.append(b"last\n")
    assert tailing.lines() == [*(f"line {number}" for number in range(12)), "last"]
    assert tailing.lines() == []


def test_a_rotation_at_a_limit_goes_on_where_it_stopped() -> None:
    disk = FakeDisk()
    tailing = begun(disk, limits=PassLimits(bytes=1, seconds=3600))
    for number in range(4):
        disk.tick()
        disk.append(f"line {number}\n".encode())
        disk.rotate_by_number()
    disk.append(b"last\n")
    found = []
    for _ in range(5):
        found.append(tailing.lines())
        tailing.crash()
    assert found == [["line 0"], ["line 1"], ["line 2"], ["line 3"], ["last"]]


def test_between_the_renaming_and_the_new_file_nothing_is_missing() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rotate_by_number()
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one"], None)
    disk.append(b"two\n")
    assert tailing.lines() == ["two"]


def test_what_is_still_written_to_a_renamed_file_is_read() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rotate_by_number()
    disk.append(b"two\n")
    assert tailing.lines() == ["one", "two"]
    disk.append(b"late\n", f"{LOG}.1")
    assert tailing.lines() == ["late"]


def test_a_line_whose_end_never_came_is_counted_when_the_next_file_is_read() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"beg")
    tailing.read_once()
    disk.rotate_by_number()
    disk.append(b"next\n")
    found = tailing.read_once()
    assert (lines_of(found), found.sources[0].lost_bytes) == (["next"], 3)
    assert tailing.read_once().sources[0].lost_bytes == 0


def test_old_files_that_are_removed_are_no_loss() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    for number in range(5):
        disk.append(f"line {number}\n".encode())
        disk.rotate_by_number()
        disk.remove(f"{LOG}.2")
        found = tailing.read_once()
        assert (lines_of(found), error_of(found)) == ([f"line {number}"], None)


def test_an_inode_that_is_used_again_is_another_file() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    assert tailing.lines() == ["one"]
    tailing.crash()
    inode = disk.files[LOG].number
    disk.rotate_by_number()
    disk.remove(f"{LOG}.1")
    disk.append(b"much more than there was before\n")
    assert disk.files[LOG].number == inode
    assert tailing.lines() == ["much more than there was before"]


def test_a_file_that_was_removed_is_read_to_its_end_while_it_is_held_open() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.remove(LOG)
    disk.append(b"two\n")
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one", "two"], None)
    assert tailing.lines() == []


def test_its_end_is_not_lost_with_a_pass_that_was_never_stored() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.remove(LOG)
    disk.append(b"two\n")
    for is_stored in (False, False, True):
        found = tailing.read_once(is_stored=is_stored)
        assert (lines_of(found), error_of(found)) == (["one", "two"], None)
    assert disk.open_files == 2
    assert tailing.lines() == []
    assert disk.open_files == 1


def test_one_that_was_removed_after_a_pass_that_was_never_stored_is_not_lost_either() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.rotate_by_number()
    disk.append(b"two\n")
    assert lines_of(tailing.read_once(is_stored=False)) == ["two"]
    disk.append(b"one\n", f"{LOG}.1")
    disk.remove(f"{LOG}.1")
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one", "two"], None)


def test_a_removed_log_that_nobody_makes_again_is_let_go_when_it_was_read() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.remove(LOG)
    assert tailing.lines() == ["one"]
    assert disk.open_files == 1
    assert tailing.lines() == []
    assert disk.open_files == 0


def test_a_log_behind_a_symbolic_link_is_followed_where_it_points() -> None:
    disk = FakeDisk()
    disk.links["/logs/link.log"] = "/pods/0.log"
    disk.append(b"before\n", "/pods/0.log")
    tailing = Tailing(disk)
    assert tailing.lines() == []
    disk.append(b"one\n", "/pods/0.log")
    disk.rename("/pods/0.log", "/pods/0.log.20261121-101500")
    assert tailing.lines() == ["one"]
    disk.append(b"two\n", "/pods/0.log")
    assert tailing.lines() == ["two"]
    disk.links["/logs/link.log"] = "/pods/1.log"
    disk.append(b"three\n", "/pods/0.log")
    disk.append(b"four\n", "/pods/1.log")
    assert tailing.lines() == ["three", "four"]


def test_rotated_files_that_the_pattern_matches_too_are_read_once() -> None:
    disk = FakeDisk()
    disk.append(b"old\n", f"{LOG}.1")
    tailing = begun(disk, replace(SOURCE, pattern="/logs/server.log*"))
    for number in range(3):
        disk.append(f"line {number}\n".encode())
        disk.rotate_by_number()
        disk.append(b"after\n")
        assert tailing.lines() == [f"line {number}", "after"]


def test_a_year_of_rotated_files_is_not_read_after_the_next_rotation() -> None:
    disk = FakeDisk()
    for number in range(5 * FILES_KEPT):
        disk.tick()
        disk.append(f"old {number}\n".encode(), f"{LOG}.2025-11-21-{number}")
    disk.tick()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rename(LOG, f"{LOG}.2026-11-21-0")
    disk.append(b"two\n")
    assert tailing.lines() == ["one", "two"]


@pytest.mark.parametrize("is_empty_at_first", [True, False])
def test_a_copy_that_passes_like_a_rotated_file_is_not_read(*, is_empty_at_first: bool) -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    if is_empty_at_first:
        disk.rotate_by_number()
        disk.append(b"")
        tailing.read_once()
    disk.append(b"one\n")
    disk.copy(LOG, f"{LOG}.20261121")
    assert tailing.lines() == ["one"]
    disk.append(b"two\n")
    disk.copy(LOG, f"{LOG}.20261122")
    disk.rotate_by_number()
    disk.append(b"three\n")
    assert tailing.lines() == ["two", "three"]


def test_a_log_that_was_copied_and_cut_goes_on_in_its_copy() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.copy(LOG, f"{LOG}.1")
    disk.cut()
    disk.append(b"two\n")
    tailing.crash()
    found = tailing.read_once()
    assert (lines_of(found), error_of(found)) == (["one", "two"], None)
    assert tailing.lines() == []


def test_it_is_noticed_when_it_has_grown_beyond_where_it_was_read() -> None:
    disk = FakeDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.copy(LOG, f"{LOG}-20261121")
    disk.cut()
    disk.append(b"two, and more than there was before it was cut\n")
    assert tailing.lines() == ["one", "two, and more than there was before it was cut"]
