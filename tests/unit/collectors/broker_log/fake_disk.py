"""A disk in memory, which rotates, cuts short, removes and forbids as a real one does.

An inode is given out again as soon as its file is gone and closed, which is the worst that a real
disk does.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass, field

from collectors.broker_log.files import FileId, FileStat, OpenFile, ReadFailure
from rules.facts.gap import GapCause

FOLDER = "/logs"
LOG = f"{FOLDER}/server.log"


@dataclass(eq=False)
class Inode:
    """A file, whatever it is called."""

    number: int
    content: bytearray = field(default_factory=bytearray)
    modified_ns: int = 0
    opened: int = 0  # times it is open now
    names: int = 1


class FakeDisk:
    """Files of one folder, and a clock that is until `tick`."""

    def __init__(self) -> None:
        self.now_ns = 10**18
        self.files: dict[str, Inode] = {}
        self.denied: set[str] = set()  # may not be opened
        self.odd: dict[str, str] = {}  # path -> what lies there instead of a file
        self.links: dict[str, str] = {}
        self.hidden: ReadFailure | None = None  # why the folder cannot be listed
        self.scans = 0
        self.most_open = 0  # at a time, so far
        self._used: dict[int, Inode] = {}

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass; back, if somebody sets the clock."""
        self.now_ns += int(seconds * 1e9)

    def append(self, content: bytes, path: str = LOG) -> None:
        """Write at the end of a file, which is made if there is none."""
        inode = self.files.get(path) or self._make(path)
        inode.content += content
        inode.modified_ns = self.now_ns

    def rename(self, path: str, to: str) -> None:
        """Give a file another name."""
        self.remove(to)
        self.files[to] = self.files.pop(path)

    def remove(self, path: str) -> None:
        """Take a file's name away; it lives on while it is open."""
        inode = self.files.pop(path, None)
        if inode is not None:
            inode.names -= 1
            self._forget(inode)

    def copy(self, path: str, to: str) -> None:
        """Copy a file, as `cp` does."""
        self.remove(to)
        self.append(bytes(self.files[path].content), to)

    def cut(self, path: str = LOG, size: int = 0) -> None:
        """Cut a file short."""
        inode = self.files[path]
        del inode.content[size:]
        inode.modified_ns = self.now_ns

    def rotate_by_number(self, path: str = LOG) -> None:
        """Rename server.log to server.log.1, server.log.1 to server.log.2 and so on."""
        last = 1
        while f"{path}.{last}" in self.files:
            last += 1
        for number in range(last, 1, -1):
            self.rename(f"{path}.{number - 1}", f"{path}.{number}")
        self.rename(path, f"{path}.1")

    def _make(self, path: str) -> Inode:
        number = next(n for n in range(1, len(self._used) + 2) if n not in self._used)
        inode = self.files[path] = self._used[number] = Inode(number, modified_ns=self.now_ns)
        return inode

    def _forget(self, inode: Inode) -> None:
        if not inode.names and not inode.opened:
            del self._used[inode.number]

    def matching(self, pattern: str) -> Sequence[str] | ReadFailure:
        if self.hidden is not None:
            return self.hidden
        paths = {*self.files, *self.odd, *self.links}
        return sorted(path for path in paths if fnmatch.fnmatchcase(path, pattern))

    def stat(self, path: str) -> FileStat | ReadFailure:
        real = self.links.get(path, path)
        if real in self.odd:
            return ReadFailure(
                why=f"{real} is {self.odd[real]}, no log file", cause=GapCause.UNREADABLE
            )
        if real not in self.files:
            return ReadFailure(why=f"{path}: no such file or directory", cause=GapCause.GONE)
        return self._stat(real, self.files[real])

    def folder_of(self, path: str) -> Sequence[FileStat] | ReadFailure:
        self.scans += 1
        if self.hidden is not None:
            return self.hidden
        folder = path.rpartition("/")[0]
        return [
            self._stat(name, inode)
            for name, inode in self.files.items()
            if name.rpartition("/")[0] == folder
        ]

    def open(self, path: str) -> OpenFile | ReadFailure:
        seen = self.stat(path)
        if isinstance(seen, ReadFailure):
            return seen
        if seen.path in self.denied:
            return ReadFailure(why=f"{path}: permission denied", cause=GapCause.NOT_AUTHORIZED)
        inode = self.files[seen.path]
        inode.opened += 1
        self.most_open = max(self.most_open, self.open_files)
        return FakeOpenFile(self, inode, path)

    def closed(self, inode: Inode) -> None:
        """Take back an open file."""
        inode.opened -= 1
        self._forget(inode)

    @property
    def open_files(self) -> int:
        """How many files are open."""
        return sum(inode.opened for inode in self._used.values())

    @staticmethod
    def _stat(path: str, inode: Inode) -> FileStat:
        return FileStat(
            path=path,
            id=FileId(1, inode.number),
            size=len(inode.content),
            modified_ns=inode.modified_ns,
        )


class FakeOpenFile:
    """A file of the disk that is open; it outlives its name."""

    def __init__(self, disk: FakeDisk, inode: Inode, path: str) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path

    def stat(self) -> FileStat | ReadFailure:
        return self._disk._stat(self._path, self._inode)  # noqa: SLF001 - of the same file

    def read(self, offset: int, size: int) -> bytes | ReadFailure:
        return bytes(self._inode.content[offset : offset + size])

    def close(self) -> None:
        self._disk.closed(self._inode)
