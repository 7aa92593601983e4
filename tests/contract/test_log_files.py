"""One suite on the disk in memory and on the real one: what a tail may rely on."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from collectors.broker_log.disk import Disk
from collectors.broker_log.files import Files, FileStat, OpenFile, ReadFailure
from rules.facts.gap import GapCause
from tests.unit.collectors.broker_log.fake_disk import FakeDisk


class Hands(Protocol):
    """What a person or a broker does to files; paths are names in one folder."""

    def path(self, name: str) -> str: ...
    def append(self, name: str, content: bytes) -> None: ...
    def rename(self, name: str, to: str) -> None: ...
    def remove(self, name: str) -> None: ...


class FakeHands:
    def __init__(self, disk: FakeDisk) -> None:
        self.disk = disk

    def path(self, name: str) -> str:
        return f"/logs/{name}"

    def append(self, name: str, content: bytes) -> None:
        self.disk.append(content, self.path(name))

    def rename(self, name: str, to: str) -> None:
        self.disk.rename(self.path(name), self.path(to))

    def remove(self, name: str) -> None:
        self.disk.remove(self.path(name))


class RealHands:
    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def append(self, name: str, content: bytes) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(content)

    def rename(self, name: str, to: str) -> None:
        (self.folder / name).rename(self.folder / to)

    def remove(self, name: str) -> None:
        (self.folder / name).unlink()


@pytest.fixture(params=["in memory", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Files, Hands]:
    if request.param == "real":
        return Disk(), RealHands(tmp_path)
    disk = FakeDisk()
    return disk, FakeHands(disk)


def seen(files: Files, path: str) -> FileStat:
    found = files.stat(path)
    assert isinstance(found, FileStat)
    return found


def opened(files: Files, path: str) -> OpenFile:
    found = files.open(path)
    assert not isinstance(found, ReadFailure)
    return found


def cause(found: object) -> GapCause:
    assert isinstance(found, ReadFailure)
    return found.cause


def test_a_pattern_matches_names_in_their_order(place: tuple[Files, Hands]) -> None:
    files, hands = place
    for name in ("b.log", "a.log", "a.log.1"):
        hands.append(name, b"x")
    assert files.matching(hands.path("*.log")) == [hands.path("a.log"), hands.path("b.log")]
    assert files.matching(hands.path("a.log")) == [hands.path("a.log")]
    assert files.matching(hands.path("*.txt")) == files.matching(hands.path("c.log")) == []


def test_a_file_is_the_same_by_any_name_and_another_by_its_own(place: tuple[Files, Hands]) -> None:
    files, hands = place
    hands.append("a.log", b"one")
    first = seen(files, hands.path("a.log"))
    assert (first.path, first.size) == (hands.path("a.log"), 3)
    hands.rename("a.log", "a.log.1")
    hands.append("a.log", b"three")
    assert seen(files, hands.path("a.log.1")).id == first.id
    assert seen(files, hands.path("a.log")).id != first.id
    folder = files.folder_of(hands.path("a.log"))
    assert not isinstance(folder, ReadFailure)
    assert {(file.path, file.size) for file in folder} == {
        (hands.path("a.log"), 5),
        (hands.path("a.log.1"), 3),
    }


def test_what_is_not_there_is_gone(place: tuple[Files, Hands]) -> None:
    files, hands = place
    path = hands.path("a.log")
    assert cause(files.stat(path)) == cause(files.open(path)) == GapCause.GONE


def test_an_open_file_outlives_its_name_and_shows_what_is_appended(
    place: tuple[Files, Hands],
) -> None:
    files, hands = place
    hands.append("a.log", b"one")
    file = opened(files, hands.path("a.log"))
    id_ = seen(files, hands.path("a.log")).id
    hands.append("a.log", b"two")
    hands.remove("a.log")
    assert file.read(0, 100) == b"onetwo"
    assert (file.read(3, 2), file.read(6, 1), file.read(99, 1)) == (b"tw", b"", b"")
    now = file.stat()
    assert isinstance(now, FileStat)
    assert (now.id, now.size) == (id_, 6)
    file.close()


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    ("make", "told"),
    [(_folder, "a folder"), (_pipe, "a pipe"), (_socket, "a socket")],
)
def test_what_is_no_file_is_told_by_its_kind_and_never_opened(
    tmp_path: Path, make: Callable[[Path], None], told: str
) -> None:
    path = Path(os.path.realpath(tmp_path)) / "a.log"
    make(path)
    disk = Disk()
    for found in (disk.stat(str(path)), disk.open(str(path))):
        assert found == ReadFailure(why=f"{path} is {told}, no log file", cause=GapCause.UNREADABLE)
    assert disk.folder_of(str(path)) == []


def test_a_device_is_told() -> None:
    found = Disk().stat("/dev/null")
    assert isinstance(found, ReadFailure)
    assert found.why == "/dev/null is a device, no log file"


def test_a_folder_that_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    disk = Disk()
    assert cause(disk.matching(str(tmp_path / "none" / "*.log"))) is GapCause.GONE
    assert cause(disk.folder_of(str(tmp_path / "none" / "a.log"))) is GapCause.GONE
    assert disk.matching(str(tmp_path / "n*" / "*.log")) == []


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    disk = Disk()
    assert cause(disk.matching(str(tmp_path / "file" / "*.log"))) is GapCause.GONE
    assert cause(disk.matching(str(tmp_path / "file" / "a.log"))) is GapCause.GONE


def test_a_link_is_followed_and_a_broken_one_is_shown(tmp_path: Path) -> None:
    folder = Path(os.path.realpath(tmp_path))
    (folder / "real").write_bytes(b"x")
    (folder / "a.log").symlink_to(folder / "real")
    (folder / "b.log").symlink_to(folder / "none")
    disk = Disk()
    assert disk.matching(str(folder / "*.log")) == [str(folder / "a.log"), str(folder / "b.log")]
    assert seen(disk, str(folder / "a.log")).path == str(folder / "real")
    assert cause(disk.stat(str(folder / "b.log"))) is GapCause.GONE


def test_a_circle_of_links_and_a_name_too_long_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.log").symlink_to(tmp_path / "a.log")
    disk = Disk()
    assert isinstance(disk.stat(str(tmp_path / "a.log")), ReadFailure)
    assert cause(disk.stat(str(tmp_path / ("x" * 300)))) is GapCause.UNREADABLE


def test_a_name_that_is_no_text_is_one_all_the_same(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff.log"
    with open(odd, "wb") as file:  # noqa: PTH123 - a path of bytes
        file.write(b"x")
    found = Disk().matching(str(tmp_path / "*.log"))
    assert not isinstance(found, ReadFailure)
    assert [seen(Disk(), path).size for path in found] == [1]


def test_what_may_not_be_read_or_listed_is_told(tmp_path: Path) -> None:
    readable, closed = tmp_path / "a", tmp_path / "b"
    for folder in (readable, closed):
        folder.mkdir()
        (folder / "a.log").write_bytes(b"x")
    (readable / "a.log").chmod(0)
    closed.chmod(0)
    told = _told_to_nobody(
        lambda disk: [
            disk.open(str(readable / "a.log")),
            disk.matching(str(closed / "*.log")),
            disk.matching(str(closed / "a.log")),
            disk.stat(str(closed / "a.log")),
            disk.folder_of(str(closed / "a.log")),
        ]
    )
    closed.chmod(0o700)
    assert told == [str(GapCause.NOT_AUTHORIZED)] * 5


def _told_to_nobody(ask: Callable[[Disk], list[object]]) -> list[str]:
    """Ask in a process that has no rights beyond a user's; the superuser may read everything."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def child() -> None:
        if os.geteuid() == 0:
            os.setuid(65_534)
        sender.send([str(cause(found)) for found in ask(Disk())])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    assert receiver.poll(30)
    answer: list[str] = receiver.recv()
    process.join()
    return answer
