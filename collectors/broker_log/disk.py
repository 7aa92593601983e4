"""Log files on a disk of this machine, or mounted there.

Every error of the operating system becomes a `ReadFailure` here. Nothing blocks but the disk itself: a
pipe in the place of a log is reported as a failure, and not opened.
"""

from __future__ import annotations

import errno
import glob
import os
import stat as modes
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collectors.broker_log.files import FileId, FileStat, OpenFile, ReadFailure
from rules.facts.gap import GapCause

CAUSES: Final = {
    errno.EACCES: GapCause.NOT_AUTHORIZED,
    errno.EPERM: GapCause.NOT_AUTHORIZED,
    errno.ENOENT: GapCause.GONE,
    errno.ENOTDIR: GapCause.GONE,
    errno.EMFILE: GapCause.LIMIT,
    errno.ENFILE: GapCause.LIMIT,
    errno.ELOOP: GapCause.UNREADABLE,
    errno.ENAMETOOLONG: GapCause.UNREADABLE,
}
KINDS: Final = (
    (modes.S_ISDIR, "a folder"),
    (modes.S_ISFIFO, "a pipe"),
    (modes.S_ISSOCK, "a socket"),
    (modes.S_ISCHR, "a device"),
    (modes.S_ISBLK, "a device"),
)
FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class Disk:
    """The files of this machine."""

    def matching(self, pattern: str) -> Sequence[str] | ReadFailure:
        """Return the paths that a pattern matches, ordered.

        A folder that may not be listed would match nothing, as if it were empty: it is a failure.
        """
        paths = sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern is absolute
        if paths or not glob.has_magic(pattern):
            return paths or _list_single(pattern)
        try:
            with os.scandir(_fixed_folder(pattern)):
                return []
        except OSError as exc:
            return _error(_fixed_folder(pattern), exc)

    def stat(self, path: str) -> FileStat | ReadFailure:
        """Return a file as it is, following symbolic links."""
        try:
            real = os.path.realpath(path)
            return _to_file_stat(real, Path(real).stat())
        except OSError as exc:
            return _error(path, exc)

    def folder_of(self, path: str) -> Sequence[FileStat] | ReadFailure:
        """Return all regular files in the folder of a path; what vanishes meanwhile is left out."""
        folder = str(Path(path).parent)
        try:
            with os.scandir(folder) as entries:
                files = [_stat_entry(entry) for entry in entries]
        except OSError as exc:
            return _error(folder, exc)
        return [file for file in files if isinstance(file, FileStat)]

    def open(self, path: str) -> OpenFile | ReadFailure:
        """Open a regular file to be read."""
        seen = self.stat(path)  # opening a pipe would wake whoever writes to it
        if isinstance(seen, ReadFailure):
            return seen
        try:
            return _Descriptor(os.open(path, FLAGS), path)
        except OSError as exc:
            return _error(path, exc)


class _Descriptor:
    """A file that is open."""

    def __init__(self, number: int, path: str) -> None:
        self._number = number
        self._path = path

    def stat(self) -> FileStat | ReadFailure:
        """Return its present size, id and modification time."""
        try:
            return _to_file_stat(self._path, os.fstat(self._number))
        except OSError as exc:
            return _error(self._path, exc)

    def read(self, offset: int, size: int) -> bytes | ReadFailure:
        """Return up to `size` bytes from an offset."""
        try:
            return os.pread(self._number, size, offset)
        except OSError as exc:
            return _error(self._path, exc)

    def close(self) -> None:
        """Let it go."""
        os.close(self._number)


def _stat_entry(entry: os.DirEntry[str]) -> FileStat | ReadFailure:
    try:
        return _to_file_stat(entry.path, entry.stat(follow_symlinks=False))
    except OSError as exc:
        return _error(entry.path, exc)


def _list_single(path: str) -> Sequence[str] | ReadFailure:
    """Return a path if it exists; one in a folder that may not be inspected is a failure."""
    try:
        Path(path).lstat()
    except OSError as exc:
        return [] if exc.errno == errno.ENOENT else _error(path, exc)
    return [path]


def _fixed_folder(pattern: str) -> str:
    """Return the folder up to which a pattern names exactly one."""
    whole = Path(pattern)
    return str(next(parent for parent in whole.parents if not glob.has_magic(str(parent))))


def _to_file_stat(path: str, seen: os.stat_result) -> FileStat | ReadFailure:
    if not modes.S_ISREG(seen.st_mode):
        kind = next((name for is_kind, name in KINDS if is_kind(seen.st_mode)), "no file")
        return ReadFailure(why=f"{path} is {kind}, no log file", cause=GapCause.UNREADABLE)
    return FileStat(
        path=path,
        id=FileId(seen.st_dev, seen.st_ino),
        size=seen.st_size,
        modified_ns=seen.st_mtime_ns,
    )


def _error(path: str, error: OSError) -> ReadFailure:
    number = error.errno or 0
    why = (error.strerror or str(error)).lower()
    # What is not in the table is a disk or a mount that may come back.
    return ReadFailure(
        why=f"{path}: {why}",
        cause=CAUSES.get(number, GapCause.UNREACHABLE),
        is_transient=number not in CAUSES or CAUSES[number] is GapCause.LIMIT,
    )
