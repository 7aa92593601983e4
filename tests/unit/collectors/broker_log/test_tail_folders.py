"""The folder of a log while files in it are renamed, made and removed."""

from __future__ import annotations

from tests.unit.collectors.broker_log.fake_disk import LOG, FakeDisk
from tests.unit.collectors.broker_log.tailing import begun, error_of, lines_of


class RestlessDisk(FakeDisk):
    """A disk whose log is rotated while its folder is listed."""

    is_restless = False

    def folder_of(self, path: str):  # type: ignore[no-untyped-def]  # noqa: ANN201 - as its base
        """List the folder, and rotate."""
        found = super().folder_of(path)
        if self.is_restless:
            self.rotate_by_number()
            self.append(b"again\n")
        return found


def test_a_folder_that_changes_while_it_is_listed_is_looked_at_again_soon() -> None:
    disk = RestlessDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rotate_by_number()
    disk.append(b"two\n")
    disk.is_restless = True
    found = tailing.read_once()
    assert (lines_of(found), found.is_behind) == ([], True)
    assert error_of(found) == (
        f"{LOG}: its files were renamed again and again while their folder was listed"
    )
    disk.is_restless = False
    found = tailing.read_once()
    assert lines_of(found)[0] == "one"
    assert error_of(found) is None


class SharedDisk(FakeDisk):
    """A disk on which others make a file at every listing, and remove the one before."""

    number = 0
    made = 0  # how often it was given this inode
    inode = 0

    def folder_of(self, path: str):  # type: ignore[no-untyped-def]  # noqa: ANN201 - as its base
        """Replace the file of the others, and list the folder."""
        self.remove(f"/logs/heartbeat.{self.number}.tmp")
        self.number += 1
        self.append(b"x", f"/logs/heartbeat.{self.number}.tmp")
        self.made += self.files[f"/logs/heartbeat.{self.number}.tmp"].number == self.inode
        return super().folder_of(path)


def test_files_of_others_in_the_folder_hold_up_nothing() -> None:
    disk = SharedDisk()
    tailing = begun(disk)
    disk.append(b"one\n")
    disk.rotate_by_number()
    disk.append(b"two\n")
    found = tailing.read_once()
    assert (lines_of(found), found.is_behind, error_of(found)) == (["one", "two"], False, None)


def test_they_hold_up_nothing_either_when_they_get_the_id_of_a_file_that_was_read() -> None:
    disk = SharedDisk()
    tailing = begun(disk)
    disk.rotate_by_number()
    disk.append(b"one\n")
    disk.inode = disk.files[f"{LOG}.1"].number
    assert tailing.lines() == ["one"]
    tailing.crash()
    disk.append(b"two\n")
    disk.rename(LOG, f"{LOG}.2")
    disk.append(b"three\n")
    disk.remove(f"{LOG}.1")
    found = tailing.read_once()
    assert disk.made > 1
    assert (lines_of(found), found.is_behind, error_of(found)) == (["two", "three"], False, None)
